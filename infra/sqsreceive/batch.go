package sqsreceive

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"sluice/core"
)

// How often a batch call, or what has failed of it, is made, and how long it is
// waited before the second time; before the third twice as long.
const (
	tries      = 3
	betweenTwo = 100 * time.Millisecond
)

// call is a batch call for messages under these ids.
type call func(ctx context.Context, ids []string, messages []types.Message) ([]types.BatchResultErrorEntry, error)

// rounds makes a call for messages, at most ten, and again for those of which
// SQS says that it has failed.
func (p *pollers) rounds(op string, messages []types.Message, do call) {
	var err error
	for i := range tries {
		if len(messages) == 0 {
			return
		}
		if i > 0 && !rest(p.own, betweenTwo<<(i-1)) {
			break
		}
		messages, err = p.round(messages, do)
	}
	if err != nil {
		p.o.Failed(op, err)
	}
}

// round makes a call, and returns for which messages it is to be made again.
// err is what failed, of those or of others.
func (p *pollers) round(messages []types.Message, do call) (again []types.Message, err error) {
	ids := make([]string, len(messages))
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	ctx, cancel := context.WithTimeout(p.own, callTimeout)
	defer cancel()
	refused, err := do(ctx, ids, messages)
	if err != nil {
		return messages, failed(err)
	}
	for _, e := range refused {
		err = core.Errorf(core.Unavailable, "%s", value(e.Code))
		if i := slices.Index(ids, value(e.Id)); i >= 0 && !e.SenderFault { // else it has passed on, and is no longer ours
			again = append(again, messages[i])
		}
	}
	return again, err
}

func (p *pollers) deletion(ctx context.Context, ids []string, messages []types.Message) ([]types.BatchResultErrorEntry, error) {
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &p.queue}
	for i := range messages {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: &ids[i], ReceiptHandle: messages[i].ReceiptHandle})
	}
	out, err := p.api.DeleteMessageBatch(ctx, in)
	if err != nil {
		return nil, err
	}
	return out.Failed, nil
}

func (p *pollers) change(ctx context.Context, ids []string, messages []types.Message, d time.Duration) ([]types.BatchResultErrorEntry, error) {
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &p.queue}
	for i := range messages {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
			Id: &ids[i], ReceiptHandle: messages[i].ReceiptHandle, VisibilityTimeout: int32(d / time.Second),
		})
	}
	out, err := p.api.ChangeMessageVisibilityBatch(ctx, in)
	if err != nil {
		return nil, err
	}
	return out.Failed, nil
}

// failed is what went wrong with a call. It names neither the queue nor its
// account: where the queue is may have been kept in the environment.
func failed(err error) error {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return core.Errorf(core.Unavailable, "SQS answers %s", api.ErrorCode())
	}
	if broken, ok := errors.AsType[*url.Error](err); ok {
		err = broken.Err
	}
	return core.Wrap(core.Unavailable, err, "no answer from SQS")
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

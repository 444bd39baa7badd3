package sqstest

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// SendMessage is the operation of that name.
func (s *SQS) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var id string
	err := s.do("SendMessage", in.QueueUrl, func(q *queue) error {
		if err := checkMessage(in.MessageBody, in.MessageGroupId, in.DelaySeconds); err != nil {
			return err
		}
		id = s.put(q, *in.MessageBody, in.MessageGroupId, in.DelaySeconds)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &sqs.SendMessageOutput{MessageId: &id}, nil
}

// SendMessageBatch is the operation of that name.
func (s *SQS) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	const op = "SendMessageBatch"
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := &sqs.SendMessageBatchOutput{}
	err := s.do(op, in.QueueUrl, func(q *queue) error {
		var ids []*string
		size := 0
		for _, e := range in.Entries {
			ids = append(ids, e.Id)
			size += len(*e.MessageBody)
		}
		if err := checkBatch(ids); err != nil {
			return err
		}
		if size > maxBytes {
			return &types.BatchRequestTooLong{}
		}
		for _, e := range in.Entries {
			if f := s.refused(op, e.Id); f != nil {
				out.Failed = append(out.Failed, *f)
			} else if err := checkMessage(e.MessageBody, e.MessageGroupId, e.DelaySeconds); err != nil {
				out.Failed = append(out.Failed, failure(e.Id, err))
			} else {
				id := s.put(q, *e.MessageBody, e.MessageGroupId, e.DelaySeconds)
				out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id, MessageId: &id})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// put adds a message, and wakes those who wait for one.
func (s *SQS) put(q *queue, body string, group *string, delay int32) string {
	s.ids++
	now := s.now()
	m := &message{id: fmt.Sprintf("message-%d", s.ids), body: body, sent: now, visible: now.Add(time.Duration(delay) * time.Second)}
	if group != nil {
		m.group = *group
	}
	q.messages = append(q.messages, m)
	q.groups[m.group]++
	s.wake()
	return m.id
}

// wake has everyone who waits for a message look again.
func (s *SQS) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

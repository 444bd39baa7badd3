package sqstest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// ReceiveMessage is the operation of that name. A long poll is one call, however
// often it looks.
func (s *SQS) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	switch {
	case in.MaxNumberOfMessages < 0 || in.MaxNumberOfMessages > maxEntries:
		return nil, invalid("Value %d for parameter MaxNumberOfMessages is invalid.", in.MaxNumberOfMessages)
	case in.WaitTimeSeconds < 0 || in.WaitTimeSeconds > maxWait:
		return nil, invalid("Value %d for parameter WaitTimeSeconds is invalid.", in.WaitTimeSeconds)
	}
	if err := checkVisibility(in.VisibilityTimeout); err != nil {
		return nil, err
	}
	until := s.now().Add(time.Duration(in.WaitTimeSeconds) * time.Second)
	out := &sqs.ReceiveMessageOutput{}
	look := func(q *queue) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		out.Messages = s.take(q, in)
		return nil
	}
	if err := s.do("ReceiveMessage", in.QueueUrl, look); err != nil {
		return nil, err
	}
	for len(out.Messages) == 0 && s.now().Before(until) {
		if err := s.wait(ctx, *in.QueueUrl, until); err != nil {
			return nil, err
		}
		s.mu.Lock()
		err := look(s.queues[*in.QueueUrl])
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Await returns when a message of a queue is visible: it spares tests of long
// times a poll every 20 seconds. Its error is ctx's.
func (s *SQS) Await(ctx context.Context, url string) error {
	const forEver = 100 * 365 * 24 * time.Hour
	for {
		s.mu.Lock()
		now := s.now()
		visible := slices.ContainsFunc(s.queues[url].messages, func(m *message) bool { return !m.visible.After(now) })
		s.mu.Unlock()
		if visible {
			return nil
		}
		if err := s.wait(ctx, url, now.Add(forEver)); err != nil {
			return err
		}
	}
}

// wait returns when a message may have become visible, or at until.
func (s *SQS) wait(ctx context.Context, url string, until time.Time) error {
	s.mu.Lock()
	now, changed := s.now(), s.changed
	for _, m := range s.queues[url].messages {
		if m.visible.Before(until) {
			until = m.visible
		}
	}
	s.mu.Unlock()
	left := time.NewTimer(until.Sub(now))
	defer left.Stop()
	select {
	case <-left.C:
		return nil
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take receives what is visible.
func (s *SQS) take(q *queue, in *sqs.ReceiveMessageInput) []types.Message {
	now, n := s.now(), max(1, int(in.MaxNumberOfMessages))
	hidden := cmp.Or(in.VisibilityTimeout, 30)
	var out []types.Message
	for _, m := range s.pick(q, now, n, s.Sampling && in.WaitTimeSeconds == 0) {
		m.received++
		m.inFlight, m.visible = true, now.Add(time.Duration(hidden)*time.Second)
		m.handle = fmt.Sprintf("%s.%d", m.id, m.received)
		q.flown[m.handle] = m
		t := types.Message{MessageId: new(m.id), Body: new(m.body), ReceiptHandle: new(m.handle), Attributes: map[string]string{}}
		for _, name := range in.MessageSystemAttributeNames {
			t.Attributes[string(name)] = map[types.MessageSystemAttributeName]string{
				types.MessageSystemAttributeNameSentTimestamp:           strconv.FormatInt(m.sent.UnixMilli(), 10),
				types.MessageSystemAttributeNameApproximateReceiveCount: strconv.Itoa(m.received),
				types.MessageSystemAttributeNameMessageGroupId:          m.group,
			}[name]
		}
		out = append(out, t)
	}
	return out
}

// pick chooses at most n of the visible messages: of each message group in
// turn, those of the group that was served longest ago first.
func (s *SQS) pick(q *queue, now time.Time, n int, sample bool) []*message {
	groups := map[string][]*message{}
	var names []string
	for i, m := range q.messages {
		if m.visible.After(now) || sample && i%2 == 1 {
			continue
		}
		g := groups[m.group]
		switch {
		case s.Disorder != nil || len(g) < n:
			if g == nil {
				names = append(names, m.group)
			}
			groups[m.group] = append(g, m)
			continue
		case len(q.groups) > 1:
			continue
		}
		break
	}
	var out []*message
	for len(out) < n && len(names) > 0 {
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(q.served[a], q.served[b]) })
		name := names[0]
		g := groups[name]
		if s.Disorder != nil {
			i := s.Disorder.IntN(len(g))
			g[0], g[i] = g[i], g[0]
		}
		g[0].before = q.served[name]
		q.turn++
		q.served[name] = q.turn
		out = append(out, g[0])
		if groups[name] = g[1:]; len(g) == 1 {
			names = names[1:]
		}
	}
	return out
}

// DeleteMessageBatch is the operation of that name. An older receipt handle
// than the newest is accepted, and deletes nothing.
func (s *SQS) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	const op = "DeleteMessageBatch"
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := &sqs.DeleteMessageBatchOutput{}
	err := s.do(op, in.QueueUrl, func(q *queue) error {
		var ids []*string
		for _, e := range in.Entries {
			ids = append(ids, e.Id)
		}
		if err := checkBatch(ids); err != nil {
			return err
		}
		for _, e := range in.Entries {
			if f := s.refused(op, e.Id); f != nil {
				out.Failed = append(out.Failed, *f)
				continue
			}
			if m := q.flown[*e.ReceiptHandle]; m != nil && m.handle == *e.ReceiptHandle {
				q.remove(m)
			}
			out.Successful = append(out.Successful, types.DeleteMessageBatchResultEntry{Id: e.Id})
		}
		q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return m.deleted })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ChangeMessageVisibilityBatch is the operation of that name.
func (s *SQS) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	const op = "ChangeMessageVisibilityBatch"
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	err := s.do(op, in.QueueUrl, func(q *queue) error {
		var ids []*string
		for _, e := range in.Entries {
			ids = append(ids, e.Id)
		}
		if err := checkBatch(ids); err != nil {
			return err
		}
		for _, e := range in.Entries {
			if f := s.refused(op, e.Id); f != nil {
				out.Failed = append(out.Failed, *f)
			} else if f := s.change(q, e); f != nil {
				out.Failed = append(out.Failed, *f)
			} else {
				out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: e.Id})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *SQS) change(q *queue, e types.ChangeMessageVisibilityBatchRequestEntry) *types.BatchResultErrorEntry {
	if err := checkVisibility(e.VisibilityTimeout); err != nil {
		return new(failure(e.Id, err))
	}
	now, m := s.now(), q.flown[*e.ReceiptHandle]
	switch {
	case m == nil:
		return new(failure(e.Id, &types.ReceiptHandleIsInvalid{}))
	case m.deleted || m.handle != *e.ReceiptHandle || !m.inFlight || !m.visible.After(now):
		return new(failure(e.Id, invalid("The message does not exist, or is not available for a change of its visibility timeout.")))
	}
	m.visible = now.Add(time.Duration(e.VisibilityTimeout) * time.Second)
	if e.VisibilityTimeout == 0 {
		m.inFlight = false
		q.served[m.group] = min(q.served[m.group], m.before) // it gives its turn back
	}
	s.wake()
	return nil
}

// remove forgets a message, but for its place in the line.
func (q *queue) remove(m *message) {
	if m.deleted {
		return
	}
	m.deleted = true
	if q.groups[m.group]--; q.groups[m.group] == 0 {
		delete(q.groups, m.group)
	}
}

// GetQueueAttributes is the operation of that name, for the numbers of messages.
func (s *SQS) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := &sqs.GetQueueAttributesOutput{Attributes: map[string]string{}}
	err := s.do("GetQueueAttributes", in.QueueUrl, func(q *queue) error {
		now, visible, flying, delayed := s.now(), 0, 0, 0
		for _, m := range q.messages {
			switch {
			case !m.visible.After(now):
				visible++
			case m.inFlight:
				flying++
			default:
				delayed++
			}
		}
		counts := map[types.QueueAttributeName]int{
			types.QueueAttributeNameApproximateNumberOfMessages:           visible,
			types.QueueAttributeNameApproximateNumberOfMessagesNotVisible: flying,
			types.QueueAttributeNameApproximateNumberOfMessagesDelayed:    delayed,
		}
		for _, name := range in.AttributeNames {
			n, ok := counts[name]
			if !ok {
				return &types.InvalidAttributeName{}
			}
			out.Attributes[string(name)] = strconv.Itoa(n)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

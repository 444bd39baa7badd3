package sqs

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"sluice/core"
	"sluice/core/message"
)

// Queue is a [core.Queue] on a standard queue that is fair by buffer.
type Queue struct {
	client API
	queue  string
}

// NewQueue makes a queue of the deliver queue at a URL.
func NewQueue(client API, queueURL string) *Queue { return &Queue{client: client, queue: queueURL} }

// Hand implements [core.Queue]. Unavailable: the message may not have been sent.
func (q *Queue) Hand(ctx context.Context, d core.Delivery) error {
	body, err := message.EncodeDelivery(d)
	if err != nil {
		return err
	}
	in := &sqs.SendMessageInput{QueueUrl: &q.queue, MessageBody: &body}
	if tenant(d.Ref.Buffer) {
		in.MessageGroupId = &d.Ref.Buffer
	}
	_, err = q.client.SendMessage(ctx, in)
	return failed("hand over a delivery with SQS", err)
}

// tenant reports whether a buffer's name can be a MessageGroupId, as every
// name that the configuration allows can: 1 to 128 letters, digits and
// punctuation of ASCII. Any other goes without, which is not fair but works.
func tenant(buffer string) bool {
	for i := range len(buffer) {
		if buffer[i] <= ' ' || buffer[i] > '~' {
			return false
		}
	}
	return 1 <= len(buffer) && len(buffer) <= 128
}

package sqs

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"sluice/core"
	"sluice/core/message"
)

// Timer is a [core.Timer] for near deadlines. Each hint is a message that
// becomes visible one to two seconds early, or at once when less is left, and
// after 15 minutes when more is: [Arrivals] sees to the rest.
type Timer struct {
	client API
	queue  string
	clock  core.Clock
}

// NewTimer makes a timer of the check queue at a URL.
func NewTimer(client API, queueURL string, clock core.Clock) *Timer {
	return &Timer{client: client, queue: queueURL, clock: clock}
}

// Arm implements [core.Timer]. Unavailable: the message may not have been sent.
func (t *Timer) Arm(ctx context.Context, h core.Hint) error {
	body, err := message.EncodeHint(h)
	if err != nil {
		return err
	}
	_, err = t.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &t.queue, MessageBody: &body, DelaySeconds: delay(h.At.Sub(t.clock.Now())),
	})
	return failed("arm a check with SQS", err)
}

// delay is DelaySeconds for a deadline that is so far away.
func delay(remaining time.Duration) int32 {
	return int32(max(0, min(remaining-time.Second, maxDelay)) / time.Second)
}

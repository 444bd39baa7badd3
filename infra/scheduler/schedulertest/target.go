package schedulertest

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// ToSQS is an [Options.Fire] that does what a schedule with a standard queue
// for its target does: it sends the input to the queue that the ARN names.
func ToSQS(client *sqs.Client) func(context.Context, Invocation) error {
	return func(ctx context.Context, in Invocation) error {
		name := in.TargetARN[strings.LastIndexByte(in.TargetARN, ':')+1:]
		queue, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
		if err != nil {
			return err
		}
		_, err = client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: &in.Input})
		return err
	}
}

package awstest

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// QueueRef is how a queue is addressed.
type QueueRef struct {
	Name, URL, ARN string
}

// Queue creates an empty queue that is the test's own, with the attributes
// given (nil: SQS's defaults; FifoQueue makes a FIFO one). The test's end
// deletes it.
func Queue(t testing.TB, client *sqs.Client, attributes map[string]string) QueueRef {
	t.Helper()
	ctx := context.Background()
	q := QueueRef{Name: fmt.Sprintf("sluice-%d", serial.Add(1))}
	if attributes[string(types.QueueAttributeNameFifoQueue)] == "true" {
		q.Name += ".fifo"
	}
	created, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &q.Name, Attributes: maps.Clone(attributes)})
	if err != nil {
		t.Fatalf("awstest: create queue: %v", err)
	}
	q.URL = *created.QueueUrl
	t.Cleanup(func() { _, _ = client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &q.URL}) })
	arn := types.QueueAttributeNameQueueArn
	got, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &q.URL, AttributeNames: []types.QueueAttributeName{arn},
	})
	if err != nil {
		t.Fatalf("awstest: queue attributes: %v", err)
	}
	q.ARN = got.Attributes[string(arn)]
	return q
}

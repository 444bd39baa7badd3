package cloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// The clients behind as many methods as are used. Key templates make use of
// text/template, which finds methods by name; because of that the linker keeps
// all methods of whatever becomes an interface's value. An SDK client that does
// so brings all its operations along: 7 MB, in ingest. These types hold
// functions instead of their client, so that it does not.

// operation is one operation of a client.
type operation[In, Out, Options any] func(context.Context, *In, ...func(*Options)) (*Out, error)

// table calls DynamoDB.
type table struct {
	getItem      operation[dynamodb.GetItemInput, dynamodb.GetItemOutput, dynamodb.Options]
	putItem      operation[dynamodb.PutItemInput, dynamodb.PutItemOutput, dynamodb.Options]
	updateItem   operation[dynamodb.UpdateItemInput, dynamodb.UpdateItemOutput, dynamodb.Options]
	query        operation[dynamodb.QueryInput, dynamodb.QueryOutput, dynamodb.Options]
	batchGetItem operation[dynamodb.BatchGetItemInput, dynamodb.BatchGetItemOutput, dynamodb.Options]
}

func tableOf(c *dynamodb.Client) *table {
	return &table{c.GetItem, c.PutItem, c.UpdateItem, c.Query, c.BatchGetItem}
}

// GetItem calls the operation of that name, as the others do.
func (t *table) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return t.getItem(ctx, in, o...)
}

// PutItem calls the operation.
func (t *table) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return t.putItem(ctx, in, o...)
}

// UpdateItem calls the operation.
func (t *table) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return t.updateItem(ctx, in, o...)
}

// Query calls the operation.
func (t *table) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return t.query(ctx, in, o...)
}

// BatchGetItem calls the operation.
func (t *table) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return t.batchGetItem(ctx, in, o...)
}

// queues calls SQS.
type queues struct {
	sendMessage             operation[sqs.SendMessageInput, sqs.SendMessageOutput, sqs.Options]
	sendMessageBatch        operation[sqs.SendMessageBatchInput, sqs.SendMessageBatchOutput, sqs.Options]
	receiveMessage          operation[sqs.ReceiveMessageInput, sqs.ReceiveMessageOutput, sqs.Options]
	deleteMessageBatch      operation[sqs.DeleteMessageBatchInput, sqs.DeleteMessageBatchOutput, sqs.Options]
	changeMessageVisibility operation[sqs.ChangeMessageVisibilityBatchInput, sqs.ChangeMessageVisibilityBatchOutput, sqs.Options]
	getQueueAttributes      operation[sqs.GetQueueAttributesInput, sqs.GetQueueAttributesOutput, sqs.Options]
}

func queuesOf(c *sqs.Client) *queues {
	return &queues{c.SendMessage, c.SendMessageBatch, c.ReceiveMessage, c.DeleteMessageBatch, c.ChangeMessageVisibilityBatch, c.GetQueueAttributes}
}

// SendMessage calls the operation.
func (q *queues) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return q.sendMessage(ctx, in, o...)
}

// SendMessageBatch calls the operation.
func (q *queues) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return q.sendMessageBatch(ctx, in, o...)
}

// ReceiveMessage calls the operation.
func (q *queues) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return q.receiveMessage(ctx, in, o...)
}

// DeleteMessageBatch calls the operation.
func (q *queues) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return q.deleteMessageBatch(ctx, in, o...)
}

// ChangeMessageVisibilityBatch calls the operation.
func (q *queues) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return q.changeMessageVisibility(ctx, in, o...)
}

// GetQueueAttributes calls the operation.
func (q *queues) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return q.getQueueAttributes(ctx, in, o...)
}

// schedules calls EventBridge Scheduler.
type schedules struct {
	createSchedule operation[scheduler.CreateScheduleInput, scheduler.CreateScheduleOutput, scheduler.Options]
}

// CreateSchedule calls the operation.
func (s *schedules) CreateSchedule(ctx context.Context, in *scheduler.CreateScheduleInput, o ...func(*scheduler.Options)) (*scheduler.CreateScheduleOutput, error) {
	return s.createSchedule(ctx, in, o...)
}

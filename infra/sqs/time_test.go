package sqs_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/sqs"
	"sluice/infra/sqs/sqstest"
)

// distant is an SQS at the end of a network, whose calls take time.
type distant struct {
	*sqstest.SQS

	each time.Duration
}

func (f *distant) ReceiveMessage(ctx context.Context, in *awssqs.ReceiveMessageInput, opts ...func(*awssqs.Options)) (*awssqs.ReceiveMessageOutput, error) {
	<-time.After(f.each)
	return f.SQS.ReceiveMessage(ctx, in, opts...)
}

func (f *distant) SendMessageBatch(ctx context.Context, in *awssqs.SendMessageBatchInput, opts ...func(*awssqs.Options)) (*awssqs.SendMessageBatchOutput, error) {
	<-time.After(f.each)
	return f.SQS.SendMessageBatch(ctx, in, opts...)
}

func (f *distant) DeleteMessageBatch(ctx context.Context, in *awssqs.DeleteMessageBatchInput, opts ...func(*awssqs.Options)) (*awssqs.DeleteMessageBatchOutput, error) {
	<-time.After(f.each)
	return f.SQS.DeleteMessageBatch(ctx, in, opts...)
}

func (f *distant) ChangeMessageVisibilityBatch(ctx context.Context, in *awssqs.ChangeMessageVisibilityBatchInput, opts ...func(*awssqs.Options)) (*awssqs.ChangeMessageVisibilityBatchOutput, error) {
	<-time.After(f.each)
	return f.SQS.ChangeMessageVisibilityBatch(ctx, in, opts...)
}

// newDistant is dead letters at the end of a network, with long polls.
func newDistant() (*sqs.DeadLetters, *distant) {
	f := &distant{SQS: &sqstest.SQS{}, each: 20 * time.Millisecond}
	return sqs.NewDeadLetters(f, f.Queue("dead"), sqs.DeadLetterOptions{Clock: wall}), f
}

// TestListInTime lists many letters in pages, small and large, each well
// within the time of a function, and of no more bytes than there may be.
func TestListInTime(t *testing.T) {
	t.Parallel()
	const count, most = 1000, 2 << 20
	for _, c := range []struct{ bytes, pages int }{
		{100, 1},
		{10 << 10, 5},
	} {
		t.Run(fmt.Sprint(c.bytes), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, _ := newDistant()
				want := lettersTo(count, c.bytes)
				require.NoError(t, d.Put(context.Background(), want))
				var got []string
				pages := 0
				for from, more := "", true; more; more = from != "" {
					begin := wall.Now()
					page, next, err := d.List(context.Background(), core.DeadLetterFilter{MaxBytes: most}, from, count)
					require.NoError(t, err)
					require.Less(t, wall.Now().Sub(begin), 10*time.Second)
					var size int64
					for i := range page {
						size += page[i].Size()
					}
					require.LessOrEqual(t, size, int64(most))
					got, from = append(got, ids(page)...), next
					pages++
				}
				require.Equal(t, ids(want), got)
				require.Equal(t, c.pages, pages)
			})
		})
	}
}

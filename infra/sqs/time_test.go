package sqs_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
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

	each  time.Duration
	queue string

	under, most atomic.Int64 // calls under way: now, and at most
}

func (f *distant) pass() {
	n := f.under.Add(1)
	for most := f.most.Load(); n > most && !f.most.CompareAndSwap(most, n); most = f.most.Load() {
	}
	<-time.After(f.each)
	f.under.Add(-1)
}

func (f *distant) ReceiveMessage(ctx context.Context, in *awssqs.ReceiveMessageInput, opts ...func(*awssqs.Options)) (*awssqs.ReceiveMessageOutput, error) {
	f.pass()
	return f.SQS.ReceiveMessage(ctx, in, opts...)
}

func (f *distant) SendMessageBatch(ctx context.Context, in *awssqs.SendMessageBatchInput, opts ...func(*awssqs.Options)) (*awssqs.SendMessageBatchOutput, error) {
	f.pass()
	return f.SQS.SendMessageBatch(ctx, in, opts...)
}

func (f *distant) DeleteMessageBatch(ctx context.Context, in *awssqs.DeleteMessageBatchInput, opts ...func(*awssqs.Options)) (*awssqs.DeleteMessageBatchOutput, error) {
	f.pass()
	return f.SQS.DeleteMessageBatch(ctx, in, opts...)
}

func (f *distant) ChangeMessageVisibilityBatch(ctx context.Context, in *awssqs.ChangeMessageVisibilityBatchInput, opts ...func(*awssqs.Options)) (*awssqs.ChangeMessageVisibilityBatchOutput, error) {
	f.pass()
	return f.SQS.ChangeMessageVisibilityBatch(ctx, in, opts...)
}

// newDistant is dead letters at the end of a network, with long polls.
func newDistant() (*sqs.DeadLetters, *distant) {
	f := &distant{SQS: &sqstest.SQS{}, each: 20 * time.Millisecond}
	f.queue = f.Queue("dead")
	return sqs.NewDeadLetters(f, f.queue, sqs.DeadLetterOptions{Clock: wall}), f
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

// TestManySideBySide puts, takes, gives back and removes as many letters as a
// batch may have items, in less time than a lease leaves for it.
func TestManySideBySide(t *testing.T) {
	t.Parallel()
	const count, abreast = 10_000, 16
	synctest.Test(t, func(t *testing.T) {
		d, f := newDistant()
		within := func(what string, most time.Duration, call func() error) {
			t.Helper()
			begin := wall.Now()
			f.most.Store(0)
			require.NoError(t, call(), what)
			require.LessOrEqual(t, wall.Now().Sub(begin), most, what)
			require.EqualValues(t, abreast, f.most.Load(), what)
		}
		requests := func(letters int) time.Duration { // a round of requests, each of ten letters, takes as long as one
			return time.Duration((letters/10+abreast-1)/abreast) * f.each
		}
		within("put", requests(count), func() error { return d.Put(context.Background(), lettersTo(count, 1)) })
		require.Equal(t, count, f.Len(f.queue))

		var taken []core.DeadLetter
		receives := time.Duration(210) * f.each
		within("take", receives+requests(2000)+requests(100), func() (err error) {
			now := wall.Now()
			taken, err = d.Take(context.Background(), everything, 2000, now, now.Add(time.Minute))
			return err
		})
		require.Len(t, taken, 2000)
		within("give back", requests(1000), func() error { return d.Settle(context.Background(), nil, taken[:1000]) })
		within("remove", requests(1000), func() error { return d.Settle(context.Background(), taken[1000:], nil) })
		require.Equal(t, count-1000, f.Len(f.queue))
	})
}

// TestNoneBehindAFailure begins no request once one has failed, and returns
// when those under way are through.
func TestNoneBehindAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, f := newDistant()
		f.Fault = func(c sqstest.Call) sqstest.Fault {
			if c.Op == "SendMessageBatch" && c.Nth == 20 {
				return sqstest.Unsent
			}
			return sqstest.None
		}
		err := d.Put(context.Background(), lettersTo(1000, 1))
		require.Equal(t, core.Unavailable, core.CodeOf(err), "%v", err)
		require.Zero(t, f.under.Load())
		require.Less(t, f.Calls("SendMessageBatch"), 20+16)

		f.Fault = nil
		large := slices.Insert(lettersTo(50, 1), 25, letter(99, 1<<20))
		err = d.Put(context.Background(), large)
		require.Equal(t, core.TooLarge, core.CodeOf(err), "%v", err)
		require.Zero(t, f.under.Load())
	})
}

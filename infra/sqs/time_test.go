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
	for most := f.most.Load(); n > most; most = f.most.Load() {
		f.most.CompareAndSwap(most, n)
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
		{5 << 10, 3},
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

// taker takes everything, and its time for it.
type taker struct{ each time.Duration }

func (s taker) Send(context.Context, *core.Batch) core.Response {
	<-time.After(s.each)
	return core.Response{Status: 200}
}

// TestReplayInTime replays a few letters of a long queue: the last look for
// more begins when there is hardly time for it, and the letters are counted all
// the same within the time of a function, with room to answer.
func TestReplayInTime(t *testing.T) {
	t.Parallel()
	config := core.NewConfig()
	crm := core.NewDestination("crm")
	crm.Type, crm.Path = core.TypeFile, "/dev/null"
	rare := core.NewBuffer("rare")
	rare.From, rare.To = []string{"in"}, "crm"
	config.Sources = []core.Source{core.NewSource("in")}
	config.Destinations, config.Buffers = []core.Destination{crm}, []core.Buffer{rare}
	catalog, err := core.NewCatalog(config, nil)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		d, f := newDistant()
		letters := lettersTo(3000, 1)
		for i := range letters[:5] {
			letters[i].Buffer, letters[i].Destination = "rare", "crm"
		}
		require.NoError(t, d.Put(context.Background(), letters[:10]))
		require.NoError(t, d.Put(context.Background(), letters[10:]))
		f.each = 100 * time.Millisecond
		r := core.NewReplayer(catalog, core.Ports{Clock: wall, Sender: func(string) core.Sender { return taker{time.Second} }}, d)
		begin := wall.Now()
		ctx, cancel := context.WithTimeout(context.Background(), 29*time.Second)
		defer cancel()
		report, err := r.Replay(ctx, core.ReplayRequest{Filter: core.DeadLetterFilter{Buffer: "rare"}, Budget: 12 * time.Second, Chunk: 100})
		require.NoError(t, err)
		require.Equal(t, core.ReplayReport{Replayed: 5}, report)
		require.Greater(t, wall.Now().Sub(begin), 22*time.Second, "two looks of ten seconds, and more")
		require.Less(t, wall.Now().Sub(begin), 28*time.Second)
		n, err := d.Count(context.Background(), core.DeadLetterFilter{Buffer: "orders"})
		require.NoError(t, err)
		require.Equal(t, 1000, n, "what a look has seen is visible again")
	})
}

// TestHardlyTime sees at least something however little time there is, as a
// page without letters would be the end of a list.
func TestHardlyTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, _ := newDistant()
		require.NoError(t, d.Put(context.Background(), lettersTo(100, 1)))
		for _, c := range []struct {
			left time.Duration
			want int
		}{
			{time.Second, 10},
			{4*time.Second + 50*time.Millisecond, 30},
			{10 * time.Second, 100},
		} {
			ctx, cancel := context.WithTimeout(context.Background(), c.left)
			page, next, err := d.List(ctx, everything, "", 1000)
			require.NoError(t, err)
			require.Len(t, page, c.want)
			require.Equal(t, c.want < 100, next != "", "%v", c.left)
			require.NoError(t, ctx.Err())
			cancel()
		}
	})
}

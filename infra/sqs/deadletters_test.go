package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/message"
	"sluice/infra/sqs"
	"sluice/infra/sqs/sqstest"
)

var everything = core.DeadLetterFilter{}

// letter is the n-th letter, whose message is at least so many bytes.
func letter(n, bytes int) core.DeadLetter {
	l := core.DeadLetter{ID: fmt.Sprintf("b/%d", n), Batch: "b", Buffer: "orders", LastErrorAt: core.Millis(n)}
	l.Item.Seq, l.Item.Body = uint64(n), []byte(strings.Repeat("x", bytes))
	return l
}

func lettersTo(n, bytes int) []core.DeadLetter {
	out := make([]core.DeadLetter, n)
	for i := range out {
		out[i] = letter(i+1, bytes)
	}
	return out
}

func ids(letters []core.DeadLetter) []string {
	out := make([]string, len(letters))
	for i := range letters {
		out[i] = letters[i].ID
	}
	return out
}

// dead is dead letters on a fake of their own, and what they report.
type dead struct {
	*sqs.DeadLetters
	fake     *sqstest.SQS
	queue    string
	reported []string
}

func newDead() *dead {
	d := &dead{fake: &sqstest.SQS{}}
	d.queue = d.fake.Queue("dead")
	d.DeadLetters = sqs.NewDeadLetters(d.fake, d.queue, sqs.DeadLetterOptions{
		Clock: wall, ShortPolls: true, Failed: func(op string, err error) { d.reported = append(d.reported, fmt.Sprintf("%s: %v", op, err)) },
	})
	return d
}

// stored are the ids of the letters in the queue, as often as they are there.
func (d *dead) stored(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, body := range d.fake.Bodies(d.queue) {
		l, err := message.DecodeLetter([]byte(body))
		require.NoError(t, err)
		out = append(out, l.ID)
	}
	return out
}

// TestEachCallFails breaks every call in turn, before and after it is carried
// out: no letter is lost, whatever of them was done.
func TestEachCallFails(t *testing.T) {
	t.Parallel()
	for _, fault := range []sqstest.Fault{sqstest.Unsent, sqstest.Lost} {
		for _, op := range []string{"ReceiveMessage", "ChangeMessageVisibilityBatch", "DeleteMessageBatch", "GetQueueAttributes"} {
			synctest.Test(t, func(t *testing.T) {
				d := newDead()
				require.NoError(t, d.Put(context.Background(), lettersTo(25, 10)))
				broken := true
				d.fake.Fault = func(c sqstest.Call) sqstest.Fault {
					if broken && c.Op == op {
						return fault
					}
					return sqstest.None
				}
				// a failed call may leave letters unseen for a while: no longer than this
				const whole = time.Minute
				failed := 0
				check := func(err error) {
					if err != nil {
						failed++
						require.Equal(t, core.Unavailable, core.CodeOf(err), "%s: %v", op, err)
					}
					<-time.After(whole)
				}
				_, _, err := d.List(context.Background(), everything, "", 10)
				check(err)
				_, err = d.Count(context.Background(), everything)
				check(err)
				now := wall.Now()
				taken, err := d.Take(context.Background(), everything, 10, now, now.Add(whole))
				check(err)
				check(d.Settle(context.Background(), nil, taken))
				now = wall.Now()
				taken, err = d.Take(context.Background(), everything, 1, now, now.Add(whole))
				check(err)
				check(d.Settle(context.Background(), taken, nil))
				require.Positive(t, failed+len(d.reported), op)

				broken = false
				left, _, err := d.List(context.Background(), everything, "", 100)
				require.NoError(t, err)
				require.GreaterOrEqual(t, len(left), 24, op)
				require.ElementsMatch(t, ids(left), d.stored(t), op)
			})
		}
	}
}

// TestPoison finds messages that are no dead letters: they stay, are
// reported, and keep nobody from the others.
func TestPoison(t *testing.T) {
	t.Parallel()
	d := newDead()
	for _, body := range []string{"hello", `{"v":2}`, `{"v":1}`} {
		_, err := d.fake.SendMessage(context.Background(), &awssqs.SendMessageInput{QueueUrl: &d.queue, MessageBody: &body})
		require.NoError(t, err)
	}
	require.NoError(t, d.Put(context.Background(), lettersTo(2, 10)))
	listed, _, err := d.List(context.Background(), everything, "", 10)
	require.NoError(t, err)
	require.Equal(t, []string{"b/1", "b/2"}, ids(listed))
	require.Len(t, d.reported, 3)
	require.ElementsMatch(t, []string{
		"read a dead letter: message message-1: no dead letter: not a JSON object with a version",
		"read a dead letter: message message-2: a dead letter of version 2; this one reads version 1",
		"read a dead letter: message message-3: a dead letter without id",
	}, cutAll(d.reported))

	n, err := d.Count(context.Background(), everything)
	require.NoError(t, err)
	require.Equal(t, 5, n, "all that is in the queue")
	n, err = d.Count(context.Background(), core.DeadLetterFilter{Buffer: "orders"})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	now := wall.Now()
	taken, err := d.Take(context.Background(), everything, 10, now, now.Add(time.Minute))
	require.NoError(t, err)
	require.NoError(t, d.Settle(context.Background(), taken, nil))
	require.Equal(t, []string{"hello", `{"v":2}`, `{"v":1}`}, d.fake.Bodies(d.queue))
}

// cutAll cuts the parser's own words off.
func cutAll(reports []string) []string {
	out := slices.Clone(reports)
	for i := range out {
		out[i], _, _ = strings.Cut(out[i], ": invalid character")
	}
	return out
}

// TestLongQueue holds a look to its bounds: in a queue that is longer, a list
// sees no more than 5,000 messages, and a take reads no more than a little ahead.
func TestLongQueue(t *testing.T) {
	t.Parallel()
	d := newDead()
	require.NoError(t, d.Put(context.Background(), lettersTo(6000, 1)))
	listed, next, err := d.List(context.Background(), everything, "", 10)
	require.NoError(t, err)
	require.Len(t, listed, 10)
	require.NotEmpty(t, next)
	require.Equal(t, 500, d.fake.Calls("ReceiveMessage"))

	before := d.fake.Calls("ReceiveMessage")
	now := wall.Now()
	taken, err := d.Take(context.Background(), everything, 50, now, now.Add(time.Minute))
	require.NoError(t, err)
	require.Len(t, taken, 50)
	require.Equal(t, 15, d.fake.Calls("ReceiveMessage")-before)
	require.True(t, slices.IsSortedFunc(taken, func(a, b core.DeadLetter) int { return int(a.LastErrorAt - b.LastErrorAt) }))

	require.Equal(t, 6000, d.fake.Len(d.queue))
}

// TestLongPolls shows why a look does not end at the first empty answer of SQS.
func TestLongPolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := &sqstest.SQS{Sampling: true}
		url := fake.Queue("dead")
		for shortPolls, want := range map[bool]int{true: 12, false: 24} {
			l := sqs.NewDeadLetters(fake, url, sqs.DeadLetterOptions{Clock: wall, ShortPolls: shortPolls})
			if fake.Len(url) == 0 {
				require.NoError(t, l.Put(context.Background(), lettersTo(24, 1)))
			}
			listed, _, err := l.List(context.Background(), everything, "", 100)
			require.NoError(t, err)
			require.Len(t, listed, want)
		}
	})
}

// TestLookTakesTooLong ends a look by its time.
func TestLookTakesTooLong(t *testing.T) {
	t.Parallel()
	now := wall.Now()
	fake := &sqstest.SQS{Now: func() time.Time { return now.Time() }}
	fake.Fault = func(c sqstest.Call) sqstest.Fault {
		if c.Op == "ReceiveMessage" {
			now = now.Add(3 * time.Second)
		}
		return sqstest.None
	}
	l := sqs.NewDeadLetters(fake, fake.Queue("dead"), sqs.DeadLetterOptions{Clock: core.ClockFunc(func() core.Millis { return now }), ShortPolls: true})
	require.NoError(t, l.Put(context.Background(), lettersTo(100, 1)))
	listed, next, err := l.List(context.Background(), everything, "", 100)
	require.NoError(t, err)
	require.NotEmpty(t, next, "there is more")
	require.Len(t, listed, 40, "four receives of three seconds each")
}

// TestPassedOn settles letters whose messages are gone or another's: nothing
// happens to them, and nothing fails.
func TestPassedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDead()
		require.NoError(t, d.Put(context.Background(), lettersTo(3, 10)))
		take := func(lease time.Duration) []core.DeadLetter {
			now := wall.Now()
			taken, err := d.Take(context.Background(), everything, 10, now, now.Add(lease))
			require.NoError(t, err)
			return taken
		}
		gone := take(time.Minute)
		require.NoError(t, d.Settle(context.Background(), gone[:1], nil))
		require.NoError(t, d.Settle(context.Background(), gone[:1], gone[:1]), "done, and then given back")
		<-time.After(time.Minute)
		require.Len(t, take(time.Hour), 2)
		before := d.fake.Calls("ChangeMessageVisibilityBatch")
		require.NoError(t, d.Settle(context.Background(), gone, gone), "another has them")
		require.Equal(t, before, d.fake.Calls("ChangeMessageVisibilityBatch"), "a lease that has ended is not given back")
		require.Empty(t, take(time.Minute))
		require.Len(t, d.stored(t), 2)
	})
}

// TestShortLease shows that a lease is never shorter than it is to be.
func TestShortLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDead()
		require.NoError(t, d.Put(context.Background(), lettersTo(1, 10)))
		for _, passed := range []time.Duration{0, 1400 * time.Millisecond, 700 * time.Millisecond} {
			<-time.After(passed)
			now := wall.Now()
			taken, err := d.Take(context.Background(), everything, 10, now, now.Add(1500*time.Millisecond))
			require.NoError(t, err)
			require.Equal(t, passed != 1400*time.Millisecond, len(taken) == 1, "%v after another call", passed)
		}
	})
}

// TestFirstOfDoubles shows the letter that was put first, whichever of its
// messages comes first, in the order of that one.
func TestFirstOfDoubles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			d := newDead()
			d.fake.Disorder = rand.New(rand.NewPCG(seed, seed))
			want := lettersTo(3, 10)
			require.NoError(t, d.Put(context.Background(), want))
			<-time.After(time.Second)
			again := want[0]
			again.LastErrorAt, again.Attempts = 10, 9 // after the others
			require.NoError(t, d.Put(context.Background(), []core.DeadLetter{again}))
			for _, limit := range []int{1, 2, 10} {
				var all []core.DeadLetter
				for from, more := "", true; more; more = from != "" {
					page, next, err := d.List(context.Background(), everything, from, limit)
					require.NoError(t, err)
					all, from = append(all, page...), next
				}
				require.Equal(t, want, all, "seed %d, %d at a time", seed, limit)
			}
			page, next, err := d.List(context.Background(), core.DeadLetterFilter{MaxBytes: 3 * want[0].Size()}, "", 10)
			require.NoError(t, err)
			require.Equal(t, want, page, "seed %d: each counts once against the bytes", seed)
			require.Empty(t, next)
		})
	}
}

// TestFirstOfDoublesGoesBack has a letter's first message come after a later one
// that is older by its own time: what it had pushed out of the page is on the next.
func TestFirstOfDoublesGoesBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			d := newDead()
			d.fake.Disorder = rand.New(rand.NewPCG(seed, seed))
			want := []core.DeadLetter{letter(5, 10), letter(10, 10)}
			require.NoError(t, d.Put(context.Background(), want))
			<-time.After(time.Second)
			again := want[1]
			again.LastErrorAt = 1
			require.NoError(t, d.Put(context.Background(), []core.DeadLetter{again}))
			var all []core.DeadLetter
			for from, more := "", true; more; more = from != "" {
				page, next, err := d.List(context.Background(), everything, from, 1)
				require.NoError(t, err)
				all, from = append(all, page...), next
			}
			require.Equal(t, want, all, "seed %d", seed)
		})
	}
}

// TestSettleRetries tries again what SQS did not do at once.
func TestSettleRetries(t *testing.T) {
	t.Parallel()
	d := newDead()
	require.NoError(t, d.Put(context.Background(), lettersTo(4, 10)))
	now := wall.Now()
	taken, err := d.Take(context.Background(), everything, 10, now, now.Add(time.Minute))
	require.NoError(t, err)
	refusals := map[string]int{"DeleteMessageBatch": 2, "ChangeMessageVisibilityBatch": 2}
	d.fake.Refuse = func(op string, _ int) (string, bool) {
		if refusals[op]--; refusals[op] >= 0 {
			return "InternalError", false
		}
		return "", false
	}
	require.NoError(t, d.Settle(context.Background(), taken[:2], taken[2:]))
	require.Equal(t, ids(taken[2:]), d.stored(t))
	for _, code := range []string{"ReceiptHandleIsInvalid", "AWS.SimpleQueueService.MessageNotInflight", "InvalidParameterValue"} {
		d.fake.Refuse = func(string, int) (string, bool) { return code, true }
		require.NoError(t, d.Settle(context.Background(), taken, nil), "%s: it has passed on", code)
	}
	d.fake.Refuse = nil
	again, err := d.Take(context.Background(), everything, 10, now, now.Add(time.Minute))
	require.NoError(t, err)
	require.Equal(t, ids(taken[2:]), ids(again))

	d.fake.Refuse = func(string, int) (string, bool) { return "InternalError", false }
	err = d.Settle(context.Background(), again, nil)
	require.Equal(t, core.Unavailable, core.CodeOf(err), "%v", err)
}

func TestBadReceiptAndPlace(t *testing.T) {
	t.Parallel()
	d := newDead()
	for _, receipt := range []string{"", "x", "12", "x h"} {
		err := d.Settle(context.Background(), []core.DeadLetter{{ID: "b/1", Receipt: receipt}}, nil)
		require.Equal(t, core.Invalid, core.CodeOf(err), "%q: %v", receipt, err)
		err = d.Settle(context.Background(), nil, []core.DeadLetter{{ID: "b/1", Receipt: receipt}})
		require.Equal(t, core.Invalid, core.CodeOf(err), "%q: %v", receipt, err)
	}
	for _, from := range []string{"x", "!", "bnVsbA=", "W10"} {
		_, _, err := d.List(context.Background(), everything, from, 1)
		require.Equal(t, core.Invalid, core.CodeOf(err), "%q: %v", from, err)
	}
}

// TestCut ends a caller's ctx in the middle of a look: what it has received
// does not stay unseen.
func TestCut(t *testing.T) {
	t.Parallel()
	d := newDead()
	require.NoError(t, d.Put(context.Background(), lettersTo(25, 1)))
	ctx, cancel := context.WithCancel(context.Background())
	d.fake.Fault = func(c sqstest.Call) sqstest.Fault {
		if c.Op == "ReceiveMessage" && c.Nth == 3 {
			cancel()
		}
		return sqstest.None
	}
	_, _, err := d.List(ctx, everything, "", 100)
	require.Equal(t, core.Canceled, core.CodeOf(err), "%v", err)
	require.ErrorIs(t, err, context.Canceled)
	listed, _, err := d.List(context.Background(), everything, "", 100)
	require.NoError(t, err)
	require.Len(t, listed, 25)
}

func TestNoQueue(t *testing.T) {
	t.Parallel()
	fake := &sqstest.SQS{}
	l := sqs.NewDeadLetters(fake, "https://sqs.test/none", sqs.DeadLetterOptions{Clock: wall})
	_, err := l.Count(context.Background(), everything)
	require.Equal(t, core.Unavailable, core.CodeOf(err), "%v", err)
	require.Error(t, errors.Unwrap(err))
}

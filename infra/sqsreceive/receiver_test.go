package sqsreceive

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"sluice/core"
)

func bodies(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("b%03d", i))
	}
	return all
}

func TestTakesAndDeletes(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, b *basin, start func() func() time.Duration) {
		s.put("", bodies(105)...)
		end := start()
		sleep(time.Second)
		got := b.all()
		slices.Sort(got)
		require.Equal(t, bodies(105), got)
		require.Empty(t, s.left())
		sleep(30 * time.Second) // the extra pollers have ended
		polls := s.polled()
		sleep(time.Minute)
		require.Equal(t, polls+3, s.polled(), "an idle queue costs a poll in 20 seconds")
		require.Zero(t, end())
		require.Empty(t, b.reports())
	})
}

// What is refused stays, as long as the queue says, and nothing waits for it.
func TestRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, b *basin, start func() func() time.Duration) {
		b.errs["b"], b.errs["d"] = core.Errorf(core.TooLarge, "too large"), errors.New("unknown")
		s.put("", "a", "b", "c", "d", "e")
		end := start()
		sleep(time.Second)
		s.put("", "f")
		sleep(time.Second)
		require.Equal(t, []string{"a", "c", "e", "f"}, b.all())
		require.Equal(t, []string{"b", "d"}, s.left())
		require.Empty(t, s.hidden())
		b.set(func() { clear(b.errs) })
		sleep(30 * time.Second)
		require.Empty(t, s.left())
		require.Equal(t, 2, s.most())
		require.Equal(t, "take messages from a queue: too large", b.reports()[0])
		end()
	})
}

// Without room nothing is received again and again.
func TestFull(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, b *basin, start func() func() time.Duration) {
		b.whole = errFull
		s.put("", bodies(200)...)
		end := start()
		sleep(3 * time.Hour)
		require.Equal(t, 8+4, s.polled(), "eight answers wait, and then each poller")
		require.Equal(t, 1, s.most())
		require.Len(t, s.left(), 200)
		b.set(func() { b.whole = nil })
		sleep(31 * time.Second)
		require.Empty(t, s.left())
		require.Len(t, b.all(), 200)
		require.Equal(t, 1, s.most())
		end()
	})
}

// Where a group has no room, the others have, of its batch and of later ones.
func TestOneIsFull(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, b *basin, start func() func() time.Duration) {
		b.errs["b"], b.errs["d"] = errFull, core.Errorf(core.Invalid, "refused")
		s.put("x", "a", "b", "c")
		s.put("y", "d", "e")
		s.put("z", "f")
		s.put("", "g")
		end := start()
		sleep(time.Second / 2)
		require.Equal(t, []string{"a", "f", "g"}, b.all())
		require.Equal(t, []string{"b 31", "c 31"}, s.hidden())
		s.put("z", "h")
		s.put("x", "i")
		sleep(time.Minute)
		require.Equal(t, []string{"a", "f", "g", "h"}, b.all())
		b.set(func() { delete(b.errs, "b") })
		sleep(31 * time.Second)
		require.Equal(t, []string{"a", "f", "g", "h", "b", "c", "i"}, b.all())
		require.Equal(t, []string{"d", "e"}, s.left())
		end()
	})
}

// SQS counts 12 hours from when a message is received.
func TestKeptTooLong(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, b *basin, start func() func() time.Duration) {
		b.errs["a"] = errFull
		s.put("", "a")
		end := start()
		sleep(11*time.Hour + time.Minute)
		require.Equal(t, 2, s.most())
		require.Contains(t, s.hidden(), "a 0")
		end()
	})
}

// At the end what waits is visible at once.
func TestEndWhileFull(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, b *basin, start func() func() time.Duration) {
		b.whole = errFull
		s.put("", "a", "b")
		end := start()
		sleep(10 * time.Second)
		require.Zero(t, end())
		require.Equal(t, []string{"a 0", "b 0"}, s.hidden()[len(s.hidden())-2:])
		require.Len(t, s.look(), 2)
	})
}

func TestEndDuringAPoll(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, _ *basin, start func() func() time.Duration) {
		end := start()
		sleep(10 * time.Second)
		require.Zero(t, end())
		require.Len(t, s.cut, 1)
		require.Equal(t, 1, s.polled())
	})
}

// What is being taken at the end is taken, and deleted; what hangs is given up.
func TestEndWhileTaking(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"it ends": 3 * time.Second, "it hangs": time.Minute} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *shelf, b *basin, start func() func() time.Duration) {
				b.stall = make(chan struct{})
				s.put("", "a")
				end := start()
				sleep(time.Second)
				opened := time.AfterFunc(lasts, func() { close(b.stall) })
				defer opened.Stop()
				require.Equal(t, min(lasts, 5*time.Second), end())
				require.Equal(t, lasts > 5*time.Second, slices.Contains(s.left(), "a"))
			})
		})
	}
}

// A deletion is made again for what has failed; what stays comes again.
func TestDeletionsThatFail(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, b *basin, start func() func() time.Duration) {
		tried := map[string]int{}
		s.deletion = func(body string) string {
			tried[body]++
			if body == "b" && tried[body] < 3 || body == "c" && tried[body] < 4 {
				return "InternalError"
			}
			return ""
		}
		s.put("", "a", "b", "c")
		end := start()
		sleep(time.Second)
		require.Equal(t, []string{"c"}, s.left())
		require.Equal(t, map[string]int{"a": 1, "b": 3, "c": 3}, tried)
		require.Equal(t, []string{"delete messages from a queue: InternalError"}, b.reports())
		sleep(30 * time.Second)
		require.Empty(t, s.left())
		require.Equal(t, []string{"a", "b", "c", "c"}, b.all())
		end()
	})
}

func TestCallsThatFail(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, b *basin, start func() func() time.Duration) {
		n := 0
		s.broken = func(op string) error {
			if n++; op == "delete" && n < 3 {
				return errAway
			}
			return nil
		}
		s.put("", "a")
		end := start()
		sleep(time.Second)
		require.Empty(t, s.left())
		require.Empty(t, b.reports())
		end()
	})
}

// A queue that cannot be reached is tried again, more and more seldom.
func TestDown(t *testing.T) {
	inBubble(t, func(t *testing.T, s *shelf, b *basin, start func() func() time.Duration) {
		s.down = &smithy.GenericAPIError{Code: "QueueDoesNotExist", Message: "https://sqs.example.com/1/q"}
		s.put("", "a")
		end := start()
		sleep(time.Minute + 2*time.Second)
		require.Equal(t, 7, s.polled(), "after 1, 2, 4, 8, 16 and 30 seconds")
		require.Equal(t, "receive from a queue: SQS answers QueueDoesNotExist", b.reports()[0])
		s.set(func() { s.down = nil })
		sleep(30 * time.Second)
		require.Empty(t, s.left())
		require.Zero(t, end())
	})
}

func TestErrorsDoNotNameTheQueue(t *testing.T) {
	t.Parallel()
	err := failed(&smithy.OperationError{Err: &url.Error{Op: "Post", URL: "https://queue.example.com/1/q", Err: errAway}})
	require.Equal(t, core.Unavailable, core.CodeOf(err))
	require.Equal(t, "no answer from SQS: away", err.Error())
}

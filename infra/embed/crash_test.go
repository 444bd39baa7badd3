package embed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

const now = core.Millis(1_700_000_000_000)

var ctx = context.Background()

func calm() *core.Policy {
	return &core.Policy{MaxItems: 10, MaxBytes: 1 << 20, IdleTimeout: time.Second, MaxWait: time.Minute,
		CapBytes: 1 << 20, Concurrency: 4, Lease: time.Minute, MaxHold: time.Minute}
}

func ref(key string) core.Ref { return core.Ref{Buffer: "b", Key: key} }

// request is events of 100 bytes each for a group.
func request(key string, ids ...string) core.Part {
	p := core.Part{Ref: ref(key), Life: "life" + key, Policy: calm()}
	for _, id := range ids {
		body := []byte(fmt.Sprintf("%-100s", id))
		p.Events = append(p.Events, core.Event{ID: id, Source: "s", ReceivedAt: now, Body: body})
	}
	return p
}

func mustOpen(t testing.TB, fs FS, o Options) *Store {
	t.Helper()
	o.FS = fs
	s, err := Open("data", o)
	require.NoError(t, err)
	t.Cleanup(func() { kill(t, s) })
	return s
}

// held are the ids of a group's live items, in order.
func held(t testing.TB, s *Store, key string) (ids []string) {
	t.Helper()
	g, err := s.Group(ctx, ref(key))
	require.NoError(t, err)
	page, err := s.Items(ctx, ref(key), nil, core.Span{From: 1, To: g.Tail})
	require.NoError(t, err)
	for _, it := range page.Items {
		require.Equal(t, fmt.Sprintf("%-100s", it.ID), string(it.Body))
		ids = append(ids, it.ID)
	}
	return ids
}

// claim takes the next n items of a group.
func claim(s *Store, key string, n uint64) (c core.Claim, ids []string, err error) {
	g, err := s.Group(ctx, ref(key))
	if err != nil || g.Pending() == 0 {
		return c, nil, err
	}
	page, err := s.Items(ctx, ref(key), nil, core.Span{From: g.Head + 1, To: min(g.Head+n, g.Tail)})
	if err != nil {
		return c, nil, err
	}
	_, err = s.Update(ctx, ref(key), nil, func(g *core.Group) (err error) {
		c, err = g.Claim(core.Taking{From: g.Head + 1, To: page.End, Through: page.Through,
			Items: len(page.Items), NextAt: page.NextAt, Reason: core.ReasonItems}, calm(), now)
		return err
	})
	for _, it := range page.Items {
		ids = append(ids, it.ID)
	}
	return c, ids, err
}

func ack(s *Store, key string, c core.Claim) error {
	_, err := s.Update(ctx, ref(key), nil, func(g *core.Group) error { return g.Ack(c.ID, c.Lease, calm(), now) })
	return err
}

// ledger is what the callers of a store were told, for one group.
type ledger struct {
	mu       sync.Mutex
	begun    [][]string // requests, in order of their ends
	accepted map[string]bool
	acking   map[string]bool // their ack has begun
	acked    map[string]bool
}

func newLedger() *ledger {
	return &ledger{accepted: map[string]bool{}, acking: map[string]bool{}, acked: map[string]bool{}}
}

func (l *ledger) note(ids []string, in ...map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, set := range in {
		for _, id := range ids {
			set[id] = true
		}
	}
}

// load is writers and deliverers of one group each, until stop is closed.
func load(s *Store, ledgers map[string]*ledger, stop <-chan struct{}) *sync.WaitGroup {
	var wg sync.WaitGroup
	running := func() bool {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	for key, l := range ledgers {
		wg.Go(func() {
			for i := 0; running(); i++ {
				ids := make([]string, 1+i%7)
				for j := range ids {
					ids[j] = fmt.Sprintf("%s-%d-%d", key, i, j)
				}
				l.mu.Lock()
				l.begun = append(l.begun, ids)
				l.mu.Unlock()
				p := request(key, ids...)
				p.Policy.CapItems = 100 // wait for the deliverer
				switch _, err := s.Append(ctx, now, []core.Part{p}); {
				case err == nil:
					l.note(ids, l.accepted)
				case core.CodeOf(err) == core.Full:
					runtime.Gosched()
				default:
					return
				}
			}
		})
		wg.Go(func() {
			for running() {
				c, ids, err := claim(s, key, 10)
				if err != nil || len(ids) == 0 {
					continue
				}
				l.note(ids, l.acking)
				if ack(s, key, c) == nil {
					l.note(ids, l.acked)
				}
			}
		})
	}
	return &wg
}

// TestCrashUnderLoad takes what a host crash leaves at moments in the middle of
// everything, and compares it with what callers were told by then.
func TestCrashUnderLoad(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	fs := newMemFS()
	for round := range 8 {
		s := mustOpen(t, fs, small())
		ledgers := map[string]*ledger{}
		for i := range 4 {
			ledgers[fmt.Sprintf("%d-%d", round, i)] = newLedger()
		}
		stop := make(chan struct{})
		wg := load(s, ledgers, stop)
		var after *memFS
		for range 10 {
			commits(s, 1+r.IntN(20))
			told := copyLedgers(ledgers)
			after = fs.crash(r)
			begun := copyLedgers(ledgers)
			require.Zero(t, s.Lost())
			checkCrash(t, after.crash(r), told, begun)
		}
		close(stop)
		wg.Wait()
		kill(t, s)
		fs = after
	}
}

// commits waits until so many more commits are durable.
func commits(s *Store, n int) {
	for range n {
		s.mu.Lock()
		c := s.log.fill
		s.mu.Unlock()
		c.wait()
	}
}

func copyLedgers(from map[string]*ledger) map[string]*ledger {
	to := map[string]*ledger{}
	for key, l := range from {
		l.mu.Lock()
		c := newLedger()
		c.begun = slices.Clone(l.begun)
		for id := range l.accepted {
			c.accepted[id] = true
		}
		for id := range l.acking {
			c.acking[id] = true
		}
		for id := range l.acked {
			c.acked[id] = true
		}
		l.mu.Unlock()
		to[key] = c
	}
	return to
}

// checkCrash starts on what a crash left. told is what callers had been told
// before it, begun what they had asked for by then, or later.
func checkCrash(t *testing.T, fs *memFS, told, begun map[string]*ledger) {
	t.Helper()
	s := mustOpen(t, fs, small())
	defer kill(t, s)
	rep := s.Report()
	require.Empty(t, rep.Losses, "%+v", rep)
	require.Empty(t, rep.Missing, "%+v", rep)
	require.Empty(t, rep.Broken)
	for _, d := range rep.Damaged {
		require.True(t, d.Torn, "%+v", rep)
	}
	for key, l := range told {
		there := map[string]bool{}
		for _, id := range held(t, s, key) {
			require.False(t, there[id], "%s twice", id)
			there[id] = true
			require.False(t, l.acked[id], "%s is there again after its ack; %+v", id, rep)
		}
		for id := range l.accepted {
			require.True(t, there[id] || begun[key].acking[id], "%s was accepted and is gone; %+v\n%+v", id, rep, must(s.Group(ctx, ref(key))))
		}
		for _, ids := range begun[key].begun {
			if !slices.ContainsFunc(ids, func(id string) bool { return there[id] }) {
				continue
			}
			for _, id := range ids {
				require.True(t, there[id] || begun[key].acking[id], "half of the request %v is there", ids)
			}
		}
	}
	require.Zero(t, s.Lost())
}

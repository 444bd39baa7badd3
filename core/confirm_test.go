package core_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// sharedLog makes a store look as one does that many machines share: some of a
// group's numbers were left void by writers that died, and the writers of
// others are still at work.
type sharedLog struct {
	core.Store
	void    []uint64
	young   uint64 // 0: none
	retryAt core.Millis
	behind  func() // happens while an update is written, which does not see it
	reads   int    // of records
}

func shareLog(m *manual) *sharedLog {
	l := &sharedLog{Store: m.memory}
	m.store.Store = l
	return l
}

func (l *sharedLog) Group(ctx context.Context, r core.Ref) (core.Group, error) {
	l.reads++
	return l.Store.Group(ctx, r)
}

func (l *sharedLog) Items(ctx context.Context, r core.Ref, g *core.Group, s core.Span) (core.Page, error) {
	if l.young >= s.From && l.young <= s.To {
		s.To = l.young - 1
	}
	page := core.Page{End: s.From - 1, Through: g.HeadBytes}
	if s.From <= s.To {
		all, err := l.Store.Items(ctx, r, g, core.Span{From: s.From, To: s.To, MaxBytes: s.MaxBytes})
		if err != nil {
			return page, err
		}
		for i, it := range all.Items {
			if slices.Contains(l.void, it.Seq) {
				page.End, page.Through = it.Seq, all.Offsets[i]
				continue
			}
			if page.NextAt = it.ReceivedAt; s.MaxItems > 0 && len(page.Items) == s.MaxItems {
				return page, nil
			}
			page.End, page.Through = it.Seq, all.Offsets[i]
			page.Items, page.Offsets = append(page.Items, it), append(page.Offsets, all.Offsets[i])
		}
		page.NextAt = all.NextAt
	}
	if l.young != 0 && page.End == l.young-1 {
		page.RetryAt = l.retryAt
	}
	return page, nil
}

func (l *sharedLog) Update(ctx context.Context, r core.Ref, seen *core.Group, fn func(*core.Group) error) (core.Group, error) {
	g, err := l.Store.Update(ctx, r, seen, fn)
	if behind := l.behind; err == nil && behind != nil {
		l.behind = nil
		behind()
		return l.Store.Group(ctx, r)
	}
	return g, err
}

// TestConfirmCount shows that void numbers neither make a group leave early
// nor keep one that is full.
func TestConfirmCount(t *testing.T) {
	t.Parallel()
	m := newManual(t, config(batch(3, 5*time.Second, 15*time.Second)))
	l := shareLog(m)
	l.void = []uint64{2}
	m.put("a", "a", "a")
	require.Len(t, m.handed, 1)
	m.work()
	require.Empty(t, m.sent)
	require.Empty(t, m.handed, "it is not handed over again and again")
	require.Equal(t, uint64(1), m.group("a").Void)
	require.Equal(t, noon.Add(5*time.Second), m.group("a").CheckAt)
	require.Contains(t, m.hints, core.Hint{Ref: ref("a"), Life: m.group("a").Life, At: m.group("a").CheckAt, Check: m.group("a").Rev + 1})

	m.put("a")
	m.work()
	require.Equal(t, "0.000 a 3 items #1", m.summary())
	require.Zero(t, m.group("a").Void)
	require.Equal(t, []uint64{1, 3, 4}, seqs(m.sent[0].Items))
}

func seqs(items []core.Item) []uint64 {
	s := make([]uint64, len(items))
	for i := range items {
		s[i] = items[i].Seq
	}
	return s
}

// TestConfirmBytes is the same for payload.
func TestConfirmBytes(t *testing.T) {
	t.Parallel()
	c := config()
	c.Buffers[0].Batch.MaxBytes = core.KiB
	m := newManual(t, c)
	l := shareLog(m)
	l.void = []uint64{1}
	big := func(n int) {
		_, err := m.ingester.Ingest(context.Background(), "in", []core.Event{{Body: append([]byte(`{"k":"a"}`), bytes.Repeat([]byte{' '}, n)...)}})
		require.NoError(t, err)
	}
	big(900)
	big(200)
	require.Len(t, m.handed, 1)
	m.work()
	require.Empty(t, m.sent)
	require.Equal(t, uint64(1), m.group("a").Void)
	require.Greater(t, m.group("a").VoidBytes, int64(900))
	big(900)
	m.work()
	require.Equal(t, "0.000 a 2 bytes #1", m.summary())
}

// TestConfirmAllVoid shows that a group of void numbers goes away by itself.
func TestConfirmAllVoid(t *testing.T) {
	t.Parallel()
	m := newManual(t, config(batch(3, 5*time.Second, 15*time.Second)))
	l := shareLog(m)
	l.void = []uint64{1, 2, 3}
	m.put("a", "a", "a")
	m.work()
	m.elapse(time.Minute)
	require.Empty(t, m.sent)
	g := m.group("a")
	require.True(t, g.Empty())
	require.Empty(t, m.hints)
}

// TestConfirmYoung shows what leaves while a writer is at work in the middle.
func TestConfirmYoung(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		young uint64
		after time.Duration
		want  string
	}{
		{"full only with it", 2, 0, ""},
		{"full only with it, at the head", 1, 0, ""},
		{"full without it", 4, 0, "0.000 a 3 items #1"},
		{"due by time", 2, 5 * time.Second, "5.000 a 1 idle #1"},
		{"due by time, at the head", 1, 5 * time.Second, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newManual(t, config(batch(3, 5*time.Second, 15*time.Second)))
			l := shareLog(m)
			l.young, l.retryAt = c.young, noon.Add(c.after+2*time.Second)
			m.put("a", "a")
			m.put("a", "a")
			m.pass(c.after)
			rev := m.group("a").Rev
			m.work()
			require.Equal(t, c.want, m.summary())
			if c.want == "" {
				require.Equal(t, core.Hint{Ref: ref("a"), Life: m.group("a").Life, At: l.retryAt}, m.hints[len(m.hints)-1])
				require.Equal(t, rev, m.group("a").Rev, "nothing is written")
			}
			l.young = 0
			m.elapse(10 * time.Second)
			got := 0
			for _, b := range m.sent {
				got += len(b.Items)
			}
			require.Equal(t, 4, got)
		})
	}
}

// TestConfirmFirst shows that a group whose oldest item is younger than its
// record knows waits for it, whatever lies before it.
func TestConfirmFirst(t *testing.T) {
	t.Parallel()
	for _, void := range [][]uint64{nil, {1}, {1, 2}} {
		m := newManual(t, config(batch(50, 5*time.Second, 10*time.Second)))
		l := shareLog(m)
		l.void = void
		for range void {
			m.put("a")
		}
		for range 3 {
			m.pass(3 * time.Second)
			m.put("a")
		} // items at 3, 6 and 9
		m.pass(time.Second)
		m.fire()
		m.handed = nil
		m.deliver("a")
		require.Empty(t, m.handed, "it is not handed over again and again")
		require.Empty(t, m.sent, "the void numbers have waited for ten seconds, the items have not")
		require.Equal(t, noon.Add(13*time.Second), m.group("a").CheckAt)
		m.elapse(3 * time.Second)
		require.Equal(t, "13.000 a 3 wait #1", m.summary())
	}
}

// TestSeen shows that what the sender of a delivery has seen is no more than a
// hint.
func TestSeen(t *testing.T) {
	t.Parallel()
	two := func() *core.Config {
		return config(batch(2, 5*time.Second, 15*time.Second), func(c *core.Config) { c.Buffers[0].Concurrency = 2 })
	}
	deliver := func(m *manual, seen core.Group) {
		t.Helper()
		_, err := m.deliverer.Deliver(context.Background(), core.Delivery{Ref: ref("a"), Destination: "out", Seen: &seen})
		require.NoError(t, err)
	}
	t.Run("true", func(t *testing.T) {
		t.Parallel()
		m := newManual(t, two())
		l := shareLog(m)
		m.put("a", "a")
		seen := m.group("a")
		deliver(m, seen)
		require.Equal(t, "0.000 a 2 items #1", m.summary())
		require.Zero(t, l.reads)
		require.Empty(t, seen.Claims, "it is the sender's")

		deliver(m, seen) // doubled
		require.Len(t, m.sent, 1)
	})
	t.Run("stale", func(t *testing.T) {
		t.Parallel()
		m := newManual(t, two())
		shareLog(m)
		m.put("a", "a")
		seen := m.group("a")
		m.put("a", "a", "a")
		deliver(m, m.group("a"))
		deliver(m, seen)
		require.Equal(t, "0.000 a 2 items #1\n0.000 a 2 items #1", m.summary())
		require.Equal(t, []uint64{3, 4}, seqs(m.sent[1].Items))
	})
	t.Run("of another life", func(t *testing.T) {
		t.Parallel()
		m := newManual(t, two())
		shareLog(m)
		m.put("a", "a")
		seen := m.group("a")
		m.work()
		m.put("a")
		require.NotEqual(t, seen.Life, m.group("a").Life)
		deliver(m, seen)
		require.Len(t, m.sent, 1)
		m.put("a")
		deliver(m, seen)
		require.Len(t, m.sent, 2)
		require.Contains(t, m.sent[1].ID, m.group("a").Life)
	})
	t.Run("not due any more", func(t *testing.T) {
		t.Parallel()
		m := newManual(t, two())
		l := shareLog(m)
		m.put("a")
		seen := m.group("a")
		deliver(m, seen)
		require.Empty(t, m.sent)
		require.Equal(t, 1, l.reads, "it is read")
	})
}

// TestSlippedIn lets items that make a group full slip in while a check, a
// claim or a settling is written: it is handed over at once.
func TestSlippedIn(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) (*manual, *sharedLog) {
		t.Helper()
		m := newManual(t, config(batch(3, 5*time.Second, 15*time.Second), func(c *core.Config) { c.Buffers[0].Concurrency = 2 }))
		l := shareLog(m)
		m.put("a")
		m.pass(4 * time.Second)
		m.put("a")
		return m, l
	}
	slip := func(m *manual, l *sharedLog, n int) {
		l.behind = func() {
			m.put(slices.Repeat([]string{"a"}, n)...)
			m.handed = nil // its own writer has died
		}
	}
	t.Run("check", func(t *testing.T) {
		t.Parallel()
		m, l := setup(t)
		m.pass(time.Second)
		h, ok := m.next(m.now)
		require.True(t, ok)
		slip(m, l, 1)
		m.check(h)
		require.Len(t, m.handed, 1)
		m.work()
		require.Equal(t, "5.000 a 3 items #1", m.summary())
	})
	t.Run("claim", func(t *testing.T) {
		t.Parallel()
		m, l := setup(t)
		m.put("a")
		require.Len(t, m.handed, 1)
		m.handed = nil
		slip(m, l, 3)
		m.deliver("a")
		require.True(t, slices.ContainsFunc(m.handed, func(d core.Delivery) bool { return d.Seen != nil }), "another sends beside this one")
		m.work()
		require.Equal(t, "4.000 a 3 items #1\n4.000 a 3 items #1", m.summary())
	})
	t.Run("ack", func(t *testing.T) {
		t.Parallel()
		m, l := setup(t)
		m.put("a")
		m.handed = nil
		m.answer = func(context.Context, *core.Batch) core.Response {
			m.answer = nil
			m.put("a")
			slip(m, l, 2)
			return core.Response{Status: 200}
		}
		m.deliver("a")
		require.Len(t, m.handed, 1, "the acker goes on")
		m.work()
		require.Len(t, m.sent, 2)
	})
}

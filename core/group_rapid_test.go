package core_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

// TestGroup drives random transitions, on a clock that may be set back, and
// holds what the record says against a ledger of every number ever handed out.
func TestGroup(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		t.Repeat(rapid.StateMachineActions(newLedger(t)))
	})
}

// Append adds up to five items.
func (l *ledger) Append(t *rapid.T) {
	sizes := rapid.SliceOfN(rapid.Int64Range(0, 20), 1, 5).Draw(t, "sizes")
	var total int64
	for _, n := range sizes {
		total += n
	}
	tail, opens, full := l.g.Tail, l.g.CheckAt == 0, l.full()
	var a core.Appended
	ok := l.do(t, "append", func(g *core.Group) (err error) {
		a, err = g.Append(len(sizes), total, "life", l.p, l.now)
		return err
	})
	if !ok {
		require.Positive(t, l.p.CapItems, "refused without a limit")
		require.Greater(t, int(l.g.Pending())+len(sizes), l.p.CapItems, "refused with room for it")
		return
	}
	require.True(t, l.p.CapItems == 0 || int(l.g.Pending()) <= l.p.CapItems, "more pending than the group may hold")
	require.Equal(t, tail+1, a.First)
	require.Equal(t, opens, a.Armed)
	require.Equal(t, !full && l.full(), a.Reached)
	require.Equal(t, l.g.CheckAt, a.CheckAt)
	for _, n := range sizes {
		l.arrived = append(l.arrived, l.now)
		l.bytes = append(l.bytes, l.through(tail)+n)
		tail++
	}
	l.reached = l.reached || a.Reached
}

// Claim takes a prefix, or tries to with what is no longer true.
func (l *ledger) Claim(t *rapid.T) {
	stale := rapid.SampledFrom([]uint64{0, 0, 0, 0, 1, 2}).Draw(t, "stale")
	from := l.g.Head + 1 - min(stale, l.g.Head)
	n := uint64(rapid.IntRange(1, 8).Draw(t, "items"))
	void := rapid.IntRange(0, 9).Draw(t, "void") == 0
	to := min(from+n-1, l.g.Tail)
	if to < from {
		t.Skip("nothing is pending")
	}
	taking := core.Taking{From: from, To: to, Through: l.through(to), Items: int(to - from + 1), Reason: core.ReasonIdle}
	if void {
		taking.Items = 0
	}
	if to < l.g.Tail && rapid.Bool().Draw(t, "next is known") {
		taking.NextAt = l.arrived[to]
	}
	free := len(l.g.Claims) < l.most() && l.leased() < l.sending()
	head := l.g.Head
	var c core.Claim
	ok := l.do(t, "claim", func(g *core.Group) (err error) {
		c, err = g.Claim(taking, l.p, l.now)
		return err
	})
	require.Equal(t, from == head+1 && (void || free), ok, "from %d with head %d, void %v, free %v", from, head, void, free)
	if !ok {
		return
	}
	var members []uint64
	for seq := from; seq <= to; seq++ {
		members = append(members, seq)
		if void {
			l.settled[seq] = true
		}
	}
	if !void {
		require.Equal(t, l.now.Add(l.p.Lease), c.Due)
		l.batch(t, c, members)
		require.LessOrEqual(t, l.leased(), l.sending(), "claims being sent")
	}
	l.moved(t)
}

// pick is a claim of the group.
func (l *ledger) pick(t *rapid.T) core.Claim {
	if len(l.g.Claims) == 0 {
		t.Skip("no claims")
	}
	i := rapid.IntRange(0, len(l.g.Claims)-1).Draw(t, "claim")
	g := l.g.Clone()
	return g.Claims[i]
}

// Recover takes a claim over, if that may be.
func (l *ledger) Recover(t *rapid.T) {
	c := l.pick(t)
	may := c.Due <= l.now && l.leased() < l.sending()
	var taken core.Claim
	ok := l.do(t, "recover", func(g *core.Group) (err error) {
		taken, err = g.Recover(c.ID, l.p, l.now)
		return err
	})
	require.Equal(t, may, ok)
	if !ok {
		return
	}
	was := l.live[c.ID]
	attempt := was.attempt
	if !was.holding {
		attempt++
	}
	require.Equal(t, attempt, taken.Attempt, "an attempt for each release, none for a takeover")
	require.Greater(t, taken.Lease, was.lease)
	require.Equal(t, l.now.Add(l.p.Lease), taken.Due)
	require.Equal(t, taken, *l.g.Find(c.ID))
	was.lease, was.holding, was.attempt = taken.Lease, true, attempt
	l.live[c.ID] = was
	require.LessOrEqual(t, l.leased(), l.sending(), "claims being sent")
	l.moved(t)
}

// settle makes a settling under some lease, which must work just when the
// lease is the newest and held.
func (l *ledger) settle(t *rapid.T, what string, c core.Claim, fn func(g *core.Group, lease uint64) error) bool {
	t.Helper()
	lease := c.Lease
	if rapid.IntRange(0, 3).Draw(t, "stale") == 0 {
		lease = uint64(rapid.IntRange(0, int(c.Lease)+2).Draw(t, "lease"))
	}
	was := l.live[c.ID]
	ok := l.do(t, what, func(g *core.Group) error { return fn(g, lease) })
	require.Equal(t, was.holding && lease == was.lease, ok, "%s under lease %d, when the newest is %d, held: %v", what, lease, was.lease, was.holding)
	return ok
}

// Ack settles a claim.
func (l *ledger) Ack(t *rapid.T) {
	c := l.pick(t)
	if l.settle(t, "ack", c, func(g *core.Group, lease uint64) error { return g.Ack(c.ID, lease, l.p, l.now) }) {
		for _, seq := range l.batches[c.ID] {
			l.settled[seq] = true
		}
		delete(l.live, c.ID)
		l.moved(t)
	}
}

// Release gives a claim back.
func (l *ledger) Release(t *rapid.T) {
	c := l.pick(t)
	due := l.now + core.Millis(rapid.IntRange(0, 30_000).Draw(t, "wait"))
	if l.settle(t, "release", c, func(g *core.Group, lease uint64) error { return g.Release(c.ID, lease, due, "no", l.p, l.now) }) {
		was := l.live[c.ID]
		was.lease, was.holding = l.g.Find(c.ID).Lease, false
		require.Greater(t, was.lease, c.Lease)
		l.live[c.ID] = was
		require.Equal(t, min(due, l.now.Add(l.p.MaxHold)), l.g.Find(c.ID).Due)
		l.moved(t)
	}
}

// Postpone gives a claim back unsent.
func (l *ledger) Postpone(t *rapid.T) {
	c := l.pick(t)
	if l.settle(t, "postpone", c, func(g *core.Group, lease uint64) error { return g.Postpone(c.ID, lease, l.now+100, false, l.p, l.now) }) {
		was := l.live[c.ID]
		was.lease, was.holding, was.attempt = l.g.Find(c.ID).Lease, false, was.attempt-1
		require.Greater(t, was.lease, c.Lease)
		l.live[c.ID] = was
		l.moved(t)
	}
}

// Renew begins a lease anew.
func (l *ledger) Renew(t *rapid.T) {
	c := l.pick(t)
	if l.settle(t, "renew", c, func(g *core.Group, lease uint64) error { return g.Renew(c.ID, lease, l.p, l.now) }) {
		require.Equal(t, l.now.Add(l.p.Lease), l.g.Find(c.ID).Due)
		l.moved(t)
	}
}

// Shrink settles a claim in part.
func (l *ledger) Shrink(t *rapid.T) {
	c := l.pick(t)
	var failed core.Bits
	var left []uint64
	for _, seq := range l.batches[c.ID] {
		fails := rapid.Bool().Draw(t, "fails")
		if fails {
			failed = failed.With(int(seq - c.From))
		}
		if fails || l.p.Ordered && len(left) > 0 {
			left = append(left, seq)
		}
	}
	if len(left) == 0 {
		t.Skip("none has failed")
	}
	ok := l.settle(t, "shrink", c, func(g *core.Group, lease uint64) error {
		return g.Shrink(c.ID, lease, failed, l.now+1000, "some", l.p, l.now)
	})
	if !ok {
		return
	}
	for _, seq := range l.batches[c.ID] {
		l.settled[seq] = !slices.Contains(left, seq)
	}
	was := l.live[c.ID]
	delete(l.live, c.ID)
	require.Nil(t, l.g.Find(c.ID), "the batch that was")
	i := slices.IndexFunc(l.g.Claims, func(r core.Claim) bool { _, known := l.live[r.ID]; return !known })
	require.GreaterOrEqual(t, i, 0, "no residue")
	r := l.g.Claims[i]
	require.Equal(t, fmt.Sprintf("%s.%d", root(c.ID), was.residue+2), r.ID)
	require.Equal(t, was.attempt, r.Attempt)
	require.False(t, r.Held())
	l.batch(t, r, left)
	l.moved(t)
}

// Look settles the next check.
func (l *ledger) Look(t *rapid.T) {
	before := l.g.Clone()
	var said bool
	l.do(t, "check", func(g *core.Group) error { said = g.Check(l.p, l.now); return nil })
	require.Equal(t, cmp.Diff(before, l.g, cmpopts.EquateEmpty()) != "", said, "whether it changed anything")
	l.moved(t)
}

// Arrive tells the group when its first pending item arrived.
func (l *ledger) Arrive(t *rapid.T) {
	seq := l.g.Head + uint64(rapid.IntRange(0, 2).Draw(t, "number"))
	if seq == 0 || seq > l.g.Tail {
		t.Skip("no such number")
	}
	first, rev := seq == l.g.Head+1, l.g.Rev
	at := l.arrived[seq-1]
	known := l.g.FirstAt
	l.do(t, "arrived", func(g *core.Group) error { g.Arrived(seq, at, l.p, l.now); return nil })
	require.Equal(t, first && known < at, l.g.Rev != rev)
	if l.g.Rev != rev {
		l.moved(t)
	}
}

// Nudge moves the check on.
func (l *ledger) Nudge(t *rapid.T) {
	at := l.now + core.Millis(rapid.IntRange(0, 60_000).Draw(t, "ms"))
	before := l.g.CheckAt
	l.do(t, "nudge", func(g *core.Group) error { g.Nudge(at); return nil })
	if before != 0 {
		require.Equal(t, max(before, at), l.g.CheckAt)
		l.nudged = max(l.nudged, at)
	}
}

// Pass lets time go on, or sets the clock back.
func (l *ledger) Pass(t *rapid.T) {
	ms := rapid.OneOf(rapid.IntRange(1, 3000), rapid.IntRange(1, 3000), rapid.IntRange(3000, 30_000), rapid.IntRange(-10_000, -1)).Draw(t, "ms")
	l.now += core.Millis(ms)
	l.back, l.never = l.back || ms < 0, l.never && ms > 0
}

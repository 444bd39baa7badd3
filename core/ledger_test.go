package core_test

import (
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

// ledger is a group and, kept apart from it, what has become of every item.
type ledger struct {
	p   *core.Policy
	g   core.Group
	now core.Millis

	arrived []core.Millis       // by number - 1
	bytes   []int64             // payload up to and including each, by number - 1
	settled map[uint64]bool     // numbers that are done with, void ones included
	batches map[string][]uint64 // every batch there ever was: its members, by id
	live    map[string]held     // those not settled

	back    bool        // the clock was set back since the last transition
	never   bool        // it was never set back
	reached bool        // an append said that the group is full: its caller has it delivered
	nudged  core.Millis // to where the check was moved on
	looks   core.Millis // when somebody looks at a group that was due at its last transition
}

// held is what does not change while a batch is sent again and again.
type held struct {
	lease   uint64 // the newest
	holding bool
	attempt int
	reason  core.Reason
	residue int
}

func newLedger(t *rapid.T) *ledger {
	ms := func(from, to int, label string) time.Duration {
		return time.Duration(rapid.IntRange(from, to).Draw(t, label)) * time.Millisecond
	}
	return &ledger{
		p: &core.Policy{
			MaxItems: rapid.IntRange(1, 8).Draw(t, "maxItems"), MaxBytes: int64(rapid.IntRange(1, 60).Draw(t, "maxBytes")),
			IdleTimeout: ms(100, 5000, "idle"), MaxWait: ms(100, 5000, "wait"), CapBytes: 1000,
			CapItems: rapid.SampledFrom([]int{0, 0, 12}).Draw(t, "capItems"),
			Ordered:  rapid.Bool().Draw(t, "ordered"), Concurrency: rapid.IntRange(0, 10).Draw(t, "concurrency"),
			Lease: ms(500, 20_000, "lease"), MaxHold: ms(500, 20_000, "hold"),
		},
		now: noon, never: true, settled: map[uint64]bool{}, batches: map[string][]uint64{}, live: map[string]held{},
	}
}

// sending is how many claims may be sent at a time; most is how many there may be.
func (l *ledger) sending() int {
	if l.p.Ordered {
		return 1
	}
	return max(1, min(l.p.Concurrency, core.MaxClaims))
}

func (l *ledger) most() int {
	if l.p.Ordered {
		return 1
	}
	return core.MaxClaims
}

// do makes a transition on a copy, as a store does. A failed one must leave
// the copy as it was, and no transition may touch the original.
func (l *ledger) do(t *rapid.T, what string, fn func(*core.Group) error) bool {
	t.Helper()
	before, work := l.g.Clone(), l.g.Clone()
	err := fn(&work)
	require.Empty(t, cmp.Diff(before, l.g, cmpopts.EquateEmpty()), "%s touched the record behind the copy", what)
	changed := cmp.Diff(before, work, cmpopts.EquateEmpty())
	if err != nil {
		require.Empty(t, changed, "%s failed (%v), and changed the record", what, err)
		return false
	}
	if what != "append" && changed != "" {
		require.Greater(t, work.Rev, before.Rev, "%s changed the record, but not its revision:\n%s", what, changed)
	}
	if what == "append" || changed == "" {
		require.Equal(t, before.Rev, work.Rev, "%s changed the revision", what)
	}
	l.g = work
	return true
}

// moved checks that a transition has put CheckAt right.
func (l *ledger) moved(t *rapid.T) {
	t.Helper()
	l.back, l.reached, l.nudged, l.looks = false, false, 0, 0
	want := core.Millis(0)
	switch {
	case l.g.Pending() == 0:
	case !core.Evaluate(&l.g, l.p, l.now).Due:
		want = min(l.g.FirstAt.Add(l.p.MaxWait), min(l.g.LastAt, l.now).Add(l.p.IdleTimeout))
	case l.g.Blocked(l.p, l.now):
		l.looks = l.unblocked()
		want = l.looks
	default:
		l.looks = l.now
		want = l.looks
	}
	require.Equal(t, want, l.g.CheckAt, "check")
}

// unblocked is when a claim that blocks others wants attention: one that is
// being sent, if too many are, else any.
func (l *ledger) unblocked() core.Millis {
	full := l.leased() >= l.sending()
	var due []core.Millis
	for i := range l.g.Claims {
		if c := &l.g.Claims[i]; !full || l.live[c.ID].holding && c.Due > l.now {
			due = append(due, max(c.Due, l.now))
		}
	}
	return slices.Min(due)
}

// full reports whether the group is due whatever the time.
func (l *ledger) full() bool {
	return l.g.Pending() > 0 && (l.g.Pending() >= uint64(l.p.MaxItems) || l.g.PendingBytes() >= l.p.MaxBytes)
}

// through is the payload up to a number.
func (l *ledger) through(seq uint64) int64 {
	if seq == 0 {
		return 0
	}
	return l.bytes[seq-1]
}

// leased is how many claims a deliverer holds whose lease has not passed.
func (l *ledger) leased() int {
	n := 0
	for i := range l.g.Claims {
		if l.live[l.g.Claims[i].ID].holding && l.g.Claims[i].Due > l.now {
			n++
		}
	}
	return n
}

// batch notes a batch, whose id must be new.
func (l *ledger) batch(t *rapid.T, c core.Claim, members []uint64) {
	t.Helper()
	require.NotContains(t, l.batches, c.ID, "two batches of one id")
	l.batches[c.ID] = members
	l.live[c.ID] = held{lease: c.Lease, holding: c.Held(), attempt: c.Attempt, reason: c.Reason, residue: c.Residue}
}

// root is a batch's id without the number of its partial successes.
func root(id string) string {
	for i := range id {
		if id[i] == '.' {
			return id[:i]
		}
	}
	return id
}

// Check holds the record against the ledger.
func (l *ledger) Check(t *rapid.T) {
	g := &l.g
	require.LessOrEqual(t, g.Head, g.Tail)
	require.LessOrEqual(t, g.HeadBytes, g.TailBytes)
	require.Equal(t, l.through(g.Tail), g.TailBytes)
	require.Equal(t, l.through(g.Head), g.HeadBytes)
	require.Equal(t, len(l.arrived), int(g.Tail))
	require.LessOrEqual(t, len(g.Claims), l.most())
	if g.Tail > 0 && l.p.CapItems > 0 {
		require.Equal(t, g.Head+uint64(l.p.CapItems), g.Ceiling)
	} else {
		require.Zero(t, g.Ceiling)
	}
	l.checkNumbers(t)
	l.checkClaims(t)
	l.checkTimes(t)
}

// checkNumbers counts every number ever handed out just once: settled, in one
// claim, or pending.
func (l *ledger) checkNumbers(t *rapid.T) {
	for seq := uint64(1); seq <= l.g.Tail; seq++ {
		places := 0
		if l.settled[seq] {
			places++
		}
		if seq > l.g.Head {
			places++
		}
		for i := range l.g.Claims {
			if l.g.Claims[i].Has(seq) {
				places++
			}
		}
		require.Equal(t, 1, places, "places of number %d", seq)
		require.Equal(t, !l.settled[seq], l.g.Live(seq), "whether number %d is needed", seq)
	}
	require.False(t, l.g.Live(l.g.Tail+1), "a number not handed out")
}

func (l *ledger) checkClaims(t *rapid.T) {
	known := slices.Sorted(maps.Keys(l.live))
	var found []string
	last := uint64(0)
	for i := range l.g.Claims {
		c := &l.g.Claims[i]
		found = append(found, c.ID)
		require.Greater(t, c.From, last, "claims in order, none over another")
		require.LessOrEqual(t, c.From, c.To)
		require.LessOrEqual(t, c.To, l.g.Head)
		last = c.To
		var members []uint64
		for seq := c.From; seq <= c.To; seq++ {
			if c.Has(seq) {
				members = append(members, seq)
			}
		}
		require.Equal(t, l.batches[c.ID], members, "members of %s", c.ID)
		record := held{c.Lease, c.Held(), c.Attempt, c.Reason, c.Residue}
		require.Equal(t, l.live[c.ID], record, "%s", c.ID)
		require.Equal(t, c, l.g.Find(c.ID))
	}
	slices.Sort(found)
	require.Equal(t, known, found, "claims")
	l.checkExpired(t)
}

// checkExpired has the oldest claim whose time has come, if there is a slot.
func (l *ledger) checkExpired(t *rapid.T) {
	var want *core.Claim
	if l.leased() < l.sending() {
		for i := range l.g.Claims {
			if l.g.Claims[i].Due <= l.now {
				want = &l.g.Claims[i]
				break
			}
		}
	}
	require.Equal(t, want, l.g.Expired(l.p, l.now))
	free := len(l.g.Claims) < l.most() && l.leased() < l.sending()
	require.Equal(t, !free, l.g.Blocked(l.p, l.now))
	wanted := want != nil || free && core.Evaluate(&l.g, l.p, l.now).Due
	require.Equal(t, wanted, l.g.Wanted(l.p, l.now))
}

// checkTimes has nobody forgotten: whatever is pending is looked at by its
// deadline, or when the claim that blocks it wants attention.
func (l *ledger) checkTimes(t *rapid.T) {
	g := &l.g
	if g.Pending() == 0 {
		require.Zero(t, g.CheckAt, "a check of nothing")
		require.Zero(t, g.FirstAt)
		return
	}
	require.NotZero(t, g.CheckAt, "pending, and nobody will look")
	require.NotZero(t, g.FirstAt)
	if l.back {
		return // until the next transition
	}
	if l.never {
		require.LessOrEqual(t, g.FirstAt, l.arrived[g.Head], "arrival of the oldest, or a lower bound")
	}
	deadline := min(g.FirstAt.Add(l.p.MaxWait), g.LastAt.Add(l.p.IdleTimeout))
	require.LessOrEqual(t, g.CheckAt, max(deadline, l.nudged, l.looks),
		"deadline %v, nudged to %v, put to %v when it was due", deadline, l.nudged, l.looks)
	if v := core.Evaluate(g, l.p, l.now); v.Due && !g.Blocked(l.p, l.now) && !l.reached {
		require.LessOrEqual(t, g.CheckAt, max(l.now, l.nudged), "due and free, and nobody looks")
	}
}

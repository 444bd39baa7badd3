package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/core"
)

// Histories drives random histories of calls, crashes among them, against the
// store and its model side by side, on a clock of its own that may also be set
// back, and compares all that can be seen after every call. Flags of
// [rapid] say how much: -rapid.checks histories, of -rapid.steps calls on
// average; a failure is shrunk and prints the -rapid.seed that repeats it.
func Histories(t *testing.T, h Harness) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(rt, t, &h)
		defer m.pair.close()
		rt.Repeat(rapid.StateMachineActions(m))
	})
	t.Logf("storetest: %s: histories", h.Name)
}

// machine is the state of one history. Its exported methods are the calls
// that rapid picks from.
type machine struct {
	pair     *pair
	now      core.Millis
	next     int // number of the next event
	refs     []core.Ref
	policies map[string]*core.Policy // by buffer
	once     []core.Millis           // when events were stored of which no doubles are
	latest   core.Millis             // that the clock has shown
	last     string
}

// onceWindow is for how long the history's events are known by their ids.
const onceWindow = time.Minute

func newMachine(rt *rapid.T, t *testing.T, h *Harness) *machine {
	m := &machine{
		pair: newPair(rt, t, h, "a", "b", "copies", "once", "w"),
		now:  start,
		refs: []core.Ref{{Buffer: "a", Key: ""}, {Buffer: "a", Key: "x/y"}, {Buffer: "b", Key: ""}, {Buffer: "b", Key: "ä"},
			{Buffer: "copies", Key: "1"}, {Buffer: "copies", Key: "2"}, {Buffer: "once", Key: "1"}, {Buffer: "once", Key: "2"},
			{Buffer: "w", Key: "1"}, {Buffer: "w", Key: "2"}},
		policies: map[string]*core.Policy{
			"a": {MaxItems: 5, MaxBytes: 300, IdleTimeout: 3 * time.Second, MaxWait: 10 * time.Second,
				CapBytes: 1000, CapItems: 20, Concurrency: 3, Lease: 30 * time.Second, MaxHold: time.Minute},
			"b": {MaxItems: 3, MaxBytes: 1000, IdleTimeout: time.Second, MaxWait: 2 * time.Second,
				CapBytes: 2000, Ordered: true, Lease: 30 * time.Second, MaxHold: time.Minute},
			"copies": calm(), "once": calm(),
			"w": {MaxItems: 3, MaxBytes: 1000, CapBytes: 2000, CapItems: 20, Concurrency: 2, Lease: 30 * time.Second, MaxHold: time.Minute,
				ShipAt: start + 5*second, KeptUntil: start + 1_000_000*second},
		},
		last: "open",
	}
	m.pair.closed = m.refs
	return m
}

// Check compares the stores.
func (m *machine) Check(*rapid.T) { m.pair.compare(m.last) }

func (m *machine) ref(t *rapid.T) (core.Ref, *core.Policy) {
	ref := rapid.SampledFrom(m.refs).Draw(t, "group")
	return ref, m.policies[ref.Buffer]
}

// did notes what the next comparison follows.
func (m *machine) did(what string, ref core.Ref) {
	m.last = fmt.Sprintf("%s of %v at start + %v", what, ref, m.now.Sub(start))
}

// Append stores a request of one to three parts.
func (m *machine) Append(t *rapid.T) {
	var parts []core.Part
	for range rapid.IntRange(1, 3).Draw(t, "parts") {
		ref, policy := m.ref(t)
		p := core.Part{Ref: ref, Life: fmt.Sprintf("life%d", m.next), Policy: policy}
		if rapid.Bool().Draw(t, "sized") {
			p.Size = 30
		}
		switch ref.Buffer {
		case "copies":
			p = shed(p, 10)
		case "once": // of no limit, as doubles may count
			p.Size, p.Dedupe = 0, onceWindow
			m.once = append(m.once, m.now)
		}
		if policy.ShipAt != 0 && rapid.IntRange(0, 3).Draw(t, "settings") == 0 {
			p.Policy = m.policies["a"] // its buffer has windows no more
		}
		for range rapid.IntRange(1, 6).Draw(t, "events") {
			id := fmt.Sprint(m.next)
			if p.Dedupe > 0 {
				id = fmt.Sprint("once ", rapid.IntRange(0, 30).Draw(t, "id"))
			}
			p.Events = append(p.Events, event(id, m.now, rapid.SampledFrom([]int{0, 1, 10, 100, 5000}).Draw(t, "bytes")))
			m.next++
		}
		parts = append(parts, p)
	}
	m.pair.append(m.now, parts...)
	m.did("append", parts[0].Ref)
}

// Claim takes the next items of a group.
func (m *machine) Claim(t *rapid.T) {
	ref, policy := m.ref(t)
	m.pair.claim(ref, rapid.IntRange(1, 8).Draw(t, "items"), policy, m.now)
	m.did("claim", ref)
}

func claimOf(t *rapid.T) int { return rapid.IntRange(0, 3).Draw(t, "claim") }

// Ack settles a claim.
func (m *machine) Ack(t *rapid.T) {
	ref, policy := m.ref(t)
	m.pair.ack(ref, claimOf(t), policy, m.now)
	m.did("ack", ref)
}

// Release gives a claim back.
func (m *machine) Release(t *rapid.T) {
	ref, policy := m.ref(t)
	wait := core.Millis(rapid.IntRange(0, 20_000).Draw(t, "wait"))
	m.pair.release(ref, claimOf(t), m.now+wait, policy, m.now)
	m.did("release", ref)
}

// Recover takes a claim over, if it is free.
func (m *machine) Recover(t *rapid.T) {
	ref, policy := m.ref(t)
	m.pair.recover(ref, claimOf(t), policy, m.now)
	m.did("recover", ref)
}

// Advance settles rows of a claim.
func (m *machine) Advance(t *rapid.T) {
	ref, policy := m.ref(t)
	fold := rapid.SampledFrom([]string{"", "rows", "other rows"}).Draw(t, "fold")
	m.pair.advance(ref, claimOf(t), fold, rapid.IntRange(0, 200).Draw(t, "sent"), policy, m.now)
	m.did("advance", ref)
}

// Hasten makes a claim due that waits.
func (m *machine) Hasten(t *rapid.T) {
	ref, _ := m.ref(t)
	m.pair.hasten(ref, claimOf(t), m.now)
	m.did("hasten", ref)
}

// Postpone gives a claim back unsent.
func (m *machine) Postpone(t *rapid.T) {
	ref, policy := m.ref(t)
	wait := core.Millis(rapid.IntRange(0, 20_000).Draw(t, "wait"))
	m.pair.postpone(ref, claimOf(t), m.now+wait, rapid.Bool().Draw(t, "token"), policy, m.now)
	m.did("postpone", ref)
}

// Fall hands a claim to a fallback.
func (m *machine) Fall(t *rapid.T) {
	ref, policy := m.ref(t)
	m.pair.fall(ref, claimOf(t), policy, m.now)
	m.did("fall", ref)
}

// Defer makes a claim wait that nobody sends.
func (m *machine) Defer(t *rapid.T) {
	ref, policy := m.ref(t)
	wait := core.Millis(rapid.IntRange(0, 20_000).Draw(t, "wait"))
	m.pair.putOff(ref, claimOf(t), m.now+wait, policy, m.now)
	m.did("defer", ref)
}

// Hold notes until when a group's first item is held.
func (m *machine) Hold(t *rapid.T) {
	ref, policy := m.ref(t)
	m.pair.hold(ref, m.now+core.Millis(rapid.IntRange(-1000, 5000).Draw(t, "hold")), policy, m.now)
	m.did("hold", ref)
}

// Close closes a window.
func (m *machine) Close(t *rapid.T) {
	ref := rapid.SampledFrom(m.refs[len(m.refs)-2:]).Draw(t, "window")
	m.pair.shut(ref, m.policies[ref.Buffer], m.now)
	m.did("close", ref)
}

// Shrink settles a claim in part.
func (m *machine) Shrink(t *rapid.T) {
	ref, policy := m.ref(t)
	var failed core.Bits
	for _, i := range rapid.SliceOfN(rapid.IntRange(0, 8), 1, 4).Draw(t, "failed") {
		failed = failed.With(i)
	}
	m.pair.shrink(ref, claimOf(t), failed, m.now+5*second, policy, m.now)
	m.did("shrink", ref)
}

// Look checks a group, or nudges its check.
func (m *machine) Look(t *rapid.T) {
	ref, policy := m.ref(t)
	nudge := rapid.Bool().Draw(t, "nudge")
	m.pair.update("look", ref, func(g *core.Group) error {
		if nudge {
			g.Nudge(m.now + 60*second)
		} else {
			g.Check(policy, m.now)
		}
		return nil
	})
	m.did("look", ref)
}

// Pass lets time go on, or sets the clock back, unless that would ask for what a
// store may have forgotten: an id whose window was over, and would not be.
func (m *machine) Pass(t *rapid.T) {
	to := m.now + core.Millis(rapid.OneOf(rapid.IntRange(1, 4000), rapid.IntRange(30_000, 90_000), rapid.IntRange(-20_000, -1)).Draw(t, "ms"))
	m.last = "time passed"
	if slices.ContainsFunc(m.once, func(at core.Millis) bool { return m.latest.Sub(at) >= onceWindow && to.Sub(at) < onceWindow }) {
		return
	}
	m.now, m.latest = to, max(m.latest, to)
}

// Crash opens the store again.
func (m *machine) Crash(*rapid.T) {
	m.pair.crash()
	m.last = "crash, after " + m.last
}

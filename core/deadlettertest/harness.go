package deadlettertest

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"sluice/core"
)

// Letters is a place for dead letters: both ends of it.
type Letters interface {
	core.DeadLetterSink
	core.DeadLetterQueue
}

// Harness is how the suite gets at the dead letters of one adapter.
type Harness struct {
	Name string // of the adapter

	// Open opens a new, empty place for dead letters, and sees to its end.
	Open func(t testing.TB) Letters

	// Reopen opens again what l holds, after a crash between two calls. The
	// suite does not call l again.
	Reopen func(t testing.TB, l Letters) Letters

	// Doubles says that a letter which is put again may be there again: it is
	// listed once and taken once by one call, but another may take it too, it
	// may count as often as it was put, and any of what was put may be shown.
	Doubles bool

	// Clock is what l's leases run by. nil: the times that calls are given.
	Clock func(l Letters) Clock
}

// Clock is the time by which a service keeps leases.
type Clock struct {
	Now   func() core.Millis
	Set   func(core.Millis) // nil: it can't be set, so the suite waits, and leases may end a little late
	Lease core.Millis       // how long letters are taken for; 0: a minute
}

// equal takes empty slices for nil, and bodies as a whole: byte by byte they
// would take minutes.
var equal = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal)),
}

// test is one case of the suite.
type test struct {
	name string
	run  func(t *testing.T, p *probe)
}

// Run runs every case against new dead letters of h, and logs how many there were.
func Run(t *testing.T, h Harness) {
	t.Helper()
	var ran atomic.Int64
	t.Cleanup(func() { t.Logf("deadlettertest: %s: %d cases", h.Name, ran.Load()) })
	for _, tests := range [][]test{putTests, listTests, takeTests, raceTests} {
		for _, c := range tests {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, open(t, &h))
				ran.Add(1)
			})
		}
	}
}

// start is when the fixtures' time begins.
const start core.Millis = 1_700_000_000_000

var everything = core.DeadLetterFilter{}

// probe is the place under test. Its methods fail the test when a call fails.
type probe struct {
	t *testing.T
	h *Harness
	l Letters

	clock Clock
	until core.Millis // end of the newest lease
}

func open(t *testing.T, h *Harness) *probe {
	p := &probe{t: t, h: h, l: h.Open(t)}
	if h.Clock != nil {
		p.clock = h.Clock(p.l)
	} else {
		now := start
		p.clock = Clock{Now: func() core.Millis { return now }, Set: func(at core.Millis) { now = at }}
	}
	if p.clock.Lease == 0 {
		p.clock.Lease = 60_000
	}
	return p
}

func (p *probe) reopen() {
	p.t.Helper()
	p.l = p.h.Reopen(p.t, p.l)
}

func (p *probe) put(letters ...core.DeadLetter) {
	p.t.Helper()
	require.NoError(p.t, p.l.Put(context.Background(), letters), "put")
}

func (p *probe) take(f core.DeadLetterFilter, limit int) []core.DeadLetter {
	p.t.Helper()
	now := p.clock.Now()
	p.until = now + p.clock.Lease
	taken, err := p.l.Take(context.Background(), f, limit, now, p.until)
	require.NoError(p.t, err, "take")
	require.LessOrEqual(p.t, len(taken), limit, "letters taken")
	return taken
}

// takes checks that a call takes just these: now, or, when leases may end a
// little late, soon.
func (p *probe) takes(want []string, f core.DeadLetterFilter, limit int, what string) []core.DeadLetter {
	p.t.Helper()
	var taken []core.DeadLetter
	p.soon(func() bool {
		p.settle(nil, taken)
		taken = p.take(f, limit)
		return slices.Equal(want, ids(taken))
	})
	require.Equal(p.t, want, ids(taken), what)
	return taken
}

// soon runs a step: once, or, when the clock can't be set, until it is done or
// ten leases have passed.
func (p *probe) soon(step func() (done bool)) {
	for latest := p.clock.Now() + 10*p.clock.Lease; !step(); {
		if p.clock.Set != nil || p.clock.Now() > latest {
			return
		}
		p.reach(p.clock.Now() + p.clock.Lease/50)
	}
}

// held checks that no letter is free until just before a lease ends, or, when
// the clock can't be set, now.
func (p *probe) held(until core.Millis, what string) {
	p.t.Helper()
	if p.clock.Set != nil {
		p.clock.Set(until - 1)
	}
	taken := p.take(everything, 100)
	if p.clock.Now() < until {
		require.Empty(p.t, ids(taken), what)
	}
	p.settle(nil, taken)
}

// reach returns when it is a certain time.
func (p *probe) reach(at core.Millis) {
	if p.clock.Set != nil {
		p.clock.Set(at)
		return
	}
	for left := at.Sub(p.clock.Now()); left > 0; left = at.Sub(p.clock.Now()) {
		<-time.After(left)
	}
}

func (p *probe) settle(done, back []core.DeadLetter) {
	p.t.Helper()
	require.NoError(p.t, p.l.Settle(context.Background(), done, back), "settle")
}

// list reads all that a filter picks, so many letters at a time.
func (p *probe) list(f core.DeadLetterFilter, limit int) []core.DeadLetter {
	p.t.Helper()
	var all []core.DeadLetter
	from := ""
	for {
		page, next, err := p.l.List(context.Background(), f, from, limit)
		require.NoError(p.t, err, "list")
		require.LessOrEqual(p.t, len(page), limit, "letters in a page")
		all = append(all, page...)
		if next == "" {
			return all
		}
		require.NotEqual(p.t, from, next, "a page that gets nowhere")
		from = next
	}
}

// holds checks that a filter picks just these letters, and nothing is taken.
func (p *probe) holds(f core.DeadLetterFilter, want []string, what string) {
	p.t.Helper()
	for _, limit := range []int{1, 2, 3, 100} {
		require.Equal(p.t, want, ids(p.list(f, limit)), "%s, %d at a time", what, limit)
	}
	n, err := p.l.Count(context.Background(), f)
	require.NoError(p.t, err, "count")
	require.Equal(p.t, len(want), n, "%s, counted", what)
}

// letter is the n-th letter of a buffer, with every field set.
func letter(buffer string, n int) core.DeadLetter {
	at := start + core.Millis(n)
	return core.DeadLetter{
		ID: fmt.Sprintf("%s-life-1/%d", buffer, n), Batch: buffer + "-life-1", Buffer: buffer,
		Group: fmt.Sprintf("key/%d ä", n), Destination: "crm", Reason: core.DeadPermanent, Status: 400 + n%100,
		Answer: "no such customer: é", Attempts: n + 1, FirstErrorAt: at - 1000, LastErrorAt: at, LastError: "400 Bad Request",
		Item: core.Item{Seq: uint64(n), Event: core.Event{
			ID: fmt.Sprintf("event-%d", n), Source: "orders", ContentType: "application/json", ReceivedAt: at - 5000,
			Headers: []core.Header{{Name: "z", Value: "1"}, {Name: "a", Value: "2"}},
			Body:    fmt.Appendf(nil, `{"n": %d}`, n),
		}},
	}
}

// letters are the letters from..to of a buffer.
func letters(buffer string, from, to int) []core.DeadLetter {
	var out []core.DeadLetter
	for n := from; n <= to; n++ {
		out = append(out, letter(buffer, n))
	}
	return out
}

// ids are the ids of letters, shortened as buffer/number.
func ids(letters []core.DeadLetter) []string {
	out := make([]string, len(letters))
	for i := range letters {
		out[i] = strings.Replace(letters[i].ID, "-life-1/", "/", 1)
	}
	return out
}

// same compares letters but for their receipts, taking empty slices for nil.
func same(t *testing.T, want, got []core.DeadLetter, what string) {
	t.Helper()
	got = append([]core.DeadLetter(nil), got...)
	for i := range got {
		got[i].Receipt = ""
	}
	if reflect.DeepEqual(want, got) {
		return
	}
	if d := cmp.Diff(want, got, equal); d != "" {
		require.Fail(t, what+" (-want +got):\n"+d)
	}
}

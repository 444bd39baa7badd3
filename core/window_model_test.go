package core_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

// Windows of ten seconds, whose events may come 2 s late and 30 s ahead.
const (
	windowEvery = 10 * time.Second
	windowGrace = 2 * time.Second
	windowAhead = 30 * time.Second
	retention   = 3 * time.Hour
)

// voyage is a buffer of time windows under random calls and failures, beside
// what must come of it.
type voyage struct {
	d     *dock
	c     *core.Config
	ships []*ship

	latest   core.Millis // that the clock has shown
	final    bool        // there was a final flush
	n        int         // events so far
	requests int
	most     int // that a batch might have so far
	moved    int // that had missed their window
	accepted map[core.Millis][]passenger
	deaths   int // store calls until the process dies; 0: it lives
	outcomes []string

	batches  map[string]string        // what each batch id stands for
	windows  map[core.Millis]string   // the ids of windows
	left     map[core.Millis][]string // members of new batches, in the order in which they left
	taken    map[string]bool          // members that the destination has taken, or that are dead letters
	plain    map[string]bool          // members of claims that were opened without a fold
	problems []string
}

// passenger is an accepted event.
type passenger struct {
	n, request int
	key, value string
	body       string
}

func newVoyage(t *rapid.T, c *core.Config) *voyage {
	v := &voyage{d: newDock(t), c: c, latest: noon, accepted: map[core.Millis][]passenger{},
		batches: map[string]string{}, windows: map[core.Millis]string{}, left: map[core.Millis][]string{}, taken: map[string]bool{}, plain: map[string]bool{}}
	v.d.answer = v.answer
	v.d.write, v.d.read, v.d.look = func(core.Ref) error { return v.alive() }, v.alive, func(core.Ref) error { return v.alive() }
	v.d.due, v.d.turns.fail, v.d.beforePut = v.alive, v.alive, func([]core.DeadLetter) error { return v.alive() }
	v.ships = []*ship{v.d.process(c), v.d.process(c)}
	return v
}

// voyageConfig is a configuration of such windows.
func voyageConfig(t *rapid.T) *core.Config {
	c := docked(func(b *core.Buffer) {
		b.Window = &core.WindowConfig{Every: windowEvery, Grace: windowGrace, MaxAhead: windowAhead, Time: "{{ .json.ts }}"}
		b.FlushEvery = rapid.SampledFrom([]time.Duration{0, 20 * time.Second}).Draw(t, "flush.every")
		b.Batch.MaxItems = rapid.IntRange(1, 4).Draw(t, "maxItems")
		b.Concurrency = rapid.IntRange(1, 3).Draw(t, "concurrency")
		b.Shards = rapid.IntRange(1, 2).Draw(t, "shards")
		b.Ordered = b.Shards == 1 && rapid.Bool().Draw(t, "ordered")
	})
	c.Store.Retention = retention
	d := &c.Destinations[0]
	d.Concurrency, d.Timeout = 1, s
	d.Retry.Initial, d.Retry.Max, d.Retry.MaxAttempts = s, 20*s, 1000
	return c
}

// alive fails once the process has died.
func (v *voyage) alive() error {
	switch v.deaths {
	case 0:
		return nil
	case 1:
		return broken()
	}
	v.deaths--
	return nil
}

func (v *voyage) problemf(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// answer is the destination.
func (v *voyage) answer(b *core.Batch) core.Response {
	v.receive(b)
	what := "ok"
	if len(v.outcomes) > 0 {
		what, v.outcomes = v.outcomes[0], v.outcomes[1:]
	}
	var failed core.Bits
	switch what {
	case "fail":
		return core.Response{Status: 500}
	case "half":
		for i := 0; i < len(b.Items); i += 2 {
			failed = failed.With(i)
		}
	case "die": // when it has taken it
		v.deaths = 1
	}
	for i := range b.Items {
		if !failed.Has(i) || len(b.Items) == 1 {
			v.taken[v.member(b, i)] = true
		}
	}
	if what == "refuse" {
		return core.Response{Status: 400}
	}
	if len(b.Items) == 1 {
		failed = nil
	}
	return core.Response{Status: 200, Failed: failed}
}

// member names one of a batch's items: an event by its number, a row by its
// window and what it says.
func (v *voyage) member(b *core.Batch, i int) string {
	return b.Window.Start.String() + " " + string(b.Items[i].Body)
}

// receive holds a batch against those before.
func (v *voyage) receive(b *core.Batch) {
	if b.Window == nil {
		v.problemf("a batch of no window")
		return
	}
	w := b.Window
	if w.End != w.Start.Add(windowEvery) || int64(w.Start)%windowEvery.Milliseconds() != 0 {
		v.problemf("a window from %s to %s", w.Start, w.End)
	}
	over := w.End
	if !v.final {
		over = over.Add(windowGrace)
	}
	if v.latest < over {
		v.problemf("the window of %s ships at %s", w.Start, v.latest)
	}
	if id, ok := v.windows[w.Start]; ok && id != w.ID {
		v.problemf("the window of %s has two ids", w.Start)
	}
	v.windows[w.Start] = w.ID
	if strings.Count(b.ID, ".") < 2 {
		for i := range b.Items {
			v.plain[v.member(b, i)] = true
		}
	}
	if v.most = max(v.most, v.c.Buffers[0].Batch.MaxItems); len(b.Items) > v.most {
		v.problemf("a batch of %d", len(b.Items))
	}
	text := w.Start.String()
	for i := range b.Items {
		text += "\n" + string(b.Items[i].Body)
	}
	was, ok := v.batches[b.ID]
	if ok && was != text {
		v.problemf("batch %s was\n%s\nand is\n%s", b.ID, was, text)
	}
	if v.batches[b.ID] = text; ok || b.ID != root(b.ID) && v.c.Buffers[0].Fold == nil {
		return // a retry, or what a partial success has left of another
	}
	for i := range b.Items {
		v.left[w.Start] = append(v.left[w.Start], v.member(b, i))
	}
}

// put takes a few events in, and works out what is to become of them.
func (v *voyage) put(t *rapid.T) {
	v.requests++
	now := v.d.clock()
	type event struct {
		passenger
		at core.Millis
	}
	var events []event
	var bodies []string
	refused := false
	for range rapid.IntRange(1, 4).Draw(t, "events") {
		e := event{passenger{n: v.n, request: v.requests, key: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "key"),
			value: rapid.SampledFrom([]string{"1", "-2", "0.1", "0.2", "1e3", "12345678901234567890", "null"}).Draw(t, "value")}, now}
		ts := ""
		switch rapid.IntRange(0, 5).Draw(t, "time") {
		case 0: // as received
		case 1: // at an edge
			e.at = v.start(now.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "windows")) * windowEvery)).
				Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "ms")) * time.Millisecond)
			ts = e.at.String()
		case 2: // long ago
			e.at = now.Add(-retention).Add(time.Duration(rapid.IntRange(-15_000, 15_000).Draw(t, "ms")) * time.Millisecond)
			ts = e.at.String()
		default:
			e.at = now.Add(time.Duration(rapid.IntRange(-40_000, 31_000).Draw(t, "ms")) * time.Millisecond)
			ts = fmt.Sprint(int64(e.at))
		}
		v.n++
		refused = refused || e.at > now.Add(windowAhead)
		events = append(events, e)
		bodies = append(bodies, fmt.Sprintf(`{"ts":%q,"k":%q,"v":%s,"n":%d}`, ts, e.key, e.value, e.n))
	}
	err := rapid.SampledFrom(v.ships).Draw(t, "ship").tryPut(bodies...)
	if refused {
		require.Equal(t, core.Invalid, core.CodeOf(err), "an event too far ahead: %v", err)
		require.ErrorContains(t, err, "maxAhead")
		return
	}
	require.NoError(t, err)
	for i := range events {
		e := &events[i]
		own := v.start(e.at)
		to := own
		late := retention
		if b := &v.c.Buffers[0]; b.Shards > 1 && b.FlushEvery == 0 {
			late = windowGrace
		}
		if own.Add(windowEvery+late) <= now {
			to = v.start(now.Add(-windowGrace))
		}
		for v.closed(to, e.key) {
			to = max(to.Add(windowEvery), v.start(now.Add(-windowGrace)))
		}
		if to != own {
			v.moved++
		}
		e.body = bodies[i]
		v.accepted[to] = append(v.accepted[to], e.passenger)
	}
}

// start is the start of the window around a time.
func (v *voyage) start(at core.Millis) core.Millis {
	return at - at%core.Millis(windowEvery.Milliseconds())
}

// closed asks the store whether a window takes no more.
func (v *voyage) closed(start core.Millis, key string) bool {
	g, err := v.d.memory.Group(context.Background(), v.ref(start, key))
	require.NoError(v.d.t, err)
	return g.Closed != 0
}

func (v *voyage) ref(start core.Millis, key string) core.Ref {
	return core.Ref{Buffer: "b", Key: start.String() + "/" + start.Add(windowEvery).String(), Shard: v.shard(key)}
}

// shard is where the events of a key lie in a window.
func (v *voyage) shard(key string) int {
	if v.c.Buffers[0].Shards == 1 {
		return 0
	}
	p, err := core.NewCatalog(v.c, nil)
	require.NoError(v.d.t, err)
	ref, _, err := p.Buffer("b").Place(&core.Event{JSON: true, Body: fmt.Appendf(nil, `{"k":%q}`, key)}, noon)
	require.NoError(v.d.t, err)
	return ref.Shard
}

// act does one thing, perhaps until the process dies.
func (v *voyage) act(t *rapid.T, do func(*ship) error) {
	v.outcomes = rapid.SliceOfN(rapid.SampledFrom([]string{"ok", "ok", "fail", "half", "die", "refuse"}), 0, 5).Draw(t, "outcomes")
	v.deaths = 0
	if rapid.IntRange(0, 2).Draw(t, "dies") == 0 {
		v.deaths = rapid.IntRange(1, 12).Draw(t, "after")
	}
	p := rapid.IntRange(0, 1).Draw(t, "ship")
	if err := do(v.ships[p]); err != nil {
		require.NotZero(t, v.deaths, "it lives, and fails: %v", err)
	}
	if v.deaths == 1 {
		v.ships[p] = v.d.process(v.c)
	}
	v.deaths, v.outcomes = 0, nil
}

func (v *voyage) flush(t *rapid.T) {
	o := core.FlushOptions{Force: rapid.Bool().Draw(t, "force"), Final: rapid.IntRange(0, 3).Draw(t, "final") == 0}
	v.final = v.final || o.Final
	v.act(t, func(p *ship) error {
		r := p.flush(o)
		if r.Written != nil {
			require.LessOrEqual(t, r.Written.Rows, r.Rows)
		}
		return nil
	})
}

func (v *voyage) pass(t *rapid.T) {
	by := time.Duration(rapid.IntRange(0, 15_000).Draw(t, "ms")) * time.Millisecond
	switch rapid.IntRange(0, 9).Draw(t, "clock") {
	case 0:
		by = -by
	case 1:
		by *= 20
	}
	v.d.pass(by)
	v.latest = max(v.latest, v.d.clock())
}

// actions are what may happen.
func (v *voyage) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"put":     v.put,
		"put2":    v.put,
		"pass":    v.pass,
		"flush":   v.flush,
		"deliver": func(t *rapid.T) { v.act(t, (*ship).deliverAll) },
		"sweep": func(t *rapid.T) {
			v.act(t, func(p *ship) error {
				deaths := v.deaths
				v.deaths = 0 // a sweep sees to many groups at a time: which call is the last would be chance
				_, err := p.sweeper.Sweep(context.Background())
				require.NoError(t, err)
				v.deaths = deaths
				return p.deliverHanded()
			})
		},
		"": func(t *rapid.T) { require.Empty(t, v.problems) },
	}
}

// arrive lets everything leave that there is.
func (v *voyage) arrive(t *rapid.T) {
	for range 100 {
		v.d.pass(time.Minute)
		v.latest = max(v.latest, v.d.clock())
		require.NoError(t, v.ships[0].deliverAll())
		r := v.ships[1].flush(core.FlushOptions{Force: true})
		require.NoError(t, r.Err)
		if len(v.d.busyGroups()) == 0 {
			require.Empty(t, v.problems)
			require.Equal(t, v.moved, v.d.late, "events that were moved on")
			return
		}
	}
	require.Empty(t, v.d.busyGroups(), "what never leaves")
}

// shippedWindows are the starts of the windows that have shipped.
func (v *voyage) shippedWindows() []core.Millis { return slices.Sorted(maps.Keys(v.left)) }

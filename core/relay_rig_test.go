package core_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/core"
	"sluice/core/render"
)

// toy is a language of one-line programs:
//
//	null, nothing, true   give that
//	has x                 whether the body has x
//	fail x                fails on a body that has x, else gives it
//	slow x                runs out of time on a body that has x, else gives it
//	nap x                 gives it after so long
//	cut x                 nothing for a body that has x, else gives it
//	set x                 gives x
func toy(text string) (core.Program, error) {
	verb, arg, _ := strings.Cut(text, " ")
	switch verb {
	case "null", "nothing", "true", "has", "fail", "slow", "nap", "cut", "set":
		return toyProgram{verb, arg}, nil
	}
	return nil, errors.New("there is no " + verb)
}

type toyProgram struct{ verb, arg string }

func (p toyProgram) Run(_ context.Context, in render.Input) (out []byte, ok bool, err error) {
	body := in.Body()
	has := strings.Contains(string(body), p.arg)
	switch p.verb {
	case "nothing":
		return nil, false, nil
	case "has":
		return fmt.Append(nil, has), true, nil
	case "fail":
		if has {
			return nil, false, errors.New("it has " + p.arg)
		}
		return body, true, nil
	case "slow":
		if has {
			return nil, false, context.DeadlineExceeded
		}
		return body, true, nil
	case "nap":
		long, err := time.ParseDuration(p.arg)
		<-time.After(long)
		return body, true, err
	case "cut":
		return body, !has, nil
	case "set":
		return []byte(p.arg), true, nil
	}
	return []byte(p.verb), true, nil
}

// counts counts what was observed.
type counts struct {
	mu    sync.Mutex
	n     map[string]int
	order []string // breakers that opened and closed
}

func (t *counts) add(n int, what ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = make(map[string]int)
	}
	t.n[strings.TrimSpace(fmt.Sprintln(what...))] += n
}

// of is how often something was observed.
func (t *counts) of(what string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n[what]
}

// String is all of it, in order.
func (t *counts) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(t.n)) {
		lines = append(lines, fmt.Sprintf("%s: %d", what, t.n[what]))
	}
	return strings.Join(lines, "\n")
}

func (t *counts) observer(failed func(string, error)) *core.Observer {
	return &core.Observer{
		Events:      func(_, outcome string, n int) { t.add(n, outcome) },
		Shadow:      func(_, outcome string, n int) { t.add(n, "shadow", outcome) },
		DeadLetters: func(l *core.DeadLetter, n int) { t.add(n, "dead", l.Reason) },
		Breaker: func(_ string, open bool) {
			t.add(1, "breaker", open)
			t.mu.Lock()
			defer t.mu.Unlock()
			t.order = append(t.order, fmt.Sprint(open))
		},
		Failed: failed,
	}
}

// sleep sleeps, in a bubble.
func sleep(ctx context.Context, d time.Duration) error {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// at1 makes a buffer's batches leave at once.
func at1(c *core.Config) { c.Buffers[0].Batch.MaxItems = 1 }

// out changes the destination.
func out(change func(*core.Destination)) func(*core.Config) {
	return func(c *core.Config) { change(&c.Destinations[0]) }
}

// buf changes the buffer.
func buf(change func(*core.Buffer)) func(*core.Config) {
	return func(c *core.Config) { change(&c.Buffers[0]) }
}

// with adds a destination like the first, by name.
func with(name string, change ...func(*core.Destination)) func(*core.Config) {
	return func(c *core.Config) {
		d := c.Destinations[0]
		d.Name, d.Fallbacks, d.Breaker, d.RateLimit = name, nil, nil, nil
		for _, f := range change {
			f(&d)
		}
		c.Destinations = append(c.Destinations, d)
	}
}

// beside adds a buffer like the first, by name.
func beside(name string, change ...func(*core.Buffer)) func(*core.Config) {
	return func(c *core.Config) {
		b := c.Buffers[0]
		b.Name = name
		for _, f := range change {
			f(&b)
		}
		c.Buffers = append(c.Buffers, b)
	}
}

// fallback gives the destination a fallback, b, and both so many attempts.
func fallback(attempts int) func(*core.Config) {
	return func(c *core.Config) {
		d := &c.Destinations[0]
		d.Fallbacks = []string{"second"}
		d.Retry.MaxAttempts = attempts
		with("second", func(d *core.Destination) { d.Retry.MaxAttempts = attempts })(c)
	}
}

// trail is what was sent, a line each: when, where to, which attempt, what.
func (r *rig) trail() string {
	var lines []string
	for _, s := range r.sends() {
		lines = append(lines, fmt.Sprintf("%.3f %s #%d %s", s.at.Seconds(), s.destination, s.Attempt, strings.Join(bodies(s.Items), " ")))
	}
	return strings.Join(lines, "\n")
}

// answers makes destinations answer by their name: a status each.
func (r *rig) answers(of map[string]int) {
	r.replies(func(to string, _ *core.Batch) core.Response {
		if status, ok := of[to]; ok {
			return core.Response{Status: status}
		}
		return core.Response{Status: 200}
	})
}

// replies sets what destinations answer.
func (r *rig) replies(fn func(to string, b *core.Batch) core.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = fn
}

func lines(s ...string) string { return strings.Join(s, "\n") }

// left is the groups that hold anything.
func (r *rig) left() []string {
	var refs []string
	for h, err := range r.store.Due(context.Background(), core.Millis(1<<62)) {
		r.noError(err)
		refs = append(refs, h.Ref.String())
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// lettersOf is the bodies of dead letters, in order.
func lettersOf(r *rig) []string {
	var of []string
	for _, l := range r.deadLetters() {
		of = append(of, string(l.Item.Body))
	}
	slices.Sort(of)
	return of
}

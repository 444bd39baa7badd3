package jq

import (
	"context"
	"encoding/json"
	"math/big"
	"time"
)

// Bounds on one run.
const (
	Timeout  = 50 * time.Millisecond
	maxSteps = 2_000_000 // instructions of gojq
	maxWork  = 64 << 20  // what its single instructions go through and make, in bytes or as much
	maxIndex = 1 << 16   // of arrays that are written to
	lowIndex = 64        // below it, no index costs anything
	digits   = 1_000     // of a number that is calculated with
)

// meter is the context of one run, and bounds it: gojq asks its context before
// every instruction whether to go on, and the guards charge what a single
// instruction may cost.
type meter struct {
	context.Context //nolint:containedctx // it is a context itself, which lives as long as one run

	re       *patterns
	deadline time.Time
	steps    int
	work     int
	looked   int // the work at the last look at the clock
	err      error
}

func newMeter(ctx context.Context, re *patterns) *meter {
	return &meter{Context: ctx, re: re, deadline: time.Now().Add(Timeout), err: ctx.Err()}
}

// slow is the error of a run that took too long by the clock: it may only have
// waited for the processor, so it is no verdict on the program.
type slow struct{}

func (slow) Error() string { return "the program takes longer than 50 ms" }

// Temporary says that the next run may end.
func (slow) Temporary() bool { return true }

// lookEvery is how many steps, or how many times 256 bytes of work, go by between
// looks at the clock. Most programs end before the first, so that they do not
// fail because a machine was busy with something else.
const lookEvery = 8192

// over is closed, for all runs.
var over = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done counts a step. It never returns a channel to wait on.
func (m *meter) Done() <-chan struct{} {
	if m.steps++; m.steps%lookEvery == 0 {
		m.look()
	}
	if m.err != nil {
		return over
	}
	return nil
}

func (m *meter) look() {
	m.looked = m.work
	switch {
	case m.err != nil:
	case m.steps > maxSteps:
		m.err = errSteps
	case m.Context.Err() != nil:
		m.err = m.Context.Err()
	case time.Now().After(m.deadline):
		m.err = slow{}
	}
}

// Err is why the run is over, and nil before.
func (m *meter) Err() error { return m.err }

// fail ends the run. Programs can't catch it.
func (m *meter) fail(err error) error {
	if m.err == nil {
		m.err = err
	}
	return m.err
}

// charge is for an instruction of that much work, before it runs.
func (m *meter) charge(work int) error {
	if work < 0 || work > maxWork-m.work {
		return m.fail(errWork)
	}
	if m.work += work; m.work-m.looked > lookEvery<<8 {
		m.look()
	}
	return m.err
}

// product charges n times times.
func (m *meter) product(n, times int) error {
	if n > 0 && times > maxWork/n {
		return m.fail(errWork)
	}
	return m.charge(n * times)
}

// deep charges for going through all of a value, weight times, and returns its size.
func (m *meter) deep(v any, weight int) (int, error) {
	left := (maxWork - m.work) / weight
	s := size{left: left}
	if s.deep(v, 0); s.err != nil {
		return 0, m.fail(s.err)
	}
	return 1 + left - s.left, m.charge((left - s.left) * weight)
}

// size measures values.
type size struct {
	left int
	text bool // it is only to be written: numbers may be of any length
	err  error
}

// What takes memory, in bytes.
const (
	element = 16 // a value, and its place in an array
	member  = 48 // of an object
)

// flat is the size of a value without what is in its members.
func flat(v any) int {
	switch v := v.(type) {
	case string:
		return 1 + len(v)
	case json.Number:
		return 1 + len(v)
	case []any:
		return 1 + element*len(v)
	case map[string]any:
		return 1 + member*len(v)
	}
	return 1
}

// deep takes a value off what is left: at least its text, or what it takes in memory.
func (s *size) deep(v any, depth int) {
	if depth > MaxDepth {
		s.err = errDeep
	}
	if s.left--; !s.text {
		s.left -= element
	}
	switch v := v.(type) {
	case string:
		s.left -= len(v)
	case json.Number:
		s.left -= len(v) - 1
	case []any:
		for i := 0; i < len(v) && s.left >= 0 && s.err == nil; i++ {
			s.deep(v[i], depth+1)
		}
	case map[string]any:
		for k, e := range v {
			if s.left -= len(k); s.left < 0 || s.err != nil {
				break
			}
			s.deep(e, depth+1)
		}
	}
	if s.err == nil && !s.text {
		s.err = short(v)
	}
	if s.err == nil && s.left < 0 {
		s.err = errWork
	}
}

// short refuses numbers that take long to calculate with.
func short(v any) error {
	switch v := v.(type) {
	case json.Number:
		if len(v) > digits {
			return errDigits
		}
	case *big.Int:
		if v.BitLen() > digits*10/3 {
			return errDigits
		}
	}
	return nil
}

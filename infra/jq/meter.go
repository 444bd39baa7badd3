package jq

import (
	"context"
	"encoding/json"
	"math/big"
	"time"
)

// Bounds on one run.
const (
	Timeout  = 2 * time.Second
	maxSteps = 1_000_000 // instructions of gojq
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

	re     *patterns
	steps  int
	work   int
	took   time.Duration // as of the last look at the clock
	at     time.Time     // when that was
	looked int           // the work at that time
	err    error
}

func newMeter(ctx context.Context, re *patterns) *meter {
	return &meter{Context: ctx, re: re, at: time.Now(), err: ctx.Err()}
}

const (
	// lookEvery is how many steps go by between looks at the clock, and workEvery
	// how much work.
	lookEvery = 256
	workEvery = 2 << 20

	// longest is the most that counts of the time between two looks: what is
	// longer is a machine that stood still.
	longest = 500 * time.Millisecond
)

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
	now := time.Now()
	m.took += min(now.Sub(m.at), longest)
	m.at, m.looked = now, m.work
	switch {
	case m.err != nil:
	case m.steps > maxSteps:
		m.err = errSteps
	case m.Context.Err() != nil:
		m.err = m.Context.Err()
	case m.took > Timeout:
		m.err = errSlow
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
	if m.work += work; m.work-m.looked > workEvery {
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

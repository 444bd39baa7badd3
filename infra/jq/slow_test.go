package jq

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What ends a run is the fault of program and payload, be it the clock: another
// try would end the same way. Only the end of the caller's time says nothing.
func TestWhoseFaultItIs(t *testing.T) {
	t.Parallel()
	temporary := func(err error) bool {
		e, ok := err.(interface{ Temporary() bool })
		return ok && e.Temporary()
	}
	ended, end := context.WithTimeout(t.Context(), -1)
	defer end()
	fresh := func() *meter { return newMeter(t.Context(), newPatterns()) }
	for name, tt := range map[string]struct {
		set       func(*meter)
		want      error
		temporary bool
	}{
		"time":         {func(m *meter) { m.took = Timeout }, errSlow, false},
		"steps":        {func(m *meter) { m.steps = maxSteps + 1 }, errSteps, false},
		"both":         {func(m *meter) { m.took, m.steps = Timeout, maxSteps+1 }, errSteps, false},
		"the caller's": {func(m *meter) { m.took, m.Context = Timeout, ended }, context.DeadlineExceeded, true},
		"a pause":      {func(m *meter) { m.at = m.at.Add(-time.Hour) }, nil, false},
	} {
		m := fresh()
		tt.set(m)
		m.at = m.at.Add(-time.Millisecond)
		m.look()
		require.ErrorIs(t, m.Err(), tt.want, name)
		require.Equal(t, tt.temporary, temporary(m.Err()), name)
	}
	require.False(t, temporary(fresh().charge(maxWork+1)))
}

// An endless program is ended by what it does, and not by the clock.
func TestStepsEndBeforeTheClock(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`def f: f; f`, `last(repeat(1))`, `[range(1e9)]`, `"x" * 1e9`, `[limit(1e9; repeat(1))]`} {
		p, err := Compile(text)
		require.NoError(t, err)
		_, _, err = p.Run(t.Context(), nothing{})
		require.Error(t, err, text)
		require.NotErrorIs(t, err, errSlow, text)
	}
}

// TestTheClock ends what counts few steps and little work.
func TestTheClock(t *testing.T) {
	t.Parallel()
	p, err := Compile(`("0," * 50000 | "[\(.)0]" | fromjson) as $many | [range(1e9) | first($many[])]`)
	require.NoError(t, err)
	begin := time.Now()
	_, _, err = p.Run(t.Context(), nothing{})
	require.ErrorIs(t, err, errSlow)
	require.Less(t, time.Since(begin), time.Minute)

	ctx, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer end()
	_, _, err = p.Run(ctx, nothing{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// nothing is an event without anything.
type nothing struct{}

func (nothing) ID() string                 { return "" }
func (nothing) Source() string             { return "" }
func (nothing) Body() []byte               { return nil }
func (nothing) JSON() bool                 { return false }
func (nothing) Header(string) string       { return "" }
func (nothing) Headers() map[string]string { return nil }

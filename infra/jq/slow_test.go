package jq

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What ends a run by the clock may be another's load, and says so; what ends it
// by its own cost is the program's fault.
func TestTheClockIsNoVerdict(t *testing.T) {
	t.Parallel()
	temporary := func(err error) bool {
		e, ok := err.(interface{ Temporary() bool })
		return ok && e.Temporary()
	}
	m := newMeter(t.Context(), newPatterns())
	m.deadline = time.Time{}
	m.look()
	require.EqualError(t, m.Err(), "the program takes longer than 50 ms")
	require.True(t, temporary(m.Err()))

	m = newMeter(t.Context(), newPatterns())
	m.deadline, m.steps = time.Time{}, maxSteps+1
	m.look()
	require.ErrorIs(t, m.Err(), errSteps)
	require.False(t, temporary(m.Err()))
	require.False(t, temporary(newMeter(t.Context(), newPatterns()).charge(maxWork+1)))
}

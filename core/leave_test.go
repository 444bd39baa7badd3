package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// What is held goes on and leaves in one step, where the store can: whatever
// happens in between, it does not go on twice.
func TestHeldEventsGoOnOnce(t *testing.T) {
	t.Parallel()
	c := config(batch(50, 5*s, 15*s), after(time.Hour))
	m := newManual(t, c)
	m.put("a", "b", "a")
	m.pass(2 * time.Hour)
	held, err := m.memory.Groups(context.Background(), "b~held", nil, 10)
	require.NoError(t, err)
	require.Len(t, held, 1)

	claimed := false
	m.store.write = func() error { // from the claim on, the process might as well be dead
		if claimed {
			return broken()
		}
		claimed = true
		return nil
	}
	require.NoError(t, m.tryDeliver(context.Background(), held[0].Ref))
	m.store.write = nil
	left, err := m.memory.Group(context.Background(), held[0].Ref)
	require.NoError(t, err)
	require.True(t, left.Empty(), "it has left")
	for _, key := range []string{"a", "b"} {
		g := m.group(key)
		require.Equal(t, map[string]uint64{"a": 2, "b": 1}[key], g.Pending())
	}
	m.pass(time.Hour)
	m.fire()
	for len(m.handed) > 0 {
		r := m.handed[0].Ref
		m.handed = m.handed[1:]
		require.NoError(t, m.tryDeliver(context.Background(), r))
	}
	n := 0
	for _, b := range m.sent {
		n += len(b.Items)
	}
	require.Equal(t, 3, n)
}

// shutOnce is a store in which the windows of the first append are closed.
type shutOnce struct {
	core.Store
	calls [][]core.Part
}

func (s *shutOnce) Append(ctx context.Context, now core.Millis, parts []core.Part) ([]core.Appended, error) {
	s.calls = append(s.calls, parts)
	if len(s.calls) > 1 {
		return s.Store.Append(ctx, now, parts)
	}
	answers := make([]core.Appended, len(parts))
	for i := range parts {
		answers[i].Closed = parts[i].Change == nil
	}
	return answers, nil
}

func TestHeldEventsThatMeetAClosedWindow(t *testing.T) {
	t.Parallel()
	m := newManual(t, config(batch(50, 5*s, 15*s), after(time.Hour)))
	m.put("a")
	m.pass(2 * time.Hour)
	m.configure(config(batch(50, 5*s, 15*s), buf(windowed)))
	shut := &shutOnce{Store: m.memory}
	m.store.Store = shut
	held, err := m.memory.Groups(context.Background(), "b~held", nil, 10)
	require.NoError(t, err)
	require.NoError(t, m.tryDeliver(context.Background(), held[0].Ref))
	require.Len(t, shut.calls, 2)
	require.NotNil(t, shut.calls[1][1].Change, "they leave when they are stored")
	left, err := m.memory.Group(context.Background(), held[0].Ref)
	require.NoError(t, err)
	require.True(t, left.Empty())
}

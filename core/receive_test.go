package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// TestReceive takes what can be taken: what is refused stays, and with it what
// is behind it in its own unit of order.
func TestReceive(t *testing.T) {
	t.Parallel()
	message := func(unit, ts string) core.Event {
		return core.Event{ID: unit + ts, Unit: unit, JSON: true, Body: fmt.Appendf(nil, `{"ts":%q}`, ts)}
	}
	const good, bad = "2023-11-14T22:13:30Z", "soon"
	for _, tc := range []struct {
		name   string
		events []core.Event
		left   []int
	}{
		{"nothing", nil, nil},
		{"all", []core.Event{message("", good), message("", good)}, nil},
		{"one refused, of no unit", []core.Event{message("", good), message("", bad), message("", good)}, []int{1}},
		{"one refused holds its unit", []core.Event{message("a", good), message("b", bad), message("a", good), message("b", good)}, []int{1, 3}},
		{"several", []core.Event{message("a", bad), message("b", good), message("", bad), message("a", good)}, []int{0, 2, 3}},
		{"none", []core.Event{message("", bad)}, []int{0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDock(t)
			p := d.process(docked(windowed))
			got := leftOf(p.ingester.Receive(context.Background(), "in", tc.events))
			require.Equal(t, tc.left, got)
			n := 0
			for _, key := range d.busyGroups() {
				g, err := d.memory.Group(context.Background(), core.Ref{Buffer: "b", Key: key})
				require.NoError(t, err)
				n += int(g.Pending())
			}
			require.Equal(t, len(tc.events)-len(tc.left), n)
		})
	}
}

// leftOf is the positions of what was not taken.
func leftOf(errs []error) (left []int) {
	for i, err := range errs {
		if err != nil {
			left = append(left, i)
		}
	}
	return left
}

// TestReceiveWhatOneGroupHasNoRoomFor takes what the others have room for.
func TestReceiveWhatOneGroupHasNoRoomFor(t *testing.T) {
	t.Parallel()
	message := func(unit, key string) core.Event {
		return core.Event{ID: unit + key, Unit: unit, JSON: true, Body: fmt.Appendf(nil, `{"k":%q}`, key)}
	}
	in := newIntake(t, config(batch(9, time.Minute, time.Minute), buf(func(b *core.Buffer) { b.Overflow.MaxItems = 2 })))
	for _, tc := range []struct {
		name   string
		events []core.Event
		left   []int
		code   core.Code
	}{
		{"too many at once", []core.Event{message("", "a"), message("", "a"), message("", "a"), message("", "b")}, []int{2}, core.Full},
		{"no room, and room", []core.Event{message("", "a"), message("", "b"), message("", "c")}, []int{0}, core.Full},
		{"units", []core.Event{message("x", "a"), message("y", "d"), message("x", "d"), message("z", "e")}, []int{0, 2}, core.Full},
		{"refused as well", []core.Event{message("x", "a"), {ID: "long", Unit: "y", Body: make([]byte, 2*core.MiB)}, message("y", "f"), message("", "f")}, []int{0, 1, 2}, core.Full},
	} {
		errs := in.Receive(t.Context(), "in", tc.events)
		require.Equal(t, tc.left, leftOf(errs), tc.name)
		require.Equal(t, tc.code, core.CodeOf(errs[tc.left[0]]), tc.name)
	}
}

// TestReceiveWithoutStore leaves all, and asks the store no more than once.
func TestReceiveWithoutStore(t *testing.T) {
	t.Parallel()
	in := newIntake(t, config())
	in.answer = func([]core.Part) ([]core.Appended, error) { return nil, core.Errorf(core.Unavailable, "down") }
	errs := in.Receive(t.Context(), "in", []core.Event{{ID: "a"}, {ID: "b"}, {ID: "c"}})
	require.Equal(t, []int{0, 1, 2}, leftOf(errs))
	require.Len(t, in.parts, 1)

	in.parts = nil
	calls := 0
	in.answer = func([]core.Part) ([]core.Appended, error) {
		switch calls++; calls {
		case 1:
			return nil, core.Errorf(core.Full, "full")
		case 2:
			return nil, nil
		}
		return nil, core.Errorf(core.Unavailable, "down")
	}
	errs = in.Receive(t.Context(), "in", []core.Event{{ID: "a"}, {ID: "b"}, {ID: "c"}})
	require.Equal(t, []int{1, 2}, leftOf(errs))
	require.Len(t, in.parts, 3)
}

// TestReceiveWhatIsUnderWay leaves the one message whose id another request has
// in hand, and those behind it in its unit, and takes its neighbours; a request
// over HTTP is asked to come again.
func TestReceiveWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	in := newIntake(t, config())
	in.answer = func(parts []core.Part) ([]core.Appended, error) {
		for i := range parts {
			for _, e := range parts[i].Events {
				if e.ID == "busy" {
					return nil, &core.Error{Code: core.Conflict, RetryAfter: time.Second, Detail: "another has it"}
				}
			}
		}
		return nil, nil
	}
	errs := in.Receive(t.Context(), "in", []core.Event{{ID: "a"}, {ID: "busy", Unit: "u"}, {ID: "b"}, {ID: "c", Unit: "u"}, {ID: "d"}})
	require.Equal(t, []int{1, 3}, leftOf(errs))
	require.Equal(t, core.Conflict, core.CodeOf(errs[1]))

	_, err := in.send("e", "busy")
	require.Equal(t, core.Unavailable, core.CodeOf(err))
	require.Equal(t, time.Second, core.RetryAfterOf(err))
	require.Equal(t, "another has it", core.DetailOf(err))
}

// TestReceiveCounts counts each message once, however often it was tried, and
// what waits in its queue not at all.
func TestReceiveCounts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		code  core.Code // with which the store meets the bad one
		large bool      // core itself finds that it is bad
		want  map[string]int
	}{
		{"all good", 0, false, map[string]int{core.EventsAccepted: 10}},
		{"one refused", 0, true, map[string]int{core.EventsAccepted: 9, core.EventsRefused: 1}},
		{"one refused by the store", core.TooLarge, false, map[string]int{core.EventsAccepted: 9, core.EventsRefused: 1}},
		{"one without room", core.Full, false, map[string]int{core.EventsAccepted: 9}},
		{"one under way", core.Conflict, false, map[string]int{core.EventsAccepted: 9}},
		{"no store", core.Unavailable, false, map[string]int{}},
	} {
		got := map[string]int{}
		in := newIntake(t, config(), func(p *core.Ports) {
			p.Observer = &core.Observer{Events: func(_, outcome string, n int) { got[outcome] += n }}
		})
		in.answer = func(parts []core.Part) ([]core.Appended, error) {
			for _, e := range parts[0].Events {
				if e.ID == "bad" && tc.code != 0 {
					return nil, core.Errorf(tc.code, "no")
				}
			}
			return nil, nil
		}
		events := make([]core.Event, 10)
		for i := range events {
			events[i].ID = fmt.Sprint(i)
		}
		events[4].ID = "bad"
		if tc.large {
			events[4].Body = make([]byte, 2*core.MiB)
		}
		in.Receive(t.Context(), "in", events)
		require.Equal(t, tc.want, got, tc.name)
	}
}

// TestReceiveHeaders refuses a message with more headers than an event may have.
func TestReceiveHeaders(t *testing.T) {
	t.Parallel()
	in := newIntake(t, config())
	headers := func(n int) []core.Header {
		return []core.Header{{Name: "a", Value: strings.Repeat("b", n-1)}}
	}
	errs := in.Receive(t.Context(), "in", []core.Event{{ID: "a", Headers: headers(core.MaxHeaderBytes)}, {ID: "b", Headers: headers(core.MaxHeaderBytes + 1)}})
	require.Equal(t, []int{1}, leftOf(errs))
	require.Equal(t, core.TooLarge, core.CodeOf(errs[1]))
	require.ErrorContains(t, errs[1], "more than 8KiB")
}

// TestMoreThanTheStoreTakes refuses an event that its transform has made larger
// than the store takes, by its place, before anything is stored.
func TestMoreThanTheStoreTakes(t *testing.T) {
	t.Parallel()
	large := fmt.Sprintf(`set {"k":%q}`, strings.Repeat("x", 600))
	in := newIntake(t, config(buf(func(b *core.Buffer) { b.Transform = large })), func(p *core.Ports) { p.MaxEvent = 600 })
	_, err := in.send("a", "b")
	refused, ok := errors.AsType[*core.EventError](err)
	require.True(t, ok, "%v", err)
	require.Zero(t, refused.Index)
	require.Equal(t, core.TooLarge, core.CodeOf(err))
	require.Empty(t, in.parts)
}

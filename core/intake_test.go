package core_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/memory"
)

// intake is an ingester alone, on a store whose appends a test may answer itself.
type intake struct {
	*core.Ingester
	t      testing.TB
	memory *memory.Store
	answer func(parts []core.Part) ([]core.Appended, error) // nil: the memory store's
	parts  [][]core.Part                                    // that were appended, by call
	look   time.Duration                                    // that reading a record takes
}

func newIntake(t testing.TB, c *core.Config, change ...func(*core.Ports)) *intake {
	t.Helper()
	catalog, err := core.NewCatalog(c, toy)
	require.NoError(t, err)
	in := &intake{t: t, memory: memory.New()}
	n := 0
	ports := core.Ports{
		Store: intakeStore{in.memory, in}, Timer: silent{}, Queue: mute{}, DeadLetters: in.memory.DeadLetters(),
		Coordinator: memory.NewCoordinator(), Sleep: sleep,
		Clock: core.ClockFunc(func() core.Millis { return core.At(time.Now()) }),
		IDs: core.IDsFunc(func() string {
			n++
			return strconv.Itoa(n)
		}),
	}
	for _, f := range change {
		f(&ports)
	}
	in.Ingester = core.NewIngester(catalog, ports)
	return in
}

type mute struct{}

func (mute) Hand(context.Context, core.Delivery) error { return nil }

type intakeStore struct {
	core.Store
	in *intake
}

func (s intakeStore) Append(ctx context.Context, now core.Millis, parts []core.Part) ([]core.Appended, error) {
	s.in.parts = append(s.in.parts, parts)
	if s.in.answer != nil {
		if done, err := s.in.answer(parts); done != nil || err != nil {
			return done, err
		}
	}
	return s.Store.Append(ctx, now, parts)
}

func (s intakeStore) Group(ctx context.Context, ref core.Ref) (core.Group, error) {
	if s.in.look > 0 {
		if err := sleep(ctx, s.in.look); err != nil {
			return core.Group{}, err
		}
	}
	return s.Store.Group(ctx, ref)
}

// send ingests events of these ids.
func (in *intake) send(ids ...string) (core.Receipt, error) {
	events := make([]core.Event, len(ids))
	for i, id := range ids {
		events[i] = core.Event{ID: id, JSON: true, Body: fmt.Appendf(nil, `{"k":"a","at":%q}`, id)}
	}
	return in.Ingest(context.Background(), "in", events)
}

// closing answers the first call of all as that a window has closed when so many
// events were stored, without some doubles among them.
func (in *intake) closing(stored int, doubles ...int) {
	in.answer = func([]core.Part) ([]core.Appended, error) {
		if len(in.parts) == 1 {
			return []core.Appended{{Closed: true, Stored: stored, Doubles: doubles}}, nil
		}
		return nil, nil
	}
}

// What was stored before a window closed counts, and is not stored again.
func TestEventsStoredBeforeAWindowCloses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		stored  int
		doubles []int
		moved   int
		want    core.Receipt
	}{
		{"none", 0, nil, 3, core.Receipt{Accepted: 3}},
		{"two of three", 2, nil, 1, core.Receipt{Accepted: 3}},
		{"a double and another", 2, []int{0}, 1, core.Receipt{Accepted: 2, Duplicates: 1}},
		{"two, and a double between them", 3, []int{1}, 0, core.Receipt{Accepted: 2, Duplicates: 1}},
	} {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprint(tc.name, " ", waits), func(t *testing.T) {
				t.Parallel()
				tc := tc
				c := docked(windowed, func(b *core.Buffer) { b.Window.Time, b.Dedupe = "", time.Minute })
				c.Sources[0].AckDelivered, c.Sources[0].RespondTimeout = waits, 100*time.Millisecond
				if waits {
					tc.want.Status = core.StatusPending
				}
				in := newIntake(t, c)
				in.closing(tc.stored, tc.doubles...)
				tc.want.IDs = []string{"x", "y", "z"}
				got, err := in.send(tc.want.IDs...)
				require.NoError(t, err)
				require.Equal(t, tc.want, got)
				if tc.moved == 0 {
					require.Len(t, in.parts, 1)
				} else {
					require.Len(t, in.parts[1][0].Events, tc.moved)
				}
			})
		}
	}
}

// Where the numbers of items are not known, nobody looks at those of others.
func TestNumbersThatAreNotKnown(t *testing.T) {
	t.Parallel()
	in := newIntake(t, config(waits))
	in.answer = func([]core.Part) ([]core.Appended, error) {
		return []core.Appended{{First: 7, Life: "gone", Split: true}}, nil
	}
	got, err := in.send("x", "y")
	require.NoError(t, err)
	require.Equal(t, core.StatusPending, got.Status)
}

// Who can't wait says so.
func TestAnIngesterThatCannotWait(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*core.Ports){
		"no coordinator":   func(p *core.Ports) { p.Coordinator = nil },
		"nothing to sleep": func(p *core.Ports) { p.Sleep = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newIntake(t, config(waits), change).send("x")
			require.NoError(t, err)
			require.Equal(t, core.Receipt{IDs: []string{"x"}, Accepted: 1, Status: core.StatusPending}, got)
		})
	}
}

// Nor is word left of a dead letter where nobody can wait for it.
func TestADeadLetterWithoutCoordinator(t *testing.T) {
	t.Parallel()
	m := newManual(t, config(at1, waits))
	m.answer = func(context.Context, *core.Batch) core.Response { return core.Response{Status: 400} }
	m.put("a")
	m.deliver("a")
	require.Equal(t, 1, m.deadLetters())
}

// slow is a coordinator each of whose calls takes a time.
type slow struct {
	core.Coordinator
	takes time.Duration
}

func (s slow) Change(ctx context.Context, name string, fn func([]byte) ([]byte, error)) error {
	if err := sleep(ctx, s.takes); err != nil {
		return err
	}
	return s.Coordinator.Change(ctx, name, fn)
}

// A request of many events waits for none of its records after another, and what
// it has waited for them counts.
func TestManyEventsOnASlowCoordinator(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(t, config(waits), func(p *core.Ports) { p.Coordinator = slow{p.Coordinator, 20 * time.Millisecond} })
		begin := time.Now()
		ids := make([]string, 160)
		for i := range ids {
			ids[i] = strconv.Itoa(i)
		}
		got, err := in.send(ids...)
		require.NoError(t, err)
		require.Equal(t, core.StatusPending, got.Status)
		require.Equal(t, 10*time.Second+10*20*time.Millisecond, time.Since(begin), "the records are taken away at the end")
	})
}

// Nor does it read its groups one after the other.
func TestManyGroupsOnASlowStore(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(t, config(waits))
		in.look = 100 * time.Millisecond
		events := make([]core.Event, 160)
		for i := range events {
			events[i] = core.Event{JSON: true, Body: fmt.Appendf(nil, `{"k":"%d"}`, i)}
		}
		begin := time.Now()
		got, err := in.Ingest(t.Context(), "in", events)
		require.NoError(t, err)
		require.Equal(t, core.StatusPending, got.Status)
		require.Less(t, time.Since(begin), 11*time.Second+time.Millisecond)
	})
}

// A held event's outcome is not known in time, so no record is made for it.
func TestNoRecordsOfWhatIsHeld(t *testing.T) {
	t.Parallel()
	in := newIntake(t, config(waits, sendAt), func(p *core.Ports) { p.Coordinator = slow{nil, 0} })
	got, err := in.send("9999-12-31T00:00:00Z")
	require.NoError(t, err)
	require.Equal(t, core.StatusPending, got.Status)
}

// A dead letter is put when the rest is stored, and the same one each time that
// its event is sent.
func TestDeadLettersOfBadTimes(t *testing.T) {
	t.Parallel()
	in := newIntake(t, config(sendAt))
	letters := func() []core.DeadLetter {
		all, _, err := in.memory.DeadLetters().List(t.Context(), core.DeadLetterFilter{}, "", 10)
		require.NoError(t, err)
		return all
	}
	full := true
	in.answer = func([]core.Part) ([]core.Appended, error) {
		if full {
			return nil, core.Errorf(core.Full, "full")
		}
		return nil, nil
	}
	_, err := in.send("garbage", "")
	require.Equal(t, core.Full, core.CodeOf(err))
	require.Empty(t, letters(), "nothing of a request that is refused")
	full = false
	for range 2 {
		got, err := in.send("garbage", "")
		require.NoError(t, err)
		require.Equal(t, 2, got.Accepted)
	}
	require.Len(t, letters(), 1)
	_, err = in.send("rubbish")
	require.NoError(t, err)
	require.Len(t, letters(), 2)
	_, err = in.Ingest(t.Context(), "in", []core.Event{{ID: "garbage", JSON: true, Body: []byte(`{"k":"a","at":"other"}`)}})
	require.NoError(t, err)
	require.Len(t, letters(), 3, "another of the same id is not lost")
}

// badLetters takes no dead letters.
type badLetters struct{}

func (badLetters) Put(context.Context, []core.DeadLetter) error {
	return core.Errorf(core.Full, "no room for it")
}

func TestADeadLetterThatCannotBePut(t *testing.T) {
	t.Parallel()
	in := newIntake(t, config(sendAt), func(p *core.Ports) { p.DeadLetters = badLetters{} })
	_, err := in.send("garbage", "")
	require.Equal(t, core.Unavailable, core.CodeOf(err), "some of it is stored")
}

// What is held and what is not count together against the size.
func TestHeldAndPlainEventsOfOneRequest(t *testing.T) {
	t.Parallel()
	in := newIntake(t, config(sendAt, buf(func(b *core.Buffer) { b.Size = 3 })))
	const later = "9999-12-31T00:00:00Z"
	_, err := in.send(later, "", later, "")
	require.Equal(t, core.TooLarge, core.CodeOf(err))
	require.ErrorContains(t, err, "buffer b than the 3")
	_, err = in.send(later, "", later)
	require.NoError(t, err)
}

// A request of a buffer without anything to shape its events costs what it must.
func TestAllocationsOfARequest(t *testing.T) { //nolint:paralleltest // it counts allocations
	in := newIntake(t, config(), func(p *core.Ports) { p.Store = still{} })
	for n, most := range map[int]float64{1: 8, 1000: 20} {
		events := make([]core.Event, n)
		for i := range events {
			events[i] = core.Event{ID: "x", JSON: true, Body: []byte(`{}`)}
		}
		got := testing.AllocsPerRun(100, func() {
			if _, err := in.Ingest(context.Background(), "in", events); err != nil {
				t.Fatal(err)
			}
		})
		require.LessOrEqual(t, got, most, "%d events", n)
	}
}

// still is a store that takes one part, and keeps nothing.
type still struct{ core.Store }

var stored = []core.Appended{{First: 1}}

func (still) Append(context.Context, core.Millis, []core.Part) ([]core.Appended, error) {
	return stored, nil
}

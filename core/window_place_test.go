package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// Where events of some times belong at 22:13:20.000Z, noon.
func TestWindowOfATime(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		every time.Duration
		time  string
		want  string // start of its window, and whether it was moved on; or what is wrong
	}{
		{"as received", time.Minute, "", "2023-11-14T22:13:00.000Z"},
		{"blanks", time.Minute, "  ", "2023-11-14T22:13:00.000Z"},
		{"at a start", time.Minute, "2023-11-14T22:12:00Z", "2023-11-14T22:12:00.000Z"},
		{"just before an end", time.Minute, "2023-11-14T22:12:59.999Z", "2023-11-14T22:12:00.000Z"},
		{"within the last millisecond", time.Minute, "2023-11-14T22:12:59.999999Z", "2023-11-14T22:12:00.000Z"},
		{"at an end", time.Minute, "2023-11-14T22:13:00.000Z", "2023-11-14T22:13:00.000Z"},
		{"another time zone", time.Minute, "2023-11-15T03:58:30+05:45", "2023-11-14T22:13:00.000Z"},
		{"the day of another time zone", 24 * time.Hour, "2023-11-15T01:00:00+02:00", "2023-11-14T00:00:00.000Z"},
		{"aligned to the epoch", 7 * time.Second, "1700000000", "2023-11-14T22:13:14.000Z"},
		{"aligned to the epoch, in milliseconds", 7 * time.Second, "1699999993999", "2023-11-14T22:13:07.000Z"},
		{"in hours", time.Hour, "2023-11-14T21:59:59.9Z", "2023-11-14T21:00:00.000Z"},
		{"seconds with a fraction", time.Minute, "1699999979.999", "2023-11-14T22:12:00.000Z"},
		{"the furthest ahead", time.Minute, "2023-11-14T23:13:20.000Z", "2023-11-14T23:13:00.000Z"},
		{"a bit further", time.Minute, "2023-11-14T23:13:20.001Z",
			"buffer b does not take the event: its time, 2023-11-14T23:13:20.001Z, is more than 1h ahead (window.maxAhead)"},
		{"the year 9999", time.Minute, "9999-12-31T23:59:59Z",
			"buffer b does not take the event: its time, 9999-12-31T23:59:59.000Z, is more than 1h ahead (window.maxAhead)"},
		{"as old as it may be", time.Minute, "2023-11-07T22:13:00Z", "2023-11-07T22:13:00.000Z"},
		{"older than the retention", time.Minute, "2023-11-07T22:11:59.999Z", "2023-11-14T22:13:00.000Z late"},
		{"the epoch", time.Minute, "0", "2023-11-14T22:13:00.000Z late"},
		{"before the epoch", time.Minute, "1969-12-31T23:59:59Z", "2023-11-14T22:13:00.000Z late"},
		{"the year 0", time.Minute, "0000-01-01T00:00:00Z", "2023-11-14T22:13:00.000Z late"},
		{"no time", time.Minute, "yesterday",
			`buffer b does not take the event: its time, {{ .json.ts }}, is none; it must be RFC 3339, such as 2026-01-31T12:00:00Z, or Unix time in seconds or milliseconds`},
		{"a date alone", time.Minute, "2023-11-14",
			`buffer b does not take the event: its time, {{ .json.ts }}, is none; it must be RFC 3339, such as 2026-01-31T12:00:00Z, or Unix time in seconds or milliseconds`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, err := core.NewCatalog(docked(windowed, func(b *core.Buffer) { b.Window.Every = tc.every }), nil)
			require.NoError(t, err)
			e := core.Event{JSON: true, Body: fmt.Appendf(nil, `{"ts":%q}`, tc.time)}
			ref, late, err := c.Buffer("b").Place(&e, noon)
			if err != nil {
				require.Equal(t, core.Invalid, core.CodeOf(err))
				require.EqualError(t, err, tc.want)
				return
			}
			start := ref.Key[:len("2023-11-14T22:13:00.000Z")]
			from, err := time.Parse(time.RFC3339, start)
			require.NoError(t, err)
			require.Equal(t, start+"/"+core.At(from.Add(tc.every)).String(), ref.Key)
			if late {
				start += " late"
			}
			require.Equal(t, tc.want, start)
		})
	}
}

// The first window that has not shipped takes what is late: by the clock, that
// is the one before while its grace lasts.
func TestWindowForWhatIsLate(t *testing.T) {
	t.Parallel()
	c, err := core.NewCatalog(docked(windowed), nil)
	require.NoError(t, err)
	for _, tc := range []struct {
		now  core.Millis
		want string
	}{
		{1_700_000_004_999 + 40_000, "2023-11-14T22:13:00.000Z"}, // 22:14:04.999
		{1_700_000_005_000 + 40_000, "2023-11-14T22:14:00.000Z"},
	} {
		e := core.Event{JSON: true, Body: []byte(`{"ts":0}`)}
		ref, late, err := c.Buffer("b").Place(&e, tc.now)
		require.NoError(t, err)
		require.True(t, late)
		require.Contains(t, ref.Key, tc.want+"/")
	}
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text string
		want core.Millis // -1: it is none
	}{
		{"2023-11-14T22:13:20Z", noon},
		{"2023-11-14T22:13:20.5Z", noon + 500},
		{"2023-11-14T22:13:20.0009Z", noon},
		{"2023-11-14T23:13:20+01:00", noon},
		{"2023-11-14T14:13:20-08:00", noon},
		{"0", 0},
		{"1700000000", noon},
		{"1.7e9", noon},
		{"1700000000.25", noon + 250},
		{"1700000000.123", noon + 123},
		{"1700000000.999", noon + 999},
		{"1700000000.9999", noon + 999},
		{"99999999999", 99_999_999_999_000},
		{"100000000000", 100_000_000_000},
		{"1700000000123", noon + 123},
		{"1.700000000123e12", noon + 123},
		{"100000000000000", 100_000_000_000_000},
		{"100000000000001", -1},
		{"1e30", -1},
		{"-1", -1},
		{"NaN", -1},
		{"Inf", -1},
		{"+Inf", -1},
		{"0x10", -1},
		{"", -1},
		{"now", -1},
		{"2023-11-14 22:13:20Z", -1},
		{"2023-11-14T22:13:20", -1},
		{"2023-02-29T00:00:00Z", -1},
		{"2023-11-14T24:00:00Z", -1},
		{" 1700000000", -1},
		{"2023-11-14T1:13:20Z", -1},
		{"2023-11-14T22:13:20,5Z", -1},
		{"2023-11-14T22:13:20+24:00", -1},
		{"2023-11-14T22:13:20-24:00", -1},
		{"2023-11-14T22:13:20+00:60", -1},
		{"2023-11-14T22:13:60Z", -1},
		{"2023-11-15T22:12:20+23:59", noon},
	} {
		at, ok := core.ParseTime(tc.text)
		require.Equal(t, tc.want >= 0, ok, "%q", tc.text)
		if ok {
			require.Equal(t, tc.want, at, "%q", tc.text)
		}
	}
	for ms := range core.Millis(1000) { // of a second, each
		at, ok := core.ParseTime(fmt.Sprintf("1700000000.%03d", ms))
		require.True(t, ok)
		require.Equal(t, noon+ms, at)
	}
}

// An event that meets a window which has shipped goes on into the next that has
// not, with all that its request brings.
func TestLateEventMovesOn(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked(windowed))
	at := func(clock string) string { return fmt.Sprintf(`{"ts":"2023-11-14T%sZ"}`, clock) }
	p.put(at("22:11:00"), at("22:12:00"))
	require.Equal(t, 2, p.flush(core.FlushOptions{}).Buckets, "22:11 and 22:12")
	d.taken()
	p.put(at("22:13:10"), at("22:11:30"), at("22:10:00"), at("22:12:30"))
	require.Equal(t, 2, d.late)
	require.Equal(t, []string{"2023-11-14T22:10:00.000Z/2023-11-14T22:11:00.000Z", "2023-11-14T22:13:00.000Z/2023-11-14T22:14:00.000Z"}, d.busyGroups())
	g, err := d.memory.Group(context.Background(), core.Ref{Buffer: "b", Key: "2023-11-14T22:13:00.000Z/2023-11-14T22:14:00.000Z"})
	require.NoError(t, err)
	require.Equal(t, uint64(3), g.Pending())
	require.Zero(t, g.Closed)
	r := p.flush(core.FlushOptions{})
	require.Equal(t, 1, r.Buckets, "22:10; that of 22:13 is open")
	require.Equal(t, 1, r.Rows)
}

package core

import (
	"strings"
	"time"
)

// Millis is a Unix time in milliseconds, the resolution of every deadline in
// Sluice. Zero means "not set".
type Millis int64

// At is t in whole milliseconds, rounded down.
func At(t time.Time) Millis { return Millis(t.UnixMilli()) }

// Add is m moved by d, in whole milliseconds.
func (m Millis) Add(d time.Duration) Millis { return m + Millis(d.Milliseconds()) }

// Sub is the time from o to m, at most a century either way.
func (m Millis) Sub(o Millis) time.Duration {
	const century = Millis(100 * 365 * 24 * time.Hour / time.Millisecond)
	return time.Duration(max(-century, min(century, m-o))) * time.Millisecond
}

// Time is m in UTC.
func (m Millis) Time() time.Time { return time.UnixMilli(int64(m)).UTC() }

// parseRFC3339 reads a time as RFC 3339 has it. [time.Parse] takes T1:, 0,5 and
// offsets of +24:00 and +00:60, too.
func parseRFC3339(text string) (Millis, bool) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || text[len("2006-01-02T15")] != ':' || strings.Contains(text, ",") || strings.HasSuffix(text, ":60") {
		return 0, false
	}
	_, offset := t.Zone()
	const day = 24 * 60 * 60
	return At(t), -day < offset && offset < day
}

// String is m as RFC 3339 with milliseconds, or "-" when it is not set.
func (m Millis) String() string {
	if m == 0 {
		return "-"
	}
	return m.Time().Format("2006-01-02T15:04:05.000Z07:00")
}

// earliest is the earlier of two times, of which either may be unset.
func earliest(a, b Millis) Millis {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// Clock tells the time. Long-lived types take one; pure code takes a [Millis].
type Clock interface {
	Now() Millis
}

// ClockFunc makes a [Clock] of a function.
type ClockFunc func() Millis

// Now calls f.
func (f ClockFunc) Now() Millis { return f() }

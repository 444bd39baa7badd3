package core

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice/core/render"
)

// keptLonger is how much longer the record of a closed window is kept than an
// event may be for it, so that no clock that differs sees it gone too early.
const keptLonger = time.Hour

// windows is how a buffer's events are sorted into time windows.
type windows struct {
	every, grace, maxAhead time.Duration
	late                   time.Duration // a window that ended so long ago counts as shipped
	time                   *render.Template
	open                   bool // they take events even when they have shipped
}

// newWindows compiles a buffer's windows. What is left of one that has shipped
// tells late events so. The shards of one are closed each for itself, and those
// that were empty not at all, so there the clock tells: unless it leaves by
// flushes alone, when such a shard leaves by a later one.
func newWindows(b *Buffer, retention time.Duration) (*windows, error) {
	c := b.Window
	w := &windows{every: c.Every, grace: c.Grace, maxAhead: c.MaxAhead, late: retention}
	if b.Shards > 1 && b.FlushEvery == 0 {
		w.late = c.Grace
	}
	var err error
	w.time, err = render.Compile(c.Time)
	return w, err
}

// of is the window that an event belongs to: by its own time, unless that
// window counts as shipped. late says that it has been moved on.
func (w *windows) of(e *Event, now Millis) (key string, late bool, err error) {
	at := now
	if w.time.String() != "" {
		if at, err = w.timeOf(e, now); err != nil {
			return "", false, err
		}
	}
	if at > now.Add(w.maxAhead) {
		return "", false, Errorf(Invalid, "its time, %s, is more than %s ahead (window.maxAhead)", at, formatDuration(w.maxAhead))
	}
	own := w.at(at)
	if own.End.Add(w.late) <= now {
		return windowKey(w.earliest(now)), true, nil
	}
	return windowKey(own), false, nil
}

// timeOf is an event's own time; one that gives none counts as received.
func (w *windows) timeOf(e *Event, now Millis) (Millis, error) {
	text, err := w.time.Execute(view{e})
	if err != nil {
		return 0, Errorf(Invalid, "its time, %s, fails on this event: %v", w.time, err)
	}
	if text = strings.TrimSpace(text); text == "" {
		return now, nil
	}
	at, ok := ParseTime(text)
	if !ok {
		return 0, Errorf(Invalid, "its time, %s, is none; it must be RFC 3339, such as 2026-01-31T12:00:00Z, or Unix time in seconds or milliseconds", w.time) // what it is, is the payload's, and this is logged
	}
	return at, nil
}

// secondsBelow is below which a Unix time is of seconds: as milliseconds it
// would be of 1973, as seconds it is of the year 5138.
const secondsBelow = 100_000_000_000

// ParseTime reads RFC 3339, or a Unix time: numbers below 100,000,000,000 are
// seconds, perhaps with a fraction, others milliseconds.
func ParseTime(text string) (Millis, bool) {
	if at, ok := parseRFC3339(text); ok {
		return at, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.ContainsFunc(text, notDecimal) || f < 0 || f > secondsBelow*1000 {
		return 0, false
	}
	if f < secondsBelow {
		f *= 1000
	}
	return Millis(f), true
}

// notDecimal reports what no number as JSON writes it has.
func notDecimal(r rune) bool { return !strings.ContainsRune("0123456789.eE+-", r) }

// at is the window around a time.
func (w *windows) at(t Millis) Window {
	every := Millis(w.every.Milliseconds())
	start := t - (t%every+every)%every
	return Window{Start: start, End: start + every}
}

// earliest is the first window that, by the clock, has not shipped.
func (w *windows) earliest(now Millis) Window { return w.at(now.Add(-w.grace)) }

// next is the window that an event of a shipped window is moved on to.
func (w *windows) next(shipped Window, now Millis) Window {
	return w.at(max(shipped.End, w.earliest(now).Start))
}

// windowKey is the group key of a window: an interval of ISO 8601.
func windowKey(w Window) string { return w.Start.String() + "/" + w.End.String() }

// parseWindow reads a group key; one that names no window is from before the
// buffer had any.
func parseWindow(buffer, key string) (Window, bool) {
	from, to, ok := strings.Cut(key, "/")
	start, err := time.Parse(time.RFC3339, from)
	end, err2 := time.Parse(time.RFC3339, to)
	if !ok || err != nil || err2 != nil {
		return Window{}, false
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(buffer), buffer, key))
	return Window{ID: hex.EncodeToString(h[:16]), Start: Millis(start.UnixMilli()), End: Millis(end.UnixMilli())}, true
}

// Window is the time window that one of the subscription's groups is.
func (s *Subscription) Window(ref Ref) (Window, bool) {
	if s.windows == nil {
		return Window{}, false
	}
	key := ref.Key
	if s.windows.open {
		key, _, _ = strings.Cut(key, heldUnit)
	}
	return parseWindow(ref.Buffer, key)
}

// policy is what the settings say about one of the subscription's groups.
func (s *Subscription) policy(ref Ref) *Policy {
	if s.windows == nil {
		return &s.Policy
	}
	p := s.Policy
	p.ShipAt = 1 // from before the buffer had windows: it leaves at once
	if w, ok := s.Window(ref); ok {
		p.ShipAt = w.End.Add(s.windows.grace)
		if !s.windows.open {
			p.KeptUntil = w.End.Add(s.windows.late + keptLonger)
		}
	}
	return &p
}

package core

import (
	"context"
	"math"
)

// Left is what a buffer holds when it was flushed.
type Left struct {
	Buffer string // it may be one that is not configured any more, or in which another's events are held
	Groups int
	Items  int64

	// Open are those of the items that are in time windows which are not over, and
	// Held those that are held until their time has come: no flush ships them. Until
	// is when the last of them may leave; 0: there are none.
	Open, Held int64
	Until      Millis
}

// Stuck is how many of the items a flush might have shipped.
func (l *Left) Stuck() int64 { return max(0, l.Items-l.Open-l.Held) }

// Left is what every buffer holds that holds anything, by the time now. It goes
// through the groups of those in which some may be held, or in open time windows.
func (k *Catalog) Left(ctx context.Context, s Store, now Millis) ([]Left, error) {
	stats, err := s.Stats(ctx)
	if err != nil {
		return nil, err
	}
	var left []Left
	for i := range stats {
		l := Left{Buffer: stats[i].Buffer, Groups: stats[i].Groups, Items: stats[i].Pending + stats[i].Claimed}
		if l.Items == 0 {
			continue
		}
		if sub := k.Buffer(l.Buffer); sub != nil && (sub.windows != nil || stats[i].Held > 0) {
			groups, err := s.Groups(ctx, l.Buffer, nil, math.MaxInt)
			if err != nil {
				return nil, err
			}
			for i := range groups {
				l.add(sub, &groups[i], now)
			}
		}
		left = append(left, l)
	}
	return left, nil
}

// add counts what of a group no flush ships.
func (l *Left) add(sub *Subscription, g *NamedGroup, now Millis) {
	_, holder := Held(l.Buffer)
	w, windowed := sub.Window(g.Ref)
	switch pending := int64(g.Pending()); {
	case pending == 0:
	case windowed && w.End > now && holder:
		l.Held += pending
		l.Until = max(l.Until, w.End)
	case windowed && w.End > now:
		l.Open += pending
		l.Until = max(l.Until, w.End)
	case g.Hold > now:
		l.Held += pending
		l.Until = max(l.Until, g.Hold)
	}
}

package cloud

import (
	"context"

	"sluice/core"
)

// Left is what a buffer holds after a final flush: nothing, once it has run
// empty.
type Left struct {
	Buffer string `json:"buffer"` // it may be one that is not configured any more; one that delays may be there twice
	Groups int    `json:"groups"`
	Items  int64  `json:"items"`

	// OpenItems are those of them that no flush ships: whose time windows are not
	// over, or that are held until their time has come. OpenUntil is when the last
	// of these may leave.
	OpenItems int64  `json:"openItems,omitempty"`
	OpenUntil string `json:"openUntil,omitempty"` // RFC 3339
}

// mostGroups is how many groups of a buffer are looked at, to see which of them
// are open windows: a table goes through all of them for each page.
const mostGroups = 1_000_000

// left is what every buffer that holds anything holds. The indexes of a table
// may lag behind it for a moment.
func (r *flushes) left(ctx context.Context) ([]Left, error) {
	stats, err := r.store.Stats(ctx)
	if err != nil {
		return nil, err
	}
	left := []Left{}
	for i := range stats {
		l := Left{Buffer: stats[i].Buffer, Groups: stats[i].Groups, Items: stats[i].Pending + stats[i].Claimed}
		if l.Items == 0 {
			continue
		}
		of, held := core.Held(l.Buffer)
		if sub := r.catalog.Buffer(l.Buffer); sub != nil && (held || sub.Buffer.Window != nil || sub.Buffer.Ordered) {
			if err := r.open(ctx, sub, &l); err != nil {
				return nil, err
			}
		}
		l.Buffer = of
		left = append(left, l)
	}
	return left, nil
}

// open adds which of a buffer's windows are open, or groups held.
func (r *flushes) open(ctx context.Context, sub *core.Subscription, l *Left) error {
	groups, err := r.store.Groups(ctx, l.Buffer, nil, mostGroups)
	if err != nil {
		return err
	}
	var last core.Millis
	now := r.clock.Now()
	for i := range groups {
		until := groups[i].Hold
		if w, ok := sub.Window(groups[i].Ref); ok {
			until = w.End
		}
		if until > now {
			l.OpenItems += int64(groups[i].Pending())
			last = max(last, until)
		}
	}
	if last != 0 {
		l.OpenUntil = last.String()
	}
	return nil
}

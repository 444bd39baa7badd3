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

// left is what every buffer that holds anything holds. The indexes of a table
// may lag behind it for a moment.
func (r *flushes) left(ctx context.Context) ([]Left, error) {
	all, err := r.catalog.Left(ctx, r.store, r.clock.Now())
	if err != nil {
		return nil, err
	}
	left := make([]Left, len(all))
	for i := range all {
		l := &all[i]
		left[i] = Left{Buffer: core.Owner(l.Buffer), Groups: l.Groups, Items: l.Items, OpenItems: l.Open + l.Held}
		if l.Until != 0 {
			left[i].OpenUntil = l.Until.String()
		}
	}
	return left, nil
}

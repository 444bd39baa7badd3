package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"sluice/functions/internal/api"
)

const (
	// lookEvery is how often a flush is looked at at most, and lookShare how
	// much longer than a look the pause behind it is: on AWS it reads every group.
	lookEvery = time.Second
	lookShare = 10
)

// buffers is the state of all buffers.
func (c *client) buffers(ctx context.Context) ([]api.BufferState, error) {
	pages, err := c.pages(ctx, "buffers", []string{"v1", "buffers"}, nil)
	if err != nil {
		return nil, err
	}
	states := make([]api.BufferState, len(pages))
	for i, raw := range pages {
		if err := json.Unmarshal(raw, &states[i]); err != nil {
			return nil, fmt.Errorf("buffers are not as this version knows them; is the system newer? (%w)", err)
		}
	}
	return states, nil
}

// watch shows on a terminal how much there is left to flush, until it is told
// to stop.
func (c *flushCommand) watch(ctx context.Context, p *program, cl *client) (stop func()) {
	if !p.lively(p.stderr) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{w: p.stderr, now: p.now, wait: p.wait, pending: func() (int64, error) {
		states, err := cl.buffers(ctx)
		var n int64
		for i := range states {
			if c.selected(&states[i]) && states[i].Configured {
				n += states[i].PendingItems + states[i].ClaimedItems
			}
		}
		return n, err
	}}
	total, err := w.pending() // before anything leaves
	if err != nil {
		cancel()
		return func() {} // the flush itself will say what is wrong
	}
	var watching sync.WaitGroup
	watching.Go(func() { w.run(ctx, total) })
	return func() { cancel(); watching.Wait() }
}

// watcher draws one line on a terminal.
type watcher struct {
	w       io.Writer
	now     func() time.Time
	wait    func(context.Context, time.Duration) error
	pending func() (int64, error)
}

// run looks again and again until ctx ends, and then leaves no trace.
func (w *watcher) run(ctx context.Context, total int64) {
	begun := w.now()
	pause := lookEvery
	drawn := false
	for w.wait(ctx, pause) == nil {
		looked := w.now()
		left, err := w.pending()
		if ctx.Err() != nil {
			break
		}
		now := w.now()
		pause = max(lookEvery, lookShare*now.Sub(looked))
		if err != nil {
			continue // the next look may fare better
		}
		total = max(total, left)
		drawn = true
		fmt.Fprintf(w.w, "\r\x1b[Kpending left: %s (of %s)  %s", count(left), count(total), age(now.Sub(begun)))
	}
	if drawn {
		fmt.Fprint(w.w, "\r\x1b[K")
	}
}

package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice/core"
	"sluice/functions/internal/system"
)

// progressEvery is how often a drain says how far it is.
const progressEvery = 5 * time.Second

// drain ends what takes events in and what sends by itself, and then flushes
// all that may leave, however long that takes. o.Hurry ends it: what it sends
// then ends with the stop, and is no failure. end is to be called after the
// stop; it tells what is left, and returns what failed.
func (n *node) drain(server *http.Server, o *ServeOptions) (end func() error) {
	ctx, hurry := context.WithCancel(context.Background())
	defer hurry()
	drained := make(chan error, 1)
	var at core.Millis // after which nothing was looked for
	go func() {
		var err error
		at, err = n.empty(ctx, server, o)
		drained <- err
	}()
	select {
	case err := <-drained:
		return func() error {
			stuck, unseen := n.tellLeft(at)
			if err == nil && stuck > 0 {
				err = core.Errorf(core.Unavailable, "the drain has left %d items that are neither held nor in an open time window", stuck)
			}
			return errors.Join(err, unseen)
		}
	case <-o.Hurry:
		n.log.Info("the drain is cut short", "grace", o.Grace.String())
		return func() error {
			<-drained //nolint:errcheck // it was cut short
			_, err := n.tellLeft(at)
			n.report("end the drain", err)
			return nil
		}
	}
}

// empty drains the store until ctx ends. What came due after at may be left.
func (n *node) empty(ctx context.Context, server *http.Server, o *ServeOptions) (at core.Millis, err error) {
	defer time.AfterFunc(n.copies, n.endCopy).Stop()
	n.quiet(ctx, server, o)
	told, done := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() { n.progress(told) })
	defer telling.Wait()
	defer done()
	at = n.parts.ports.Clock.Now()
	if err := n.queue.EndDeliveries(ctx); err != nil {
		return at, err
	}
	if err := n.queue.Quiet(ctx); err != nil { // of flushes that are ending
		return at, err
	}
	n.flushing.going.Wait()
	return n.flushAll(ctx)
}

// quiet ends what takes events in and what begins deliveries. Requests under
// way have the grace.
func (n *node) quiet(ctx context.Context, server *http.Server, o *ServeOptions) {
	grace, cancel := context.WithTimeout(ctx, o.Grace)
	defer cancel()
	var ending sync.WaitGroup
	ending.Go(n.halt)
	ending.Go(func() { shutDown(grace, server, n.log) })
	ending.Wait()
}

// flushAll makes final flushes until nothing is left that one may ship, or ctx
// ends: of shadows last, for a while, and what is left of those is no failure. What
// came due after at may be left.
func (n *node) flushAll(ctx context.Context) (at core.Millis, err error) {
	s, done := n.use()
	defer done()
	copying, end := context.WithCancel(context.Background())
	defer end()
	ports := n.parts.ports
	ports.Sender, ports.Sleep = s.senders.Sender, system.Sleep // it waits for tokens though the work of the process has ended
	ports.Copies = until(copying)
	flusher := core.NewFlusher(s.catalog, ports, n.parts.cadence)
	at, err = n.flushUntilEmpty(ctx, s.catalog, flusher, false)
	defer time.AfterFunc(n.copies, end).Stop()
	ctx, stop := until(copying)(ctx)
	defer stop()
	if _, e := n.flushUntilEmpty(ctx, s.catalog, flusher, true); e != nil {
		n.log.Info("copies are left, which nothing waits for", "error", e)
	}
	return at, err
}

// flushUntilEmpty makes final flushes of the shadows, or of all others, until
// one ships nothing, or ctx ends; at is when the last began. A buffer that fails is
// tried no more. What has been held until now goes on to its buffer first.
func (n *node) flushUntilEmpty(ctx context.Context, c *core.Catalog, flusher *core.Flusher, shadows bool) (at core.Millis, err error) {
	var only []string
	for i := range c.Config().Buffers {
		if b := &c.Config().Buffers[i]; b.Shadow == shadows {
			only = append(only, b.Name)
		}
	}
	var failed []error
	at = n.parts.ports.Clock.Now()
	for shipped := len(only) > 0; shipped && ctx.Err() == nil; {
		at = n.parts.ports.Clock.Now()
		moved, err := n.flushHeld(ctx, c, flusher, shadows)
		failed = append(failed, err)
		r, err := flusher.Flush(n.sending, core.FlushOptions{Final: true, Force: true, While: ctx, Only: slices.Concat([]string{}, only, moved)})
		if err != nil {
			return at, err
		}
		failed = append(failed, r.Err())
		only, shipped = nil, len(moved) > 0
		for i := range r.Buffers {
			b := &r.Buffers[i]
			if b.Skipped {
				continue
			}
			tellFlush(n.log, b, ctx.Err() != nil)
			if b.Err == nil {
				only, shipped = append(only, b.Buffer), shipped || b.Rows > 0 // a flush ships a hundred batches of a group at the most
			}
		}
	}
	return at, errors.Join(failed...)
}

// flushHeld moves what was held, and is not any more, on to its buffers, shadows
// or others, whose names it returns.
func (n *node) flushHeld(ctx context.Context, c *core.Catalog, f *core.Flusher, shadows bool) (moved []string, err error) {
	left, err := n.left()
	var failed []error
	for i := range left {
		of, held := core.Held(left[i].Buffer)
		if sub := c.Buffer(of); !held || sub == nil || sub.Buffer.Shadow != shadows {
			continue
		}
		r, err := f.FlushHeld(n.sending, of, core.FlushOptions{Final: true, Force: true, While: ctx})
		if err = errors.Join(err, r.Err); err != nil {
			tellFlush(n.log, &r, ctx.Err() != nil)
			failed = append(failed, err)
		}
		if r.Rows > 0 && !slices.Contains(moved, of) {
			moved = append(moved, of)
		}
	}
	return moved, errors.Join(append(failed, err)...)
}

// progress says what is left, until ctx ends.
func (n *node) progress(ctx context.Context) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			var items int64
			left, err := n.left()
			for i := range left {
				if _, held := core.Held(left[i].Buffer); held {
					continue // they are not waited for
				}
				items += left[i].Pending + left[i].Claimed
			}
			if err == nil {
				n.log.Info("draining", "itemsLeft", items)
			}
		case <-ctx.Done():
			return
		}
	}
}

// tellLeft logs what a drain has left for the next start, and returns how many
// items of it, no copies, are in configured buffers and might have been shipped by
// the time at.
func (n *node) tellLeft(at core.Millis) (stuck int64, err error) {
	s, done := n.use()
	defer done()
	left, err := s.catalog.Left(context.Background(), n.store, at)
	if err != nil {
		return 0, core.Wrap(core.CodeOf(err), err, "it can't be seen what the drain has left")
	}
	if len(left) == 0 {
		n.log.Info("drained; nothing is left")
	}
	for i := range left {
		l := &left[i]
		why := "the buffer is not configured"
		if sub := s.catalog.Buffer(l.Buffer); sub != nil {
			why = reasons(l)
			if !sub.Buffer.Shadow {
				stuck += l.Stuck()
			}
		}
		n.log.Info("left for the next start", "buffer", core.Owner(l.Buffer), "items", l.Items, "groups", l.Groups, "why", why)
	}
	return stuck, nil
}

// reasons says why a buffer holds what it does after a drain.
func reasons(l *core.Left) string {
	var why []string
	switch stuck := l.Stuck(); stuck {
	case 0:
	case l.Items:
		why = append(why, "it was not delivered")
	default:
		why = append(why, fmt.Sprintf("%d of them were not delivered", stuck))
	}
	if l.Open > 0 {
		why = append(why, "open time windows stay")
	}
	if l.Held > 0 {
		why = append(why, "events that are held until their time has come stay")
	}
	return strings.Join(why, "; ")
}

// left sums up every buffer that holds items.
func (n *node) left() ([]core.BufferStats, error) {
	stats, err := n.store.Stats(context.Background())
	n.report("sum up what is left", err)
	return slices.DeleteFunc(stats, func(b core.BufferStats) bool { return b.Pending+b.Claimed == 0 }), err
}

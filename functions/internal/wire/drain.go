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
	go func() { drained <- n.empty(ctx, server, o) }()
	select {
	case err := <-drained:
		return func() error {
			stuck, unseen := n.tellLeft()
			if err == nil && stuck > 0 {
				err = core.Errorf(core.Unavailable, "the drain has left %d items that are neither held nor in an open time window", stuck)
			}
			return errors.Join(err, unseen)
		}
	case <-o.Hurry:
		n.log.Info("the drain is cut short", "grace", o.Grace.String())
		return func() error {
			<-drained //nolint:errcheck // it was cut short
			_, err := n.tellLeft()
			n.report("end the drain", err)
			return nil
		}
	}
}

// empty drains the store until ctx ends.
func (n *node) empty(ctx context.Context, server *http.Server, o *ServeOptions) error {
	n.quiet(ctx, server, o)
	told, done := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() { n.progress(told) })
	defer telling.Wait()
	defer done()
	if err := n.queue.EndDeliveries(ctx); err != nil {
		return err
	}
	if err := n.queue.Quiet(ctx); err != nil { // of flushes that are ending
		return err
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
// ends. A buffer that fails is tried no more. What has been held until now goes on
// to its buffer first.
func (n *node) flushAll(ctx context.Context) error {
	s, done := n.use()
	defer done()
	ports := n.parts.ports
	ports.Sender, ports.Sleep = s.senders.Sender, system.Sleep // it waits for tokens though the work of the process has ended
	flusher := core.NewFlusher(s.catalog, ports, n.parts.cadence)
	var failed []error
	for o := (core.FlushOptions{Final: true, Force: true, While: ctx}); ; {
		moved, err := n.flushHeld(ctx, flusher)
		failed = append(failed, err)
		if o.Only != nil {
			o.Only = append(o.Only, moved...)
		}
		r, err := flusher.Flush(n.sending, o)
		if err != nil {
			return err
		}
		failed = append(failed, r.Err())
		o.Only = nil
		for i := range r.Buffers {
			b := &r.Buffers[i]
			if b.Skipped {
				continue
			}
			tellFlush(n.log, b, ctx.Err() != nil)
			if b.Err == nil && b.Rows > 0 { // a flush ships a hundred batches of a group at the most
				o.Only = append(o.Only, b.Buffer)
			}
		}
		if o.Only == nil || ctx.Err() != nil {
			return errors.Join(failed...)
		}
	}
}

// flushHeld moves what was held, and is not any more, on to its buffers, whose
// names it returns.
func (n *node) flushHeld(ctx context.Context, f *core.Flusher) (moved []string, err error) {
	left, err := n.left()
	var failed []error
	for i := range left {
		of, held := core.Held(left[i].Buffer)
		if !held {
			continue
		}
		r, err := f.FlushBuffer(n.sending, left[i].Buffer, core.FlushOptions{Final: true, Force: true, While: ctx})
		switch {
		case err != nil: // its buffer is not configured
			continue
		case r.Err != nil:
			tellFlush(n.log, &r, ctx.Err() != nil)
			failed = append(failed, r.Err)
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
// items of it are in configured buffers and might have been shipped.
func (n *node) tellLeft() (stuck int64, err error) {
	s, done := n.use()
	defer done()
	left, err := s.catalog.Left(context.Background(), n.store, n.parts.ports.Clock.Now())
	if err != nil {
		return 0, core.Wrap(core.CodeOf(err), err, "it can't be seen what the drain has left")
	}
	if len(left) == 0 {
		n.log.Info("drained; nothing is left")
	}
	for i := range left {
		l := &left[i]
		why := "the buffer is not configured"
		if s.catalog.Buffer(l.Buffer) != nil {
			why = reasons(l)
			stuck += l.Stuck()
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

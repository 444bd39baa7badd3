package wire

import (
	"context"
	"errors"
	"math"
	"net/http"
	"sync"
	"time"

	"sluice/core"
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
			if held := n.tellLeft(); err == nil && held > 0 {
				err = core.Errorf(core.Unavailable, "the drain has left %d items that are no part of an open time window", held)
			}
			return err
		}
	case <-o.Hurry:
		n.log.Info("the drain is cut short", "grace", o.Grace.String())
		return func() error {
			<-drained //nolint:errcheck // it was cut short
			_ = n.tellLeft()
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
// ends. A buffer that fails is tried no more.
func (n *node) flushAll(ctx context.Context) error {
	s, done := n.use()
	defer done()
	var failed []error
	for o := (core.FlushOptions{Final: true, Force: true, While: ctx}); ; {
		r, err := s.flusher.Flush(n.sending, o)
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
// items of it are in configured buffers and no part of an open time window.
func (n *node) tellLeft() (held int64) {
	left, err := n.left()
	if err == nil && len(left) == 0 {
		n.log.Info("drained; nothing is left")
	}
	s, done := n.use()
	defer done()
	for i := range left {
		b := &left[i]
		name, delayed := core.Held(b.Buffer)
		sub := s.catalog.Buffer(name)
		var why string
		switch open := n.open(sub, b.Buffer); {
		case sub == nil:
			why = "the buffer is not configured"
		case delayed, sub.Buffer.Ordered && (sub.Buffer.DeliverAfter > 0 || sub.Buffer.DeliverAt != ""):
			why = "events that are held until their time has come stay"
		case open == b.Pending+b.Claimed:
			why = "open time windows stay"
		default:
			why = "it was not delivered"
			held += b.Pending + b.Claimed - open
		}
		n.log.Info("left for the next start", "buffer", name, "items", b.Pending+b.Claimed, "groups", b.Groups, "why", why)
	}
	return held
}

// open is how many items of a buffer are in time windows that are not over.
func (n *node) open(sub *core.Subscription, buffer string) (items int64) {
	if sub == nil || sub.Buffer.Window == nil {
		return 0
	}
	groups, err := n.store.Groups(context.Background(), buffer, nil, math.MaxInt)
	n.report("look for open time windows", err)
	now := n.parts.ports.Clock.Now()
	for i := range groups {
		if w, ok := sub.Window(groups[i].Ref); ok && w.End > now {
			items += int64(groups[i].Pending())
		}
	}
	return items
}

// left sums up every buffer that holds items.
func (n *node) left() ([]core.BufferStats, error) {
	stats, err := n.store.Stats(context.Background())
	n.report("sum up what is left", err)
	left := stats[:0]
	for i := range stats {
		if stats[i].Pending+stats[i].Claimed > 0 {
			left = append(left, stats[i])
		}
	}
	return left, err
}

package bench

import (
	"context"
	"errors"
	"fmt"
)

// turn is what came of one entrant's turn. Only sluice delivers.
type turn struct {
	sent   *Sent
	counts Counts
	during uint64 // delivered by the end of the load
	lost   uint64 // accepted but not delivered
}

// turn starts an entrant's server, sends it the load, lets it deliver, and
// stops it.
func (b *bench) turn(ctx context.Context, e entrant) (*turn, error) {
	if e.server == sluice {
		return b.deliveringTurn(ctx, e.load)
	}
	p, err := b.reference(ctx, e.server)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	e.load.URL = p.url("/")
	sent, err := e.load.Run(ctx)
	return &turn{sent: sent}, sentFault(sent, err)
}

func (b *bench) deliveringTurn(ctx context.Context, load Load) (*turn, error) {
	s, err := b.stage(ctx, settings{items: 50, bytes: 256 << 10, idle: b.close, wait: b.close})
	if err != nil {
		return nil, err
	}
	defer s.clear()
	p, _, err := s.serve(ctx)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	load.URL = p.url(pathOf(load.PerPost))
	sent, err := load.Run(ctx)
	if err := sentFault(sent, err); err != nil {
		return nil, err
	}
	t := &turn{sent: sent, during: s.sink.Counts().Delivered}
	t.lost = s.sink.Drain(ctx, sent, b.patience+b.close)
	t.counts = s.sink.Counts()
	return t, ctx.Err()
}

var errNothing = errors.New("not one event was accepted")

// sentFault is why a load tells nothing, if it does not.
func sentFault(s *Sent, err error) error {
	if err == nil && s.InWindow == 0 {
		return fmt.Errorf("%w: %d requests refused (%s), %d broken", errNothing, s.Refused, s.Refusal, s.Broken)
	}
	return err
}

// delivery sums up sluice's turns.
type delivery struct {
	counts   Counts
	accepted uint64
	during   uint64
	lost     uint64
	refused  uint64
	broken   uint64
	refusal  string
}

func (d *delivery) add(t *turn) {
	d.counts.add(t.counts)
	d.during += t.during
	d.lost += t.lost
	d.refused += t.sent.Refused
	d.broken += t.sent.Broken
	if t.counts.Batches > 0 || t.lost > 0 {
		d.accepted += t.sent.Accepted
	}
	if d.refusal == "" {
		d.refusal = t.sent.Refusal
	}
}

// wrong is how many deliveries were wrong in themselves. A doubled event is
// not, as long as the receiver can tell by the id.
func (c *Counts) wrong() uint64 { return c.Mixed + c.Reordered + c.Damaged + c.Strayed }

func (c *Counts) add(o Counts) {
	c.Batches += o.Batches
	c.Delivered += o.Delivered
	c.Doubled += o.Doubled
	c.Strayed += o.Strayed
	c.Mixed += o.Mixed
	c.Reordered += o.Reordered
	c.Damaged += o.Damaged
}

// addDelivery reports whether what was accepted was delivered, and rightly.
func (b *bench) addDelivery(scenario string, d *delivery) {
	b.report.bound(scenario, "accepted but not delivered", Bound{Value: float64(d.lost), Unit: "events"})
	b.report.bound(scenario, "delivered wrongly", Bound{Value: float64(d.counts.wrong()), Unit: "events"})
	c := d.counts
	b.report.notef(scenario, "%d events mixed, %d reordered, %d damaged, %d doubled (%d of them under another id); "+
		"%.0f %% delivered by the end of the load, in batches of %.1f; %d requests refused, %d broken %s",
		c.Mixed, c.Reordered, c.Damaged, c.Doubled, c.Strayed,
		100*float64(d.during)/float64(max(1, d.accepted)), float64(c.Delivered)/float64(max(1, c.Batches)),
		d.refused, d.broken, d.refusal)
}

package core

import (
	"context"
	"fmt"
	"time"
)

const (
	// firstLook and lastLook are how long after another a source that waits for
	// the outcome looks for it.
	firstLook = 5 * time.Millisecond
	lastLook  = 250 * time.Millisecond
	// outcomeKept is how long the outcome of a dead letter is kept for who waits.
	outcomeKept = 2 * time.Minute
)

// await waits until every event of a request has been delivered or is a dead
// letter, as long as its source allows.
func (in *Ingester) await(ctx context.Context, s *Source, p *parts) Status {
	dead := false
	for i := range p.fates {
		if p.fates[i].dead {
			dead = true
		}
		if p.fates[i].held {
			return StatusPending // it leaves as another, later
		}
	}
	until := in.ports.Clock.Now().Add(s.RespondTimeout)
	waiting := p.stored
	for look := firstLook; ; look = min(2*look, lastLook) {
		var err error
		if waiting, dead, err = in.settled(ctx, waiting, dead); err == nil && len(waiting) == 0 {
			break
		}
		left := until.Sub(in.ports.Clock.Now())
		if left <= 0 || in.ports.Sleep(ctx, min(look, left)) != nil {
			return StatusPending
		}
	}
	if dead {
		return StatusDeadLettered
	}
	return StatusDelivered
}

// settled takes out of places those whose items are settled, and says whether one
// of them became a dead letter.
func (in *Ingester) settled(ctx context.Context, places []place, dead bool) ([]place, bool, error) {
	var waiting []place
	groups := make(map[Ref]*Group)
	for _, at := range places {
		g := groups[at.ref]
		if g == nil {
			read, err := in.ports.Store.Group(ctx, at.ref)
			if err != nil {
				return places, dead, err
			}
			g = &read
			groups[at.ref] = g
		}
		if g.Life == at.life && g.Live(at.seq) {
			waiting = append(waiting, at)
			continue
		}
		err := in.ports.outcomes().Change(ctx, outcomeName(at.life, at.seq), 0, func(old []byte) ([]byte, error) {
			dead = dead || old != nil
			return nil, errUnchanged
		})
		if err != nil && err != errUnchanged { //nolint:errorlint // it is returned as it is
			return places, dead, err
		}
	}
	return waiting, dead, nil
}

func outcomeName(life string, seq uint64) string { return fmt.Sprintf("dead/%s/%d", life, seq) }

// mourn leaves word of dead letters for sources that wait for the outcome.
func (d *Deliverer) mourn(ctx context.Context, s *shipment, items []Item) {
	for i := range items {
		r := d.catalog.Route(items[i].Source)
		if r == nil || !r.Source.AckDelivered {
			continue
		}
		err := d.ports.outcomes().Change(ctx, outcomeName(s.group.Life, items[i].Seq), outcomeKept, func([]byte) ([]byte, error) {
			return []byte("dead"), nil
		})
		d.ports.Observer.failed("leave word of a dead letter", err)
	}
}

// nobody coordinates nothing.
type nobody struct{}

func (nobody) Change(context.Context, string, time.Duration, func([]byte) ([]byte, error)) error {
	return nil
}

func (p *Ports) outcomes() Coordinator {
	if p.Coordinator == nil {
		return nobody{}
	}
	return p.Coordinator
}

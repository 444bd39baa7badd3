package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// A source with `ack: delivered` answers when the outcome of its events is
// known. Whether an item is settled, its group's record says; whether it became
// a dead letter, the deliverer leaves word, in a record that whoever waits has
// made before the event was stored, and takes away afterwards.

const (
	// firstLook and lastLook are how long after another a source that waits for
	// the outcome looks for it.
	firstLook = 5 * time.Millisecond
	lastLook  = 250 * time.Millisecond
)

// What a record says of an event whose outcome somebody waits for.
const (
	wordWaiting = "waiting"
	wordDead    = "dead"
)

// wordOf names the record of an event.
func wordOf(source, id string) string {
	h := sha256.Sum256([]byte(source + "/" + id))
	return "wait/" + hex.EncodeToString(h[:16])
}

// expect makes the records of events whose outcome is waited for.
func (in *Ingester) expect(ctx context.Context, source string, ids []string) error {
	return in.words(ctx, source, ids, func([]byte) []byte { return []byte(wordWaiting) })
}

// forget takes the records away.
func (in *Ingester) forget(ctx context.Context, source string, ids []string) {
	err := in.words(context.WithoutCancel(ctx), source, ids, func([]byte) []byte { return nil })
	in.ports.Observer.failed("forget whose outcome was waited for", err)
}

func (in *Ingester) words(ctx context.Context, source string, ids []string, fn func([]byte) []byte) error {
	for _, id := range ids {
		err := in.ports.Coordinator.Change(ctx, wordOf(source, id), func(old []byte) ([]byte, error) { return fn(old), nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// await waits until every event of a request has been delivered or is a dead
// letter, as long as its source allows.
func (in *Ingester) await(ctx context.Context, s *Source, p *parts, ids []string) Status {
	for i := range p.fates {
		if p.fates[i].held {
			return StatusPending // it leaves as another, later
		}
	}
	until := in.ports.Clock.Now().Add(s.RespondTimeout)
	waiting := p.stored
	for look := firstLook; ; look = min(2*look, lastLook) {
		if waiting = in.unsettled(ctx, waiting); len(waiting) == 0 {
			break
		}
		left := until.Sub(in.ports.Clock.Now())
		if left <= 0 || in.ports.Sleep(ctx, min(look, left)) != nil {
			return StatusPending
		}
	}
	dead := false
	for i := range p.fates {
		dead = dead || p.fates[i].dead
	}
	err := in.words(ctx, s.Name, ids, func(old []byte) []byte {
		dead = dead || string(old) == wordDead
		return old
	})
	switch {
	case err != nil:
		return StatusPending // not known
	case dead:
		return StatusDeadLettered
	}
	return StatusDelivered
}

// unsettled is those of places whose items are not settled yet, as far as is known.
func (in *Ingester) unsettled(ctx context.Context, places []place) []place {
	var waiting []place
	groups := make(map[Ref]*Group)
	for _, at := range places {
		g := groups[at.ref]
		if g == nil {
			read, err := in.ports.Store.Group(ctx, at.ref)
			if err != nil {
				return places
			}
			g = &read
			groups[at.ref] = g
		}
		if g.Life == at.life && g.Live(at.seq) {
			waiting = append(waiting, at)
		}
	}
	return waiting
}

// mourn leaves word of dead letters for sources that wait for the outcome.
func (d *Deliverer) mourn(ctx context.Context, items []Item) {
	for i := range items {
		r := d.catalog.Route(items[i].Source)
		if r == nil || !r.Source.AckDelivered {
			continue
		}
		err := d.ports.Coordinator.Change(ctx, wordOf(items[i].Source, items[i].ID), func(old []byte) ([]byte, error) {
			if old == nil {
				return nil, errUnchanged // nobody waits any more
			}
			return []byte(wordDead), nil
		})
		if err != errUnchanged { //nolint:errorlint // it is returned as it is
			d.ports.Observer.failed("leave word of a dead letter", err)
		}
	}
}

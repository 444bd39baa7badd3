package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
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

// word is what a record says of an event whose outcome somebody waits for.
type word struct {
	Dead    bool `json:"dead,omitempty"`    // it is a dead letter
	Waiting int  `json:"waiting,omitempty"` // so many requests wait: mostly one

	// Shared says that several requests had an event of this id in the same
	// millisecond: whose is dead, nobody knows.
	Shared bool `json:"shared,omitempty"`
}

// wordOf names the record of an event. Others of its id, which are sent again or
// by mistake, came at other times.
func wordOf(source, id string, at Millis) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%s", at, source, id))
	return "wait/" + hex.EncodeToString(h[:16])
}

// unique is ids without those that are there already.
func unique(ids []string) []string {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// expect makes the records of a request's events, whose outcome is waited for.
func (in *Ingester) expect(ctx context.Context, source string, ids []string, at Millis) error {
	return in.words(ctx, source, ids, at, func(_ int, w *word) *word {
		if w == nil {
			return &word{Waiting: 1}
		}
		return &word{Dead: w.Dead, Waiting: w.Waiting + 1, Shared: true}
	})
}

// forget takes the records away, unless others wait.
func (in *Ingester) forget(ctx context.Context, source string, ids []string, at Millis) {
	err := in.words(context.WithoutCancel(ctx), source, ids, at, func(_ int, w *word) *word {
		if w == nil || w.Waiting <= 1 {
			return nil
		}
		return &word{Dead: w.Dead, Waiting: w.Waiting - 1, Shared: true}
	})
	in.ports.Observer.failed("forget whose outcome was waited for", err)
}

// words makes of the record of each id, by its position, what fn makes of it;
// nil is none. fn is called from several goroutines. After an error it ends.
func (in *Ingester) words(ctx context.Context, source string, ids []string, at Millis, fn func(int, *word) *word) error {
	var failed atomic.Pointer[error]
	sideBySide(len(ids), func(i int) {
		if failed.Load() != nil {
			return
		}
		err := changeWord(ctx, in.ports.Coordinator, wordOf(source, ids[i], at), func(w *word) *word { return fn(i, w) })
		if err != nil {
			failed.CompareAndSwap(nil, &err)
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func changeWord(ctx context.Context, c Coordinator, name string, fn func(*word) *word) error {
	err := c.Change(ctx, name, func(old []byte) ([]byte, error) {
		var was *word
		if json.Unmarshal(old, &was) != nil {
			was = nil
		}
		is := fn(was)
		switch {
		case is == was:
			return nil, errUnchanged
		case is == nil:
			return nil, nil
		}
		return json.Marshal(is)
	})
	if err == errUnchanged { //nolint:errorlint // it is returned as it is
		return nil
	}
	return err
}

// canWait reports whether there is what waiting for an outcome takes.
func (in *Ingester) canWait() bool { return in.ports.Coordinator != nil && in.ports.Sleep != nil }

// await waits until every event of a request, which came at a time, has been
// delivered or is a dead letter, at the latest until another.
func (in *Ingester) await(ctx context.Context, source string, p *parts, at, until Millis) Status {
	if p.unsure {
		return StatusPending
	}
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
	if slices.ContainsFunc(p.fates, func(f fate) bool { return f.dead }) {
		return StatusDeadLettered
	}
	words := make([]word, len(p.ids))
	err := in.words(ctx, source, p.ids, at, func(i int, w *word) *word {
		words[i] = word{}
		if w != nil {
			words[i] = *w
		}
		return w
	})
	known := err == nil
	for i := range words {
		if words[i].Dead && !words[i].Shared {
			return StatusDeadLettered
		}
		known = known && words[i].Waiting > 0 && !words[i].Dead
	}
	if !known {
		return StatusPending
	}
	return StatusDelivered
}

// unsettled is those of places whose items are not settled yet, as far as is known.
func (in *Ingester) unsettled(ctx context.Context, places []place) []place {
	var refs []Ref
	at := make(map[Ref]int)
	for i := range places {
		if _, ok := at[places[i].ref]; !ok {
			at[places[i].ref] = len(refs)
			refs = append(refs, places[i].ref)
		}
	}
	groups, errs := make([]Group, len(refs)), make([]error, len(refs))
	sideBySide(len(refs), func(i int) { groups[i], errs[i] = in.ports.Store.Group(ctx, refs[i]) })
	var waiting []place
	for _, p := range places {
		k := at[p.ref]
		if g := &groups[k]; errs[k] != nil || g.Life == p.life && g.Live(p.seq) {
			waiting = append(waiting, p)
		}
	}
	return waiting
}

// mourn leaves word of dead letters for sources that wait for the outcome. Until
// it has, they must not be settled: they would seem delivered.
func (d *Deliverer) mourn(ctx context.Context, items []Item) error {
	if d.ports.Coordinator == nil {
		return nil // nobody can wait
	}
	for i := range items {
		r := d.catalog.Route(items[i].Source)
		if r == nil || !r.Source.AckDelivered {
			continue
		}
		err := changeWord(ctx, d.ports.Coordinator, wordOf(items[i].Source, items[i].ID, items[i].ReceivedAt), func(w *word) *word {
			if w == nil {
				return nil // nobody waits any more
			}
			return &word{Dead: true, Waiting: w.Waiting, Shared: w.Shared}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

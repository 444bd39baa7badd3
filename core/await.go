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

	// maxAwaited is of how many events of one request the outcome is waited for:
	// each takes calls of the coordinator before it is stored, and afterwards.
	maxAwaited = 1000
	// forgetTime is how long taking the records away may keep an answer. One that
	// is left means nothing to anybody.
	forgetTime = lastLook
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
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), forgetTime)
	defer end()
	err := in.words(ctx, source, ids, at, func(_ int, w *word) *word {
		if w == nil || w.Waiting <= 1 {
			return nil
		}
		return &word{Dead: w.Dead, Waiting: w.Waiting - 1, Shared: true}
	})
	if ctx.Err() != nil {
		return // a store that is so slow drops them by itself
	}
	in.ports.Observer.failed("forget whose outcome was waited for", err)
}

// words makes of the record of each id, by its position, what fn makes of it;
// nil is none. fn is called from several goroutines. After an error, or when ctx
// ends, it ends.
func (in *Ingester) words(ctx context.Context, source string, ids []string, at Millis, fn func(int, *word) *word) error {
	return sideBySideUntil(ctx, len(ids), func(i int) error {
		return changeWord(ctx, in.ports.Coordinator, wordOf(source, ids[i], at), func(w *word) *word { return fn(i, w) })
	})
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

// storeAndWait stores a request, and waits for its outcome, for the source's
// respondTimeout at most.
func (in *Ingester) storeAndWait(ctx context.Context, source *Source, p *parts, ids []string, now Millis, mayWait []func() bool) (Receipt, error) {
	waiting, end := context.WithTimeout(ctx, source.RespondTimeout)
	defer end()
	p.ids = unique(ids)
	p.unsure = p.unsure || !in.canWait() || len(p.ids) > maxAwaited
	if !p.unsure {
		defer in.forget(ctx, source.Name, p.ids, now)
		err := in.expect(waiting, source.Name, p.ids, now)
		p.unsure = err != nil && ctx.Err() == nil && waiting.Err() != nil // there is no time left
		if err != nil && !p.unsure {
			return Receipt{}, err
		}
	}
	if err := in.store(ctx, now, p); err != nil {
		return Receipt{}, err
	}
	r := p.receipt(ids)
	if r.Accepted > 0 {
		r.Status = in.await(waiting, source.Name, p, now, mayWait)
	}
	return r, nil
}

// await waits until every event of a request, which came at a time, has been
// delivered or is a dead letter, at the latest until ctx ends.
func (in *Ingester) await(ctx context.Context, source string, p *parts, at Millis, mayWait []func() bool) Status {
	p.list, p.of, p.letters = nil, nil, nil // the events are durable
	if slices.ContainsFunc(p.fates, func(f fate) bool { return f.dead }) {
		return StatusDeadLettered
	}
	if p.unsure || slices.ContainsFunc(mayWait, func(may func() bool) bool { return !may() }) {
		return StatusPending
	}
	waiting := p.stored
	for look := firstLook; ; look = min(2*look, lastLook) {
		if waiting = in.unsettled(ctx, waiting); len(waiting) == 0 {
			break
		}
		if in.ports.Sleep(ctx, look) != nil {
			return StatusPending
		}
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

// wordsAtOnce is of how many dead letters the records are read or changed at a time.
const wordsAtOnce = 100

// awaited is those of a shipment's dead letters whose outcome somebody waits for: that
// began before they were stored.
func (d *Deliverer) awaited(ctx context.Context, s *shipment, items []Item) ([]Item, error) {
	if d.ports.Coordinator == nil {
		return nil, nil // nobody can wait
	}
	var may, do []Item
	for i := range items {
		if r := d.catalog.Route(items[i].Source); r != nil && r.Source.AckDelivered {
			may = append(may, items[i])
		}
	}
	waits := make([]bool, len(may))
	err := d.words(ctx, s, may, func(i int, w *word) *word {
		waits[i] = w != nil
		return w
	})
	for i := range may {
		if waits[i] {
			do = append(do, may[i])
		}
	}
	return do, err
}

// leaveWord leaves word of dead letters for those who wait. Until it has, they must not
// be settled: they would seem delivered.
func (d *Deliverer) leaveWord(ctx context.Context, s *shipment, items []Item) error {
	return d.words(ctx, s, items, func(_ int, w *word) *word {
		if w == nil {
			return nil // nobody waits any more
		}
		return &word{Dead: true, Waiting: w.Waiting, Shared: w.Shared}
	})
}

// words makes of the record of each of a shipment's items, by its position, what fn
// makes of it, many at a time, and keeps the claim meanwhile.
func (d *Deliverer) words(ctx context.Context, s *shipment, items []Item, fn func(int, *word) *word) error {
	for from := 0; from < len(items); from += wordsAtOnce {
		if err := d.keep(ctx, s); err != nil {
			return err
		}
		some := items[from:min(from+wordsAtOnce, len(items))]
		soon, end := context.WithTimeout(ctx, restTime)
		err := sideBySideUntil(soon, len(some), func(i int) error {
			name := wordOf(some[i].Source, some[i].ID, some[i].ReceivedAt)
			return changeWord(soon, d.ports.Coordinator, name, func(w *word) *word { return fn(from+i, w) })
		})
		end()
		d.ports.Observer.failed("leave word of dead letters", err)
		if err != nil {
			return Wrap(CodeOf(err), err, "cannot leave word of dead letters")
		}
	}
	return nil
}

// sideBySideUntil is sideBySide until one fails, or ctx ends.
func sideBySideUntil(ctx context.Context, n int, do func(int) error) error {
	var failed atomic.Pointer[error]
	sideBySide(n, func(i int) {
		if failed.Load() != nil {
			return
		}
		err := ctx.Err()
		if err == nil {
			err = do(i)
		}
		if err != nil {
			failed.CompareAndSwap(nil, &err)
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

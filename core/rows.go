package core

import (
	"context"
	"errors"
	"fmt"

	"sluice/core/fold"
)

// A window that is folded leaves by one claim on all of it. Its items are read
// from the first to the last, as often as it takes, and always make the same
// rows in the same order, which are sent batch by batch:
//
//	items 1 … 1,000,000 ─▶ rows 1 … 120 ─▶ rows 1-50 │ rows 51-100 │ rows 101-120
//	                                            settled ▲ Claim.Sent
//
// The claim keeps how many rows are settled, and by which settings they were
// made: under other settings it begins again.

const (
	foldItems = 1000    // read at a time while folding
	foldBytes = 4 << 20 // or so much of their payload
)

// whole opens a claim on all that is pending in a closed window. It waits until
// every writer has put its items, or can't any more.
func (d *Deliverer) whole(ctx context.Context, e *errand, g *Group) (*shipment, error) {
	s := &shipment{errand: e, deadline: e.evaluate(g, d.ports.Clock.Now()).Deadline}
	t := Taking{From: g.Head + 1, To: g.Tail, Through: g.TailBytes, Reason: ReasonWindow, Fold: e.sub.foldedBy}
	if e.pull != nil {
		t.Reason = ReasonFlush
	}
	table := e.sub.table(e.ref)
	for span := (Span{From: t.From, To: t.To, MaxItems: foldItems, MaxBytes: foldBytes}); span.From <= t.To; {
		page, err := d.ports.Store.Items(ctx, e.ref, g, span)
		if err != nil {
			return nil, err
		}
		if page.RetryAt != 0 {
			return nil, d.waiting(ctx, e, g, &page)
		}
		if !d.timely(ctx, e, e.sub.Longest()) {
			return nil, Errorf(Unavailable, "the time was over before the items of %s were read", e.ref)
		}
		if page.End < span.From {
			return nil, Errorf(Unavailable, "the items of %s from %d on can't be read yet", e.ref, span.From)
		}
		e.keepTurn(ctx)
		for i := range page.Items {
			d.fold(table, e.sub, &page.Items[i])
		}
		t.Items += len(page.Items)
		t.Mark = page.Mark
		span.after(&page)
	}
	if err := d.open(ctx, s, g, t); err != nil {
		return nil, err
	}
	s.rows = table.rows()
	s.part()
	return s, nil
}

// unfold makes the rows of a claim again, and leaves out those that are settled.
func (d *Deliverer) unfold(ctx context.Context, s *shipment) error {
	if s.claim.Fold != s.sub.foldedBy {
		s.claim.Fold, s.claim.Sent = s.sub.foldedBy, 0
	}
	table := s.sub.table(s.ref)
	table.skip, table.limit = s.claim.Sent, s.policy.MaxItems+1
	err := d.read(ctx, s, Span{From: s.claim.From, To: s.claim.To, MaxItems: foldItems, MaxBytes: foldBytes}, func(it *Item) error {
		d.fold(table, s.sub, it)
		if table.full() {
			return errEnough
		}
		if s.claim.Due.Sub(d.ports.Clock.Now()) > s.policy.Lease/2 {
			return nil
		}
		s.keepTurn(ctx)
		return d.renew(ctx, s)
	})
	if err != nil && err != errEnough { //nolint:errorlint // it comes as it is
		return err
	}
	s.rows = table.rows()
	if s.sub.fold != nil {
		s.rows = s.rows[min(s.claim.Sent, len(s.rows)):]
	}
	s.part()
	return nil
}

// errEnough ends a reading.
var errEnough = errors.New("enough was read")

func (d *Deliverer) fold(t *table, sub *Subscription, it *Item) {
	if !t.add(sub, it) {
		d.ports.Observer.failed("fold an item", Errorf(Invalid,
			"item %d of buffer %s has a value that is no number, which counts as absent; it was accepted under other settings", it.Seq, sub.Buffer.Name))
	}
}

// part makes the first of the rows that are left the batch that is next.
func (s *shipment) part() {
	n, bytes := 0, int64(0)
	for n < len(s.rows) && n < s.policy.MaxItems {
		bytes += s.rows[n].Size()
		if n > 0 && bytes > s.policy.CapBytes {
			break
		}
		n++
	}
	s.items = s.rows[:n]
}

// batchID is the id of the batch that is next. Rows are named by the settings
// that made them, as others make others, and their numbers in the window.
func (s *shipment) batchID() string {
	if s.claim.Fold == "" {
		return s.claim.ID
	}
	return fmt.Sprintf("%s.%s.%d-%d", s.claim.ID, s.claim.Fold, s.claim.Sent+1, s.claim.Sent+len(s.items))
}

// table folds a window's items into rows. Without a fold, which was taken out
// of the settings since, each item is a row, of which it keeps those of one
// batch and one more.
type table struct {
	fold  *fold.Table
	items []Item
	skip  int // items that were sent
	limit int
}

// full reports whether more items would change nothing.
func (t *table) full() bool { return t.fold == nil && len(t.items) == t.limit }

func (s *Subscription) table(ref Ref) *table {
	if s.fold == nil {
		return &table{}
	}
	w, _ := s.Window(ref)
	return &table{fold: s.fold.Table(fold.Window{Buffer: ref.Buffer, Shard: ref.Shard, StartMs: int64(w.Start), EndMs: int64(w.End)})}
}

// add folds an item in. It reports whether every value of it could be folded.
func (t *table) add(s *Subscription, it *Item) bool {
	if t.fold == nil {
		if t.skip--; t.skip < 0 {
			t.items = append(t.items, *it)
		}
		return true
	}
	key, err := s.Key(&it.Event)
	ok := t.fold.Add(key, view{&it.Event}, int64(it.ReceivedAt))
	return ok && err == nil
}

func (t *table) rows() []Item {
	if t.fold == nil {
		return t.items
	}
	rows := t.fold.Rows()
	items := make([]Item, len(rows))
	for i := range rows {
		r := &rows[i]
		items[i] = Item{Seq: uint64(i) + 1, Event: Event{
			ID: r.ID, ContentType: "application/json", Body: r.Body, JSON: true, ReceivedAt: Millis(r.FirstAt),
		}}
	}
	return items
}

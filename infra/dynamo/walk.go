package dynamo

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"sluice/core"
	pack "sluice/infra/dynamo/segment"
)

// walk goes through a group's log, segment by segment, and fills a page. After
// a segment of n numbers at s it goes on at s + n, whatever tombstones lie
// inside: they came too late.
type walk struct {
	s    *Store
	g    *core.Group
	span core.Span

	page  core.Page
	bytes int64       // payload on the page
	at    core.Millis // arrival of the last item before next, or a lower bound of what comes
	next  uint64      // the number to go on at
	ahead []segment   // read, and not yet looked at
	seen  uint64      // every segment that begins behind next and up to here is ahead
	ended bool
	old   []segment // half of whose time has passed
}

// hole is a range of numbers at which nothing lies.
type hole struct {
	from, to uint64
	before   core.Millis // arrival of what lies before it, or a lower bound; 0 when not known
	since    core.Millis // by when it was numbered
	lost     bool        // some of its numbers have had items
}

func newWalk(s *Store, g *core.Group, span core.Span) *walk {
	span.To = min(span.To, g.Tail)
	w := &walk{s: s, g: g, span: span, next: span.From}
	w.page.End = span.From - min(span.From, 1)
	if span.From == g.Head+1 {
		w.page.Through = g.HeadBytes
	}
	if mark := cmp.Or(span.Mark, markOf(g, span.From)); mark != 0 && mark < w.next {
		w.next = mark
	}
	if span.From > g.Head {
		w.at = g.FirstAt
	}
	if g.Life == "" {
		w.ended = true
	}
	return w
}

// markOf is where to begin to look for a number.
func markOf(g *core.Group, seq uint64) uint64 {
	if seq > g.Head {
		if g.Mark == 0 {
			return g.Head + 1
		}
		return g.Mark
	}
	for i := range g.Claims {
		c := &g.Claims[i]
		if c.From <= seq && seq <= c.To {
			if c.Mark == 0 {
				return c.From
			}
			return c.Mark
		}
	}
	return 0
}

// advance goes on until the page is complete, or it comes to a hole.
func (w *walk) advance(ctx context.Context) (*hole, error) {
	for !w.ended && w.next <= w.span.To && !w.full() {
		g := w.front()
		if g == nil && w.next > w.seen {
			if err := w.read(ctx, w.next, min(w.reach(), lastOfBucket(w.next)), 0); err != nil {
				return nil, err
			}
			g = w.front()
		}
		if g == nil || g.first > w.next {
			return w.hole(ctx)
		}
		if err := w.take(g); err != nil {
			return nil, err
		}
	}
	if w.ended || w.page.End >= w.g.Tail {
		if w.page.End >= w.g.Tail {
			w.page.Through = w.g.TailBytes
		}
		return nil, nil
	}
	w.ended = true
	w.page.NextAt = w.at
	if w.span.To <= w.g.Head {
		return nil, nil // nobody waits for what is behind a claim
	}
	return nil, w.peek(ctx)
}

// full reports whether the page has all the items that it may have.
func (w *walk) full() bool { return w.span.MaxItems > 0 && len(w.page.Items) >= w.span.MaxItems }

// reach is the last number that the page can come to, and the one behind it,
// if nothing on the way is void.
func (w *walk) reach() uint64 {
	if w.span.MaxItems == 0 {
		return w.span.To
	}
	left := max(0, w.span.MaxItems-len(w.page.Items))
	return min(w.span.To, max(w.next, w.span.From)+uint64(left))
}

// front is the first segment ahead that is not inside one that was taken.
func (w *walk) front() *segment {
	for len(w.ahead) > 0 && w.ahead[0].first < w.next {
		w.ahead = w.ahead[1:]
	}
	if len(w.ahead) == 0 {
		w.ahead = nil
		return nil
	}
	return &w.ahead[0]
}

// take puts a segment's items on the page.
func (w *walk) take(g *segment) error {
	if w.s.aging(g) {
		w.old = append(w.old, *g)
	}
	if g.known() && g.first > w.page.End {
		w.page.Through = g.offset
	}
	w.next = g.last() + 1
	if g.data == nil {
		w.void(g)
		return nil
	}
	events, err := pack.Unpack(g.data, g.at)
	if err == nil && len(events) != g.n {
		err = core.Errorf(core.Internal, "segment %d of %s holds %d events, not %d", g.first, w.g.Life, len(events), g.n)
	}
	if err != nil {
		return err
	}
	offset := g.offset
	for i := range events {
		seq, size := g.first+uint64(i), events[i].Size()
		if seq > w.span.To || seq >= w.span.From && w.span.Full(len(w.page.Items), w.bytes+size) {
			w.stop(g.first, events[i].ReceivedAt)
			return nil
		}
		offset += size
		w.at, w.page.Through = events[i].ReceivedAt, offset
		if seq < w.span.From {
			continue
		}
		w.bytes += size
		w.page.End = seq
		w.page.Items = append(w.page.Items, core.Item{Event: events[i], Seq: seq})
		w.page.Offsets = append(w.page.Offsets, offset)
		w.page.Marks = append(w.page.Marks, g.first)
	}
	return nil
}

// void passes the numbers of a segment without items.
func (w *walk) void(g *segment) {
	w.page.End = max(w.page.End, min(g.last(), w.span.To))
	if g.last() > w.span.To {
		w.stop(g.first, w.at)
	}
}

// skip passes a hole.
func (w *walk) skip(h *hole) {
	w.page.End = max(w.page.End, min(h.to, w.span.To))
	w.next = h.to + 1
}

// stop ends the page. The number behind it is to be looked for from mark on,
// and has arrived at a time, or later.
func (w *walk) stop(mark uint64, at core.Millis) {
	w.ended = true
	w.page.Mark, w.page.NextAt = mark, at
}

// again forgets what was read ahead.
func (w *walk) again() { w.ahead, w.seen = nil, 0 }

// peek finds the arrival of what lies behind a page that ends with a segment.
func (w *walk) peek(ctx context.Context) error {
	g := w.front()
	if g == nil && w.next > w.seen {
		if err := w.read(ctx, w.next, w.next, 1); err != nil {
			return err
		}
		g = w.front()
	}
	if g == nil || g.first != w.next || g.data == nil {
		return nil // not there yet, or void: what is known is a lower bound
	}
	w.page.Through = g.offset
	events, err := pack.Unpack(g.data, g.at)
	if err == nil && len(events) > 0 {
		w.page.NextAt = events[0].ReceivedAt
	}
	return err
}

// hole is the one that begins at next: up to the following segment, wherever
// that is, or to the tail. Of one that begins before the span only what is in
// the span counts: there the segment has lain that holds the first of it, or
// nothing, as an earlier page has found.
func (w *walk) hole(ctx context.Context) (*hole, error) {
	h := &hole{from: w.next, to: w.g.Tail, before: w.at, since: w.g.LastAt, lost: w.next <= w.g.Head}
	for from := max(w.next, w.seen+1); w.front() == nil && from <= w.g.Tail; from = lastOfBucket(from) + 1 {
		if err := w.read(ctx, from, min(lastOfBucket(from), w.g.Tail), 1); err != nil {
			return nil, err
		}
	}
	if g := w.front(); g != nil {
		if g.first == w.next {
			return w.advance(ctx) // it has arrived meanwhile
		}
		h.to, h.since = g.first-1, g.at
	}
	if h.lost && w.span.To <= w.g.Head {
		h.to = min(h.to, w.span.To) // what is pending behind a claim is another matter
	}
	if h.from = max(h.from, w.span.From); h.from > h.to {
		w.next = h.to + 1
		return w.advance(ctx)
	}
	return h, nil
}

// read reads the segments of one partition that begin within a range, at most
// limit of them (0: as many as the page may need).
func (w *walk) read(ctx context.Context, from, to uint64, limit int32) error {
	w.ahead, w.seen = nil, to
	size := int64(0)
	in := &dynamodb.QueryInput{
		TableName: &w.s.opts.Table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("pk = :pk AND sk BETWEEN :from AND :to"),
		ExpressionAttributeValues: attrs{
			":pk": text(logPlace(w.g.Life, from)), ":from": number(from), ":to": number(to),
		},
	}
	if limit > 0 {
		in.Limit = &limit
	}
	for {
		out, err := w.s.api.Query(ctx, in)
		if err != nil {
			return err
		}
		for _, item := range out.Items {
			g, err := decodeSegment(item)
			if err != nil {
				return err
			}
			w.ahead = append(w.ahead, g)
			size += int64(len(g.data))
		}
		if out.LastEvaluatedKey == nil {
			return nil
		}
		if n := len(w.ahead); n > 0 && (limit > 0 || w.span.MaxBytes > 0 && size > w.span.MaxBytes) {
			w.seen = w.ahead[n-1].first
			return nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

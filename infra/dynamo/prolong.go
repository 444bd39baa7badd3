package dynamo

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"sluice/core"
)

// aging reports whether a segment that is still needed has less than half of
// the retention left. Without a void one its numbers would look lost.
func (s *Store) aging(g *segment) bool {
	return g.expires*1000 < int64(s.opts.Clock.Now().Add(s.opts.Retention/2))
}

// prolong keeps segments for another retention. One that the table has deleted
// meanwhile stays so.
func (s *Store) prolong(ctx context.Context, old []segment, life string) error {
	return each(len(old), func(i int) error {
		_, err := s.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.opts.Table, Key: key(logPlace(life, old[i].first), old[i].first),
			UpdateExpression: aws.String("SET expires = :expires"), ConditionExpression: aws.String("attribute_exists(pk)"),
			ExpressionAttributeValues: attrs{":expires": number(s.expiry(s.opts.Clock.Now()))},
		})
		if _, deleted := refused(err); deleted {
			return nil
		}
		return failure(err, "keep events")
	})
}

// keepBytes is about how much payload is read at a time to be kept.
const keepBytes = 4 << 20

// forgotten is how long overdue a claim is that nobody sends.
const forgotten = time.Hour

// keepEvery is every how many hours what waits is looked at: four times at the
// least while it has less than half of its retention left.
func (s *Store) keepEvery() int { return max(1, min(24, int(s.opts.Retention/(8*time.Hour)))) }

// keep prolongs what lies too long: the items of groups that nobody delivers,
// as their buffer is not configured any more or deliveries are held, and those
// that wait behind a claim in retry. A claim that somebody sends is prolonged
// whenever it is read for that.
func (s *Store) keep(ctx context.Context) error {
	if m := s.minute(); m%60 != 0 || m/60%s.keepEvery() != 0 {
		return nil
	}
	var refs []core.Ref
	for _, x := range s.turn() {
		for h, err := range s.entries(ctx, x, "", forever) {
			if err != nil {
				return err
			}
			if refs = append(refs, h.Ref); len(refs) < maxBatchGet*lanes {
				continue
			}
			if err := s.keepAll(ctx, refs); err != nil {
				return err
			}
			refs = refs[:0]
		}
	}
	return s.keepAll(ctx, refs)
}

func (s *Store) keepAll(ctx context.Context, refs []core.Ref) error {
	slices.SortFunc(refs, compareRefs)
	groups, err := s.records(ctx, slices.Compact(refs))
	if err != nil {
		return err
	}
	return each(len(groups), func(i int) error {
		if err := s.keepClaimed(ctx, &groups[i], s.opts.Clock.Now()); err != nil {
			return err
		}
		return s.keepPending(ctx, &groups[i], s.opts.Clock.Now())
	})
}

// keepPending prolongs the pending items of a group that have waited for half
// of the retention: those at its head.
func (s *Store) keepPending(ctx context.Context, g *core.NamedGroup, now core.Millis) error {
	long := now.Add(-s.opts.Retention / 2)
	if g.Pending() == 0 || g.FirstAt > long {
		return nil
	}
	for rest := g.Group; rest.Pending() > 0; {
		w, h, err := s.keepSpan(ctx, &rest, core.Span{From: rest.Head + 1, To: rest.Tail})
		if err != nil {
			return err
		}
		rest.Head, rest.Mark, rest.FirstAt = w.page.End, w.page.Mark, w.at
		if h != nil {
			rest.Head, rest.Mark = h.to, 0
		}
		if w.at > long {
			return nil
		}
	}
	return nil
}

// keepClaimed prolongs the items of claims that are long overdue.
func (s *Store) keepClaimed(ctx context.Context, g *core.NamedGroup, now core.Millis) error {
	for i := range g.Claims {
		c := &g.Claims[i]
		if c.Due >= now.Add(-forgotten) {
			continue
		}
		for span := (core.Span{From: c.From, To: c.To}); span.From <= c.To; {
			w, h, err := s.keepSpan(ctx, &g.Group, span)
			if err != nil {
				return err
			}
			span.From, span.Mark = w.page.End+1, cmp.Or(w.page.Mark, w.page.End+1)
			if h != nil {
				span.From, span.Mark = h.to+1, h.to+1
			}
		}
	}
	return nil
}

// keepSpan prolongs a page of a span, as far as there is no hole in it.
func (s *Store) keepSpan(ctx context.Context, g *core.Group, span core.Span) (*walk, *hole, error) {
	span.MaxItems, span.MaxBytes = maxSegmentItems, keepBytes
	w := newWalk(s, g, span)
	h, err := w.advance(ctx)
	if err == nil {
		err = s.prolong(ctx, w.old, g.Life)
	}
	return w, h, failure(err, "keep events")
}

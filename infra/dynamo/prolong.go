package dynamo

import (
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

// forgotten is how long overdue a group is that nobody delivers, as its buffer
// is not configured any more.
const forgotten = time.Hour

// keep prolongs what lies too long: the items of groups that nobody delivers,
// and those that wait behind a claim in retry. A claim that somebody sends is
// prolonged whenever it is read for that. It looks once an hour.
func (s *Store) keep(ctx context.Context) error {
	now := s.opts.Clock.Now()
	if now.Time().Minute() != 0 {
		return nil
	}
	var refs []core.Ref
	for _, x := range indexes {
		before := forever
		if x.at == attrCheckAt {
			before = now.Add(-forgotten)
		}
		for h, err := range s.entries(ctx, x, "", before) {
			if err != nil {
				return err
			}
			refs = append(refs, h.Ref)
		}
	}
	slices.SortFunc(refs, compareRefs)
	groups, err := s.records(ctx, slices.Compact(refs))
	if err != nil {
		return err
	}
	for i := range groups {
		if err := s.keepClaimed(ctx, &groups[i], now); err != nil {
			return err
		}
		if err := s.keepPending(ctx, &groups[i], now); err != nil {
			return err
		}
	}
	return nil
}

// keepPending prolongs a group's pending items, if the oldest has waited for
// long.
func (s *Store) keepPending(ctx context.Context, g *core.NamedGroup, now core.Millis) error {
	if g.Pending() == 0 || g.FirstAt > now.Add(-s.opts.Retention/2+forgotten) {
		return nil
	}
	for rest := g.Group; rest.Pending() > 0; {
		w, h, err := s.keepSpan(ctx, &rest, core.Span{From: rest.Head + 1, To: rest.Tail, MaxItems: maxSegmentItems})
		if err != nil {
			return err
		}
		rest.Head, rest.Mark = w.page.End, w.page.Mark
		if h != nil {
			rest.Head, rest.Mark = h.to, 0
		}
	}
	return nil
}

// keepClaimed prolongs the items of claims that are long overdue.
func (s *Store) keepClaimed(ctx context.Context, g *core.NamedGroup, now core.Millis) error {
	for i := range g.Claims {
		c := &g.Claims[i]
		for from := c.From; c.Due < now.Add(-forgotten) && from <= c.To; {
			w, h, err := s.keepSpan(ctx, &g.Group, core.Span{From: from, To: c.To})
			if err != nil {
				return err
			}
			if from = w.page.End + 1; h != nil {
				from = h.to + 1
			}
		}
	}
	return nil
}

// keepSpan prolongs a span, as far as there is no hole in it.
func (s *Store) keepSpan(ctx context.Context, g *core.Group, span core.Span) (*walk, *hole, error) {
	w := newWalk(s, g, span)
	h, err := w.advance(ctx)
	if err == nil {
		err = s.prolong(ctx, w.old, g.Life)
	}
	return w, h, failure(err, "keep events")
}

package dynamo

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"sluice/core"
)

// aging reports whether a segment that is still needed has less than half of
// the retention left.
func (s *Store) aging(g *segment) bool {
	return g.data != nil && g.expires*1000 < int64(s.opts.Clock.Now().Add(s.opts.Retention/2))
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

// keep prolongs what lies too long: the pending items of groups that nobody
// delivers, or that wait behind a claim in retry. Whatever is claimed is
// prolonged whenever it is read to be sent. It looks once an hour.
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
	groups, err := s.records(ctx, refs)
	if err != nil {
		return err
	}
	for i := range groups {
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
	for from := g.Head + 1; from <= g.Tail; {
		w := newWalk(s, &g.Group, core.Span{From: from, To: g.Tail, MaxItems: maxSegmentItems})
		h, err := w.advance(ctx)
		if err == nil {
			err = s.prolong(ctx, w.old, g.Life)
		}
		if err != nil {
			return failure(err, "keep events")
		}
		from = w.page.End + 1
		if h != nil {
			from = h.to + 1
		}
	}
	return nil
}

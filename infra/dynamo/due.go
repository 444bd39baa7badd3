package dynamo

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sluice/core"
)

// forever is later than any time in an index.
const forever = core.Millis(1 << 53)

// Due implements [core.Store]. The indexes that it goes through lag a little
// behind the records.
func (s *Store) Due(ctx context.Context, before core.Millis) iter.Seq2[core.Hint, error] {
	return func(yield func(core.Hint, error) bool) {
		if err := s.enter(); err != nil {
			yield(core.Hint{}, err)
			return
		}
		s.leave() // what the walk does, it may do for minutes
		for _, x := range s.turn() {
			for h, err := range s.entries(ctx, x, "", before) {
				if !yield(h, err) || err != nil {
					return
				}
			}
		}
	}
}

// turn is the indexes in this minute's order: who has no time for all of a walk
// does not always begin it with the same.
func (s *Store) turn() []index {
	if s.minute()%2 == 0 {
		return indexes[:]
	}
	return []index{indexes[1], indexes[0]}
}

func (s *Store) minute() int { return int(s.opts.Clock.Now() / 60_000) }

// entries goes through one index, or through what one buffer has in it, from
// this minute's partition on.
func (s *Store) entries(ctx context.Context, x index, buffer string, before core.Millis) iter.Seq2[core.Hint, error] {
	return func(yield func(core.Hint, error) bool) {
		first := s.minute()
		for i := range s.opts.DueShards {
			n := (first + i) % s.opts.DueShards
			in := &dynamodb.QueryInput{
				TableName: &s.opts.Table, IndexName: &x.name,
				KeyConditionExpression:    aws.String("due = :due AND " + x.at + " <= :before"),
				ExpressionAttributeValues: attrs{":due": text(dueShardName(n)), ":before": number(before)},
			}
			if buffer != "" {
				in.FilterExpression = aws.String("begins_with(pk, :prefix)")
				in.ExpressionAttributeValues[":prefix"] = text(bufferPrefix(buffer))
			}
			for more := true; more; {
				out, err := s.api.Query(ctx, in)
				if err != nil {
					yield(core.Hint{}, failure(err, "look for what is due"))
					return
				}
				for _, item := range out.Items {
					h, err := entry(item, x.at)
					if !yield(h, err) {
						return
					}
				}
				in.ExclusiveStartKey = out.LastEvaluatedKey
				more = out.LastEvaluatedKey != nil
			}
		}
	}
}

func entry(item attrs, at string) (core.Hint, error) {
	f := fields{item: item}
	h := core.Hint{Life: f.text("life"), At: f.millis(at)}
	pk, key := f.text(attrPartition), string(f.bytes("key"))
	if f.err != nil {
		return h, f.err
	}
	var err error
	h.Ref, err = refAt(pk, key)
	return h, err
}

// Groups implements [core.Store]. It goes through all groups of the buffer
// that are not empty, which is for people's questions, not for the way of an
// event. All shards of a key are on one page, which so may be larger.
func (s *Store) Groups(ctx context.Context, buffer string, after *string, limit int) ([]core.NamedGroup, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	refs, err := s.refs(ctx, buffer)
	if err != nil {
		return nil, err
	}
	if after != nil {
		refs = slices.DeleteFunc(refs, func(r core.Ref) bool { return r.Key <= *after })
	}
	var groups []core.NamedGroup
	for len(refs) > 0 && len(groups) < limit {
		n := min(len(refs), limit-len(groups))
		for n < len(refs) && refs[n].Key == refs[n-1].Key {
			n++
		}
		page, err := s.records(ctx, refs[:n])
		if err != nil {
			return nil, err
		}
		groups = append(groups, page...)
		refs = refs[n:]
	}
	return groups, nil
}

// refs are the groups of a buffer (of all, if it is "") that an index lists,
// in order. A group that is not empty is in one of them.
func (s *Store) refs(ctx context.Context, buffer string) ([]core.Ref, error) {
	var refs []core.Ref
	for _, x := range indexes {
		for h, err := range s.entries(ctx, x, buffer, forever) {
			if err != nil {
				return nil, err
			}
			refs = append(refs, h.Ref)
		}
	}
	slices.SortFunc(refs, compareRefs)
	return slices.Compact(refs), nil
}

func compareRefs(a, b core.Ref) int {
	if c := strings.Compare(a.Buffer, b.Buffer); c != 0 {
		return c
	}
	if c := strings.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return a.Shard - b.Shard
}

// maxBatchGet is how many items one call may ask for.
const maxBatchGet = 100

// records reads groups, and leaves out those that are empty.
func (s *Store) records(ctx context.Context, refs []core.Ref) ([]core.NamedGroup, error) {
	chunks := slices.Collect(slices.Chunk(refs, maxBatchGet))
	read := make([]map[string]record, len(chunks))
	err := each(len(chunks), func(i int) (err error) {
		read[i], err = s.batch(ctx, chunks[i])
		return err
	})
	if err != nil {
		return nil, failure(err, "read groups")
	}
	var groups []core.NamedGroup
	for i, refs := range chunks {
		for _, ref := range refs {
			pk, _ := place(ref)
			if r := read[i][pk]; !r.Empty() {
				groups = append(groups, core.NamedGroup{Ref: ref, Group: r.Group})
			}
		}
	}
	return groups, nil
}

// batch reads records by their places, and asks again for those that an
// answer leaves out.
func (s *Store) batch(ctx context.Context, refs []core.Ref) (map[string]record, error) {
	ask := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
	for _, ref := range refs {
		pk, _ := place(ref)
		ask.Keys = append(ask.Keys, key(pk, 0))
	}
	read := make(map[string]record, len(refs))
	for try := 1; len(ask.Keys) > 0; try++ {
		out, err := s.api.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{s.opts.Table: ask},
		})
		if err != nil {
			return nil, err
		}
		for _, item := range out.Responses[s.opts.Table] {
			r, err := decode(item)
			if err != nil {
				return nil, err
			}
			read[r.pk] = r
		}
		left := out.UnprocessedKeys[s.opts.Table].Keys
		if len(left) == len(ask.Keys) {
			if try == attempts {
				return nil, core.Errorf(core.Unavailable, "cannot read groups: the table is throttled; try again in a moment")
			}
			if err := pause(ctx, backoff(try)); err != nil {
				return nil, err
			}
		}
		ask.Keys = left
	}
	return read, nil
}

// Stats implements [core.Store]. Like [Store.Groups] it reads every group that
// is not empty.
func (s *Store) Stats(ctx context.Context) ([]core.BufferStats, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	refs, err := s.refs(ctx, "")
	if err != nil {
		return nil, err
	}
	var stats []core.BufferStats
	for chunk := range slices.Chunk(refs, maxBatchGet*lanes) { // in order of their buffers
		groups, err := s.records(ctx, chunk)
		if err != nil {
			return nil, err
		}
		for i := range groups {
			if n := len(stats); n == 0 || stats[n-1].Buffer != groups[i].Ref.Buffer {
				stats = append(stats, core.BufferStats{Buffer: groups[i].Ref.Buffer})
			}
			addTo(&stats[len(stats)-1], &groups[i].Group)
		}
	}
	return stats, nil
}

func addTo(sum *core.BufferStats, g *core.Group) {
	sum.Groups++
	sum.Pending += int64(g.Pending() - g.Void)
	sum.Bytes += g.PendingBytes() - g.VoidBytes
	sum.Claimed += claimed(g)
	sum.Held += int64(g.HeldItems())
	if g.FirstAt != 0 && (sum.Oldest == 0 || g.FirstAt < sum.Oldest) {
		sum.Oldest = g.FirstAt
	}
}

// claimed is how many items are in claims and not settled.
func claimed(g *core.Group) int64 {
	var n int64
	for i := range g.Claims {
		c := &g.Claims[i]
		n += int64(c.To-c.From+1) - int64(c.Done.Len())
	}
	return n
}

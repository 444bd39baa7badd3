package embed

import (
	"context"
	"iter"
	"slices"
	"strings"

	"sluice/core"
)

// stepGroups is how many groups a walk visits before it lets go of the mutex.
const stepGroups = 512

// each visits every group, or every group of one buffer, in steps.
func (s *Store) each(ctx context.Context, visit func(*group) bool, only ...string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	c := s.index.walk(only...)
	for {
		for range stepGroups {
			gr := c.next()
			if gr == nil || !visit(gr) {
				s.mu.Unlock()
				return nil
			}
		}
		s.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return core.Wrap(core.Canceled, err, "the caller has gone")
		}
		s.mu.Lock()
	}
}

// Due goes through what wants attention, as of the call.
func (s *Store) Due(ctx context.Context, before core.Millis) iter.Seq2[core.Hint, error] {
	return func(yield func(core.Hint, error) bool) {
		due, err := s.due(ctx, before)
		for _, h := range due {
			if !yield(h, nil) {
				return
			}
		}
		if err != nil {
			yield(core.Hint{}, err)
		}
	}
}

func (s *Store) due(ctx context.Context, before core.Millis) ([]core.Hint, error) {
	var due []core.Hint
	seen := map[core.Hint]bool{}
	err := s.each(ctx, func(gr *group) bool {
		for _, at := range []core.Millis{gr.CheckAt, gr.ClaimDue()} {
			h := core.Hint{Ref: core.Ref{Buffer: gr.buf.name, Key: gr.key}, Life: gr.Life, At: at}
			if at == 0 || at > before || seen[h] {
				continue
			}
			seen[h] = true
			due = append(due, h)
		}
		return true
	})
	return due, err
}

// Groups lists a buffer's groups in order of their keys.
func (s *Store) Groups(ctx context.Context, buffer string, after *string, limit int) ([]core.NamedGroup, error) {
	first := smallest{limit: limit}
	err := s.each(ctx, func(gr *group) bool {
		if after == nil || gr.key > *after {
			first.add(gr.key)
		}
		return true
	}, buffer)
	if err != nil {
		return nil, err
	}
	keys := first.sorted()
	groups := make([]core.NamedGroup, 0, len(keys))
	for chunk := range slices.Chunk(keys, stepGroups) {
		if err := s.enter(ctx); err != nil {
			return nil, err
		}
		for _, key := range chunk {
			ref := core.Ref{Buffer: buffer, Key: key}
			if gr := s.index.find(ref); gr != nil {
				ref.Key = gr.key
				groups = append(groups, core.NamedGroup{Ref: ref, Group: gr.Clone()})
			}
		}
		s.mu.Unlock()
		s.leave()
	}
	return groups, nil
}

// smallest keeps the smallest keys of many, in little more room than they take.
type smallest struct {
	limit int // 0: all
	keys  []string
	bound string // keys from here on are not among them
	full  bool
}

func (s *smallest) add(key string) {
	if s.full && key >= s.bound {
		return
	}
	s.keys = append(s.keys, key)
	if s.limit > 0 && len(s.keys) >= 2*s.limit+stepGroups {
		if s.keys = s.sorted(); len(s.keys) == s.limit {
			s.bound, s.full = s.keys[s.limit-1], true
		}
	}
}

// sorted returns them in order, each once.
func (s *smallest) sorted() []string {
	slices.SortFunc(s.keys, strings.Compare)
	keys := slices.Compact(s.keys)
	if s.limit > 0 {
		keys = keys[:min(len(keys), s.limit)]
	}
	return keys
}

// Stats sums up every buffer that holds anything.
func (s *Store) Stats(ctx context.Context) ([]core.BufferStats, error) {
	oldest, held := map[*buffer]core.Millis{}, map[*buffer]int64{}
	err := s.each(ctx, func(gr *group) bool {
		if n := gr.HeldItems(); n > 0 {
			held[gr.buf] += int64(n)
		}
		if at := oldest[gr.buf]; gr.FirstAt != 0 && (at == 0 || gr.FirstAt < at) {
			oldest[gr.buf] = gr.FirstAt
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	defer s.mu.Unlock()
	var stats []core.BufferStats
	for _, b := range s.index.buffers {
		if len(b.all) > 0 {
			stats = append(stats, core.BufferStats{Buffer: b.name, Groups: len(b.all),
				Pending: b.pending, Bytes: b.bytes, Claimed: b.claimed, Held: min(held[b], b.pending), Oldest: oldest[b]})
		}
	}
	slices.SortFunc(stats, func(a, b core.BufferStats) int { return strings.Compare(a.Buffer, b.Buffer) })
	return stats, nil
}

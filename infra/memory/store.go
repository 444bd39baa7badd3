package memory

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"sluice/core"
)

// Store is a [core.Store] and its dead letters, in memory. It is safe for
// concurrent use. A group is forgotten as soon as it is empty or, when it is
// closed, by the first append from then on whose time is late enough.
type Store struct {
	letters *DeadLetters

	mu     sync.Mutex
	closed bool
	groups map[core.Ref]*group
	seen   map[name]sighting
	shut   map[core.Ref]struct{} // those of them that take no more
}

var _ core.Store = (*Store)(nil)

// New makes an empty store.
func New() *Store {
	return &Store{letters: newDeadLetters(), groups: map[core.Ref]*group{}, seen: map[name]sighting{}, shut: map[core.Ref]struct{}{}}
}

// DeadLetters is where the store keeps dead letters.
func (s *Store) DeadLetters() *DeadLetters { return s.letters }

// Reopen is what a crash and a new start leave: a store with the same data,
// while this one answers no more. With abandon every lease has ended, as in a
// store that only one process can hold.
func (s *Store) Reopen(abandon bool) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if abandon {
		for _, g := range s.groups {
			g.Abandon()
		}
	}
	return &Store{letters: s.letters, groups: s.groups, seen: s.seen, shut: s.shut}
}

// open fails once the store is closed. The caller holds the mutex.
func (s *Store) open() error {
	if s.closed {
		return core.Errorf(core.Unavailable, "the store is closed")
	}
	return nil
}

// Append implements [core.Store].
func (s *Store) Append(_ context.Context, now core.Millis, parts []core.Part) ([]core.Appended, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, err
	}
	s.forget(now)
	return s.append(now, parts)
}

// forget forgets the empty groups that are closed until now.
func (s *Store) forget(now core.Millis) {
	for ref := range s.shut {
		g := s.groups[ref]
		if g != nil && (!g.Empty() || g.Closed > now) {
			continue
		}
		delete(s.groups, ref)
		delete(s.shut, ref)
	}
}

// held is how many items of a buffer are not settled.
func (s *Store) held(buffer string) int64 {
	var n int64
	for ref, g := range s.groups {
		if core.Owner(ref.Buffer) == buffer {
			n += int64(g.Pending()) + g.claimed()
		}
	}
	return n
}

// record is a copy of a group's record.
func (s *Store) record(ref core.Ref) core.Group {
	if g := s.groups[ref]; g != nil {
		return g.Clone()
	}
	return core.Group{}
}

// group is a group, made if there is none.
func (s *Store) group(ref core.Ref) *group {
	if s.groups[ref] == nil {
		s.groups[ref] = &group{}
	}
	return s.groups[ref]
}

// Group implements [core.Store].
func (s *Store) Group(_ context.Context, ref core.Ref) (core.Group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return core.Group{}, err
	}
	return s.record(ref), nil
}

// Update implements [core.Store]. It runs fn once, under the mutex: fn must
// not call the store.
func (s *Store) Update(_ context.Context, ref core.Ref, _ *core.Group, fn func(*core.Group) error) (core.Group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return core.Group{}, err
	}
	g := s.record(ref)
	if err := fn(&g); err != nil {
		return core.Group{}, err
	}
	s.replace(ref, &g)
	return g, nil
}

// replace makes a copy of g a group's record: who has made it may have kept it.
func (s *Store) replace(ref core.Ref, g *core.Group) {
	if g.Empty() && g.Closed == 0 {
		delete(s.groups, ref)
		return
	}
	kept := s.group(ref)
	if g.Closed != 0 {
		s.shut[ref] = struct{}{}
	}
	kept.Group = g.Clone()
	kept.trim()
}

// Items implements [core.Store]. Settled items are void.
func (s *Store) Items(_ context.Context, ref core.Ref, _ *core.Group, span core.Span) (core.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return core.Page{}, err
	}
	g := s.groups[ref]
	if g == nil {
		return core.Page{}, nil
	}
	return g.page(span), nil
}

// Due implements [core.Store], as of the call.
func (s *Store) Due(_ context.Context, before core.Millis) iter.Seq2[core.Hint, error] {
	return func(yield func(core.Hint, error) bool) {
		due, err := s.due(before)
		if err != nil {
			yield(core.Hint{}, err)
			return
		}
		for _, h := range due {
			if !yield(h, nil) {
				return
			}
		}
	}
}

// due has an entry for a check and one for a claim of each group.
func (s *Store) due(before core.Millis) ([]core.Hint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, err
	}
	var due []core.Hint
	for ref, g := range s.groups {
		for _, at := range []core.Millis{g.CheckAt, g.ClaimDue()} {
			if at != 0 && at <= before {
				due = append(due, core.Hint{Ref: ref, Life: g.Life, At: at})
			}
		}
	}
	return due, nil
}

// Groups implements [core.Store].
func (s *Store) Groups(_ context.Context, buffer string, after *string, limit int) ([]core.NamedGroup, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, err
	}
	var named []core.NamedGroup
	for ref, g := range s.groups {
		if ref.Buffer == buffer && !g.Empty() && (after == nil || ref.Key > *after) {
			named = append(named, core.NamedGroup{Ref: ref, Group: g.Clone()})
		}
	}
	slices.SortFunc(named, func(a, b core.NamedGroup) int { return compareRefs(a.Ref, b.Ref) })
	return atMost(named, limit), nil
}

// Stats implements [core.Store].
func (s *Store) Stats(context.Context) ([]core.BufferStats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, err
	}
	sums := map[string]*core.BufferStats{}
	for ref, g := range s.groups {
		if g.Empty() {
			continue
		}
		sum := sums[ref.Buffer]
		if sum == nil {
			sum = &core.BufferStats{Buffer: ref.Buffer}
			sums[ref.Buffer] = sum
		}
		g.addTo(sum)
	}
	var stats []core.BufferStats
	for _, sum := range sums {
		stats = append(stats, *sum)
	}
	slices.SortFunc(stats, func(a, b core.BufferStats) int { return strings.Compare(a.Buffer, b.Buffer) })
	return stats, nil
}

// Close implements [core.Store]. Later calls fail as Unavailable.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func compareRefs(a, b core.Ref) int {
	return cmp.Or(strings.Compare(a.Buffer, b.Buffer), strings.Compare(a.Key, b.Key), cmp.Compare(a.Shard, b.Shard))
}

// atMost is the first limit elements, or all when limit is 0.
func atMost[T any](all []T, limit int) []T {
	if limit <= 0 || limit >= len(all) {
		return all
	}
	return all[:limit]
}

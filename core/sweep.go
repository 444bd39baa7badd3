package core

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// sweepGrace is how far overdue a group must be before a sweep takes it
	// for forgotten.
	sweepGrace = 5 * time.Second
	// sweepers is how many groups a sweep sees to at a time: each waits for the
	// store and the queue, which may be far away.
	sweepers = 16
	// sweepNudge is how long a sweep leaves a group to the deliverer that it
	// has handed it to.
	sweepNudge = time.Minute
)

// Sweeper finds what a lost hint, or a deliverer that died, has left behind.
// It ships nothing that is not due.
type Sweeper struct {
	catalog *Catalog
	ports   Ports
}

// NewSweeper makes a sweeper.
func NewSweeper(c *Catalog, p Ports) *Sweeper { return &Sweeper{catalog: c, ports: p} }

// Sweep sees to every group that is overdue by a few seconds, and reports how
// many it handed over. It is to be called every minute. A group that fails does
// not keep it from the others; it ends early when ctx does, or when the store
// or the queue seems not to answer at all.
func (s *Sweeper) Sweep(ctx context.Context) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := sweep{Sweeper: s, cancel: cancel}
	overdue := make(chan Ref)
	var sweeping sync.WaitGroup
	for range sweepers {
		sweeping.Go(func() {
			for ref := range overdue {
				r.see(ctx, ref)
			}
		})
	}
	err := s.overdue(ctx, overdue)
	close(overdue)
	sweeping.Wait()
	if r.err == nil {
		r.err = err
	}
	return r.handed, r.err
}

// sweep is one call of Sweep.
type sweep struct {
	*Sweeper

	cancel context.CancelFunc

	mu     sync.Mutex
	handed int
	failed int   // in a row
	err    error // the first
}

func (r *sweep) see(ctx context.Context, ref Ref) {
	did, err := r.Sweeper.see(ctx, r.catalog.Buffer(ref.Buffer), ref)
	r.mu.Lock()
	defer r.mu.Unlock()
	if did {
		r.handed++
	}
	if err == nil {
		r.failed = 0
		return
	}
	if r.err == nil {
		r.err = err
	}
	if r.failed++; r.failed >= 2*sweepers {
		r.cancel()
	}
}

// overdue sends every overdue group of a configured buffer, each once.
func (s *Sweeper) overdue(ctx context.Context, to chan<- Ref) error {
	seen := make(map[Ref]bool)
	for h, err := range s.ports.Store.Due(ctx, s.ports.Clock.Now().Add(-sweepGrace)) {
		if err != nil {
			return err
		}
		if s.catalog.Buffer(h.Ref.Buffer) == nil || seen[h.Ref] {
			continue
		}
		seen[h.Ref] = true
		select {
		case to <- h.Ref:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// see hands an overdue group over, and moves its check on so that a backlog
// is not queued again by every sweep. Another that only lost its hint is armed
// anew.
func (s *Sweeper) see(ctx context.Context, sub *Subscription, ref Ref) (bool, error) {
	p, now := sub.policy(ref), s.ports.Clock.Now()
	wanted := false
	g, err := s.ports.Store.Update(ctx, ref, nil, func(g *Group) error {
		was := g.CheckAt
		if wanted = g.Wanted(p, now); wanted {
			g.Nudge(now.Add(sweepNudge))
		}
		if wanted && g.CheckAt == was || !wanted && !g.Check(p, now) {
			return errUnchanged
		}
		return nil
	})
	switch {
	case err == nil:
		s.armAll(context.WithoutCancel(ctx), p, ref, &g)
	case !errors.Is(err, errUnchanged):
		return false, err
	}
	if !wanted {
		return false, nil
	}
	err = s.ports.Queue.Hand(ctx, sub.delivery(ref, nil))
	return err == nil, err
}

// armAll arms a group's check and every claim that waits for its retry.
func (s *Sweeper) armAll(ctx context.Context, p *Policy, ref Ref, g *Group) int {
	n := 0
	if g.CheckAt != 0 {
		s.ports.armCheck(ctx, p, ref, g)
		n++
	}
	for i := range g.Claims {
		s.ports.armClaim(ctx, ref, g, &g.Claims[i])
		n++
	}
	return n
}

// Resume arms every deadline that the store holds, and reports how many. A
// process whose timers end with it calls it at its start, and whenever its
// settings have changed: a group that is then due earlier is checked earlier.
func (s *Sweeper) Resume(ctx context.Context) (int, error) {
	now := s.ports.Clock.Now()
	n := 0
	seen := make(map[Ref]bool)
	for h, err := range s.ports.Store.Due(ctx, maxMillis) {
		if err != nil {
			return n, err
		}
		sub := s.catalog.Buffer(h.Ref.Buffer)
		if sub == nil || seen[h.Ref] {
			continue
		}
		seen[h.Ref] = true
		g, err := s.ports.Store.Group(ctx, h.Ref)
		if err != nil {
			return n, err
		}
		p := sub.policy(h.Ref)
		n += s.armAll(ctx, p, h.Ref, &g)
		next := g.Clone()
		if next.Check(p, now) && next.CheckAt < g.CheckAt {
			s.ports.arm(ctx, Hint{Ref: h.Ref, Life: g.Life, At: next.CheckAt}) // beside the other, which stays armed
		}
	}
	return n, nil
}

const maxMillis = Millis(1<<63 - 1)

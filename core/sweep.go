package core

import (
	"context"
	"errors"
	"time"
)

const (
	// sweepGrace is how far overdue a group must be before a sweep takes it
	// for forgotten.
	sweepGrace = 5 * time.Second
	// sweepNudge is how long a sweep leaves a group to the deliverer that it
	// has handed it to.
	sweepNudge = time.Minute
	// sweepLimit is how many groups one sweep sees to.
	sweepLimit = 10_000
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
// many it handed over. It is to be called every minute.
func (s *Sweeper) Sweep(ctx context.Context) (int, error) {
	now := s.ports.Clock.Now()
	hints, err := s.ports.Store.Due(ctx, now.Add(-sweepGrace), sweepLimit)
	if err != nil {
		return 0, err
	}
	handed := 0
	var errs []error
	seen := make(map[Ref]bool, len(hints))
	for _, h := range hints {
		if seen[h.Ref] {
			continue
		}
		seen[h.Ref] = true
		did, err := s.see(ctx, h, now)
		if did {
			handed++
		}
		errs = append(errs, err)
	}
	return handed, errors.Join(errs...)
}

// see hands an overdue group over, and moves its check on so that a backlog
// is not queued again by every sweep.
func (s *Sweeper) see(ctx context.Context, h Hint, now Millis) (bool, error) {
	sub := s.catalog.Buffer(h.Ref.Buffer)
	if sub == nil {
		return false, nil
	}
	wanted := false
	g, err := s.ports.Store.Update(ctx, h.Ref, func(g *Group) error {
		wanted = sub.wanted(g, now)
		was := g.CheckAt
		if wanted {
			g.Nudge(now.Add(sweepNudge))
		} else {
			g.Check(&sub.Policy, now)
		}
		if g.CheckAt == was {
			return errUnchanged
		}
		return nil
	})
	switch {
	case err == nil:
		s.ports.arm(ctx, h.Ref, g.Life, g.CheckAt)
	case !errors.Is(err, errUnchanged):
		return false, err
	}
	if !wanted {
		return false, nil
	}
	return true, s.ports.Queue.Hand(ctx, sub.delivery(h.Ref))
}

// Resume arms every deadline that the store holds. A process whose timers
// end with it calls it once, before anything else; it reports how many.
// A group that its settings, which may be new, make due earlier is checked then.
func (s *Sweeper) Resume(ctx context.Context) (int, error) {
	hints, err := s.ports.Store.Due(ctx, maxMillis, 0)
	if err != nil {
		return 0, err
	}
	now := s.ports.Clock.Now()
	n := 0
	for _, h := range hints {
		sub := s.catalog.Buffer(h.Ref.Buffer)
		if sub == nil {
			continue
		}
		g, err := s.ports.Store.Group(ctx, h.Ref)
		if err != nil {
			return n, err
		}
		s.ports.arm(ctx, h.Ref, h.Life, h.At)
		n++
		v := Evaluate(&g, &sub.Policy, now)
		if v.Due {
			v.Next = now
		}
		if v.Next < h.At && h.At == g.CheckAt {
			s.ports.arm(ctx, h.Ref, h.Life, v.Next)
		}
	}
	return n, nil
}

const maxMillis = Millis(1<<63 - 1)

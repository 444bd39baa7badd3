package bench

import (
	"context"
	"fmt"
	"time"
)

// backlog is scenario e: memory with many items pending, and the time to ready
// of a start behind a kill -9 with as many.
func (b *bench) backlog(ctx context.Context) error {
	if err := b.memory(ctx); err != nil {
		return err
	}
	return b.restart(ctx)
}

func (b *bench) memory(ctx context.Context) error {
	s, p, err := b.fill(ctx, b.memoryGroups)
	if err != nil {
		return err
	}
	defer s.clear()
	defer p.stop()
	if !pause(ctx, b.settle) {
		return ctx.Err()
	}
	n, err := p.anonymous()
	if err != nil {
		return err
	}
	b.report.bound("e", fmt.Sprintf("memory, %d items pending in %d groups", b.pending, b.memoryGroups),
		Bound{Value: float64(n) / 1e6, Limit: ceilingMemory, Unit: "MB"})
	return b.addPending(ctx, p, "memory")
}

func (b *bench) restart(ctx context.Context) error {
	s, p, err := b.fill(ctx, b.restartGroups)
	if err != nil {
		return err
	}
	defer s.clear()
	p.kill()
	b.sayf("e: restart")
	p, took, err := s.serve(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	b.report.bound("e", fmt.Sprintf("ready behind a kill -9, %d items pending in %d groups", b.pending, b.restartGroups),
		Bound{Value: took.Seconds(), Limit: ceilingRestart, Unit: "s"})
	return b.addPending(ctx, p, "restart")
}

// fill starts a sluice and leaves items pending in it, in so many groups.
func (b *bench) fill(ctx context.Context, groups int) (*stage, *process, error) {
	s, err := b.stage(ctx, settings{items: 10_000, bytes: 10 << 20, idle: 5 * time.Minute, wait: 10 * time.Minute})
	if err != nil {
		return nil, nil, err
	}
	p, _, err := s.serve(ctx)
	if err != nil {
		s.clear()
		return nil, nil, err
	}
	load := Load{
		URL: p.url(pathOf(b.batch)), Conns: b.conns, PerPost: b.batch, Size: b.size, Events: uint64(b.pending),
		Key: func(_ int, id uint64) uint64 { return id % uint64(groups) },
	}
	b.sayf("e: %d items in %d groups", b.pending, groups)
	sent, err := load.Run(ctx)
	if err == nil && sent.Accepted < uint64(b.pending) {
		err = fmt.Errorf("only %d of %d events accepted; %d requests refused (%s), %d broken",
			sent.Accepted, b.pending, sent.Refused, sent.Refusal, sent.Broken)
	}
	if err != nil {
		p.stop()
		s.clear()
		return nil, nil, err
	}
	return s, p, nil
}

// addPending reports whether everything that was sent is pending.
func (b *bench) addPending(ctx context.Context, p *process, when string) error {
	m, err := p.scrape(ctx)
	if err != nil {
		return err
	}
	n, ok := m.sum("sluice_pending_items")
	if !ok {
		return fmt.Errorf("no metric sluice_pending_items at the %s", when)
	}
	b.report.bound("e", "items not pending ("+when+")", Bound{Value: float64(b.pending) - n, Unit: "items"})
	return nil
}

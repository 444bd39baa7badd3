package bench

import (
	"context"
	"time"
)

// deadlines is scenario d: how late batches come whose deadline has closed
// them, with many groups open.
//
// Of every four events, two open a group that gets no other and leaves when it
// is idle; one opens a group, and the last is the second of one that was opened
// four units before, which leaves when its wait is over. With deadlines of six
// and eight units that keeps open, per unit, five times as many groups as there
// are events in a second.
func (b *bench) deadlines(ctx context.Context) error {
	u := b.deadlineUnit
	set := settings{items: 50, bytes: 256 << 10, idle: 6 * u, wait: 8 * u}
	s, err := b.stage(ctx, set)
	if err != nil {
		return err
	}
	defer s.clear()
	p, _, err := s.serve(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	load := Load{
		URL: p.url(pathOf(1)), Conns: b.conns, PerPost: 1, Size: b.size,
		Key:  doubledLater(uint64(b.deadlineRate * (4 * u).Seconds() / 4)),
		Rate: b.deadlineRate, Warmup: set.wait, Duration: 2 * b.duration,
	}
	b.sayf("d: %v of load", load.Warmup+load.Duration)
	sent, err := load.Run(ctx)
	if err := sentFault(sent, err); err != nil {
		return err
	}
	ended, during := time.Now(), s.sink.Counts().Delivered
	open, err := p.scrape(ctx)
	if err != nil {
		return err
	}
	lost := s.sink.Drain(ctx, sent, b.patience+set.wait)
	b.addLateness(s.sink.Lateness(sent.Begun, ended.Add(set.wait)), s.sink.Lateness(sent.Begun.Add(set.wait), ended))
	d := delivery{}
	d.add(&turn{sent: sent, counts: s.sink.Counts(), during: during, lost: lost})
	b.addDelivery("d", &d)
	return b.noteOwnLateness(ctx, p, open)
}

// doubledLater gives every fourth event the group that was opened lag cycles
// of four events before.
func doubledLater(lag uint64) func(int, uint64) uint64 {
	return func(_ int, id uint64) uint64 {
		cycle, place := id/4, id%4
		switch {
		case place < 3:
			return 4*cycle + place
		case cycle < lag:
			return 4*cycle + place // nothing to double yet
		default:
			return 4*(cycle-lag) + 2
		}
	}
}

// earlyBy is how much before its deadline, by the load's clock, a batch may
// come: times are kept in whole milliseconds, at both ends of a deadline.
const earlyBy = 2 * time.Millisecond

// addLateness reports on all batches that a deadline closed, sorted by their
// lateness, and on those in the steady state.
func (b *bench) addLateness(all, steady []time.Duration) {
	early := 0
	for early < len(all) && all[early] < -earlyBy {
		early++
	}
	b.report.bound("d", "lateness of deadlines, p99", Bound{Value: millis(quantile(steady, 0.99)), Limit: ceilingLateness, Unit: "ms"})
	b.report.bound("d", "batches before their deadline", Bound{Value: float64(early), Unit: "batches"})
	b.report.bound("d", "batches seen", Bound{Value: float64(len(steady)), Limit: 1, Unit: "batch", AtLeast: true})
}

// noteOwnLateness adds what sluice says itself.
func (b *bench) noteOwnLateness(ctx context.Context, p *process, open metrics) error {
	if n, ok := open.sum("sluice_groups"); ok {
		b.report.notef("d", "%.0f groups open at the end of the load", n)
	}
	m, err := p.scrape(ctx)
	if err != nil {
		return err
	}
	if bound, ok := m.quantile("sluice_lateness_seconds", 0.99); ok {
		b.report.notef("d", "p99 at most %.2f of the bound by its own sluice_lateness_seconds", bound*1000/ceilingLateness)
	}
	return nil
}

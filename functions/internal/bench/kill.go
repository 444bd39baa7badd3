package bench

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// killed is scenario g: kill -9 under load, several times in a row on one
// folder. Everything accepted before, between and after must be delivered, and
// what is delivered twice must come under the same id.
func (b *bench) killed(ctx context.Context) error {
	s, err := b.stage(ctx, settings{items: 50, bytes: 256 << 10, idle: b.close, wait: b.close})
	if err != nil {
		return err
	}
	defer s.clear()
	load := b.load(1)
	load.Warmup, load.Duration = 0, 0 // until it is called off
	load.URL = "http://" + s.addr + pathOf(1)
	load.Progress = new(atomic.Uint64)
	loading, enough := context.WithCancel(ctx)
	defer enough()
	result := make(chan *Sent, 1)
	var loadErr error
	go func() {
		defer close(result)
		var sent *Sent
		if sent, loadErr = load.Run(loading); loadErr == nil {
			result <- sent
		}
	}()
	p, err := b.killInARow(ctx, s, load.Progress)
	enough()
	sent := <-result
	if err != nil {
		return err
	}
	defer p.stop()
	if loadErr != nil {
		return loadErr
	}
	lost := s.sink.Drain(ctx, sent, b.patience+b.close)
	c := s.sink.Counts()
	what := fmt.Sprintf("accepted but not delivered, %d kill -9 in a row", b.kills)
	b.report.bound("g", what, Bound{Value: float64(lost), Unit: "events"})
	b.report.bound("g", "doubled under another webhook-id", Bound{Value: float64(c.Strayed), Unit: "events"})
	b.report.bound("g", "mixed or damaged", Bound{Value: float64(c.Mixed + c.Damaged), Unit: "batches"})
	b.report.bound("g", "accepted under the kills", Bound{Value: float64(sent.Accepted), Limit: 1, Unit: "event", AtLeast: true})
	b.report.notef("g", "%d events accepted, %d delivered, %d doubled; %d requests broken by the kills", sent.Accepted, c.Delivered, c.Doubled, sent.Broken)
	return ctx.Err()
}

// killInARow starts the stage's sluice, and kills and starts it again under
// the load that is going on, each time when it has accepted something. It
// returns the last one, still under load.
func (b *bench) killInARow(ctx context.Context, s *stage, accepted *atomic.Uint64) (*process, error) {
	for n := 0; ; n++ {
		before := accepted.Load()
		p, _, err := s.serve(ctx)
		if err != nil {
			return nil, err
		}
		for wait := b.duration / 2; pause(ctx, wait); wait = time.Millisecond {
			if accepted.Load() > before || p.over() {
				break
			}
		}
		if err := ctx.Err(); err != nil || p.over() {
			p.kill()
			return nil, cmp.Or(err, p.fault("ended under load"))
		}
		if n == b.kills {
			return p, nil
		}
		b.sayf("g: kill %d of %d", n+1, b.kills)
		p.kill()
	}
}

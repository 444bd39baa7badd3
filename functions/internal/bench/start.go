package bench

import (
	"context"
	"os"
	"time"
)

// start is scenario f: the size of the binary, and the time to ready on an
// empty folder.
func (b *bench) start(ctx context.Context) error {
	info, err := os.Stat(b.binary)
	if err != nil {
		return err
	}
	b.report.bound("f", "size of the binary", Bound{Value: float64(info.Size()) / 1e6, Limit: ceilingBinary, Unit: "MB"})
	var times []float64
	for range b.starts {
		took, err := b.startOnce(ctx)
		if err != nil {
			return err
		}
		times = append(times, millis(took))
	}
	b.report.bound("f", "ready on an empty folder", Bound{Value: median(times), Limit: ceilingStart, Unit: "ms"})
	return nil
}

func (b *bench) startOnce(ctx context.Context) (time.Duration, error) {
	s, err := b.stage(ctx, settings{items: 50, bytes: 256 << 10, idle: b.close, wait: b.close})
	if err != nil {
		return 0, err
	}
	defer s.clear()
	p, took, err := s.serve(ctx)
	if err != nil {
		return 0, err
	}
	p.stop()
	return took, nil
}

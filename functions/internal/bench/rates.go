package bench

import (
	"context"
	"fmt"
)

// single is scenario a: one event per POST, deliveries going on.
func (b *bench) single(ctx context.Context) error {
	const what = "1 event per POST"
	load := b.load(1)
	rate, err := b.compare(ctx, "a", (*Sent).Rate, []entrant{
		{what, bareServer, load}, {what, durableServer, load}, {what, sluice, load},
	}, func(ratio, _ float64) Bound {
		return Bound{Value: ratio, Limit: floorSingle, Unit: "× bare", AtLeast: true}
	})
	b.rate = rate
	return err
}

// batches is scenario b: many events per POST, in units of the bare server's
// rate with one per POST.
func (b *bench) batches(ctx context.Context) error {
	what := fmt.Sprintf("%d events per POST", b.batch)
	load := b.load(b.batch)
	_, err := b.compare(ctx, "b", (*Sent).Rate, []entrant{
		{"1 event per POST", bareServer, b.load(1)},
		{what, bareServer, load}, {what, durableServer, load}, {what, sluice, load},
	}, func(ratio, _ float64) Bound {
		return Bound{Value: ratio, Limit: floorBatch, Unit: "× bare", AtLeast: true}
	})
	return err
}

// acks is scenario c: time to the answer at a third of the load that sluice
// takes, in an open loop.
func (b *bench) acks(ctx context.Context) error {
	load := b.load(1)
	if b.rate == 0 {
		t, err := b.turn(ctx, entrant{server: sluice, load: load})
		if err != nil {
			return err
		}
		b.rate = t.sent.Rate()
	}
	load.Rate = b.rate / 3
	const what = "p99 of the answer at a third of that load"
	p99 := func(s *Sent) float64 { return millis(quantile(s.Latencies, 0.99)) }
	_, err := b.compare(ctx, "c", p99, []entrant{
		{what, bareServer, load}, {what, sluice, load},
	}, func(_, value float64) Bound {
		return Bound{Value: value, Limit: ceilingAck, Unit: "ms"}
	})
	return err
}

// load is the load of scenarios a, b, c and g.
func (b *bench) load(perPost int) Load {
	return Load{
		Conns: b.conns, PerPost: perPost, Size: b.size, Key: keysOf(b.keys, b.conns),
		Warmup: b.warmup, Duration: b.duration,
	}
}

// entrant is a server and the load it is measured under.
type entrant struct {
	what   string
	server string
	load   Load
}

// compare gives each entrant a turn in each round, and reports their values as
// medians of the ratios to the first entrant's value of the same round. bound
// makes sluice's bound of its ratio and the median of its values, which is
// also returned.
func (b *bench) compare(ctx context.Context, scenario string, value func(*Sent) float64,
	entrants []entrant, bound func(ratio, value float64) Bound,
) (float64, error) {
	values := make([][]float64, len(entrants))
	var all delivery
	for round := range b.rounds {
		for i, e := range entrants {
			b.sayf("%s: round %d of %d: %s, %s", scenario, round+1, b.rounds, serverNames[e.server], e.what)
			t, err := b.turn(ctx, e)
			if err != nil {
				return 0, err
			}
			values[i] = append(values[i], value(t.sent))
			all.add(t)
		}
	}
	var own float64
	for i, e := range entrants {
		row := Row{Scenario: scenario, What: e.what, Server: serverNames[e.server], ToBare: medianRatio(values[i], values[0])}
		if e.server == sluice {
			own = median(values[i])
			limit := bound(row.ToBare, own)
			row.Bound = &limit
		}
		b.report.add(row)
	}
	b.addDelivery(scenario, &all)
	return own, nil
}

// medianRatio is the median of values in units of the other ones, pair by pair.
func medianRatio(values, unit []float64) float64 {
	ratios := make([]float64, len(values))
	for i, v := range values {
		ratios[i] = v / unit[i]
	}
	return median(ratios)
}

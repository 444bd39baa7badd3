package dynamo_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/memory"
)

// bill is the whole core on the store, with a timer and a queue in memory.
type bill struct {
	*rig

	hints  []core.Hint
	handed []core.Delivery
	sent   []int // items of each batch

	ingester  *core.Ingester
	checker   *core.Checker
	deliverer *core.Deliverer
	sweeper   *core.Sweeper
}

func newBill(t *testing.T) *bill {
	t.Helper()
	b := &bill{rig: setup(t)}
	catalog, err := core.NewCatalog(&core.Config{
		Store:   core.NewConfig().Store,
		Sources: []core.Source{{Name: "in", Type: core.TypeHTTP, MaxEventBytes: core.MiB}},
		Destinations: []core.Destination{{
			Name: "out", Type: core.TypeStdout, Format: core.FormatNDJSON, Timeout: 15 * time.Second, Concurrency: 16,
			Retry: core.RetryPolicy{MaxAttempts: 20, Initial: time.Second, Max: 15 * time.Minute},
		}},
		Buffers: []core.Buffer{{
			Name: "b", From: []string{"in"}, To: "out", GroupBy: "{{ .json.k }}", Concurrency: 1, Shards: 1,
			Batch:    core.BatchConfig{MaxItems: 50, MaxBytes: 256 * core.KiB, IdleTimeout: 5 * time.Second, MaxWait: 15 * time.Second},
			Overflow: core.OverflowConfig{MaxBytes: core.MiB},
		}},
	})
	require.NoError(t, err)
	ids := 0
	ports := core.Ports{
		Store: b.Store, Timer: noted{b}, Queue: noted{b}, DeadLetters: memory.New().DeadLetters(), Clock: b.clock,
		Rand:   rand.New(rand.NewPCG(1, 2)),
		Sender: func(string) core.Sender { return noted{b} },
		IDs: core.IDsFunc(func() string {
			ids++
			return fmt.Sprintf("01ARZ3NDEKTSV4RRFFQ6%06d", ids)
		}),
	}
	b.ingester = core.NewIngester(catalog, ports)
	b.checker = core.NewChecker(catalog, ports)
	b.deliverer = core.NewDeliverer(catalog, ports)
	b.sweeper = core.NewSweeper(catalog, ports)
	return b
}

// noted is the timer, the queue and the destination of a bill.
type noted struct{ b *bill }

func (n noted) Arm(_ context.Context, h core.Hint) error {
	n.b.hints = append(n.b.hints, h)
	return nil
}

func (n noted) Hand(_ context.Context, d core.Delivery) error {
	n.b.handed = append(n.b.handed, d)
	return nil
}

func (n noted) Send(_ context.Context, batch *core.Batch) core.Response {
	n.b.sent = append(n.b.sent, len(batch.Items))
	return core.Response{Status: 200}
}

// post sends n events of about 900 bytes, as JSON of orders looks, for one group.
func (b *bill) post(key string, n int) {
	b.t.Helper()
	events := make([]core.Event, n)
	rnd := rand.New(rand.NewPCG(7, uint64(n)))
	for i := range events {
		body := fmt.Sprintf(`{"k":%q,"type":"order.created","id":"%016x","customer":{"id":%d,"country":"DE","segment":"retail"},"lines":[`, key, rnd.Uint64(), rnd.IntN(1e6))
		for line := 0; len(body) < 830; line++ {
			body += fmt.Sprintf(`{"sku":"SKU-%06d","quantity":%d,"price":"%d.%02d","currency":"EUR"},`, rnd.IntN(1e6), rnd.IntN(9)+1, rnd.IntN(900), rnd.IntN(100))
		}
		body += `{"sku":"SHIPPING"}],"total":"99.99"}`
		events[i] = core.Event{ContentType: "application/json", Body: []byte(body)}
	}
	_, err := b.ingester.Ingest(b.ctx, "in", events)
	require.NoError(b.t, err)
}

// work delivers what was handed over.
func (b *bill) work() {
	b.t.Helper()
	for len(b.handed) > 0 {
		d := b.handed[0]
		b.handed = b.handed[1:]
		more, err := b.deliverer.Deliver(b.ctx, d)
		require.NoError(b.t, err)
		if more {
			b.handed = append(b.handed, core.Delivery{Ref: d.Ref, Destination: d.Destination})
		}
	}
}

func TestCostOfOneEvent(t *testing.T) {
	b := newBill(t)
	for range 3 { // it opens the group, or does not: writes to indexes come on top, and the stand-in counts none
		b.meter.Reset()
		b.post("k", 1)
		u := b.meter.Usage()
		require.Equal(t, 2, u.Requests)
		require.InDelta(t, 2, u.Write, 0)
		require.Zero(t, u.Read)
	}
}

func TestCostOfManyEvents(t *testing.T) {
	b := newBill(t)
	b.post("k", 1)
	b.meter.Reset()
	b.post("k", 100)
	u := b.meter.Usage()
	t.Logf("%d requests, %.2f units an event", u.Requests, u.Write/100)
	require.Equal(t, 2, u.Requests)
	require.LessOrEqual(t, u.Write, 40.0)
}

func TestCostOfDelivery(t *testing.T) {
	for _, c := range []struct {
		name            string
		posts, size     int
		reads, requests int
	}{
		{"full by one request, nothing seen", 1, 50, 1, 4},
		{"by its time, as the checker has seen it", 1, 49, 1, 4},
		{"by its time, of 49 requests", 49, 1, 1, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBill(t)
			for range c.posts {
				b.post("k", c.size)
			}
			b.meter.Reset()
			if len(b.handed) == 0 {
				b.clock.pass(5 * time.Second)
				require.Len(t, b.hints, 1)
				require.NoError(t, b.checker.Check(b.ctx, b.hints[0]))
				require.Len(t, b.handed, 1)
				require.NotNil(t, b.handed[0].Seen)
			}
			b.work()
			require.Equal(t, []int{c.posts * c.size}, b.sent)
			ops := b.meter.Operations()
			require.Equal(t, c.requests, b.meter.Usage().Requests, "%v", ops)
			require.Equal(t, c.reads, ops["GetItem"].Requests)
			require.Equal(t, 1, ops["Query"].Requests)
			require.Equal(t, 2, ops["UpdateItem"].Requests)
			g := b.group(keyed("k"))
			require.True(t, g.Empty())
		})
	}
}

func TestCostOfSweep(t *testing.T) {
	var costs []int
	b := newBill(t)
	for _, idle := range []int{10, 290} {
		for i := range idle {
			key := fmt.Sprintf("%d-%d", idle, i)
			p := policy()
			b.put(keyed(key), p, "x")
			held, _ := b.claim(keyed(key), 1, p)
			b.ack(keyed(key), held, p)
		}
		b.meter.Reset()
		n, err := b.sweeper.Sweep(b.ctx)
		require.NoError(t, err)
		require.Zero(t, n)
		costs = append(costs, b.meter.Usage().Requests)
	}
	require.Equal(t, []int{32, 32}, costs)
	require.Zero(t, b.meter.Of("Scan").Requests)
}

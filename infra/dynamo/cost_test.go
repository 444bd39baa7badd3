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
	fails  int   // how many sends are refused for now

	ingester  *core.Ingester
	checker   *core.Checker
	deliverer *core.Deliverer
	sweeper   *core.Sweeper
	flusher   *core.Flusher
}

func newBill(t *testing.T, change ...func(*core.Buffer)) *bill {
	t.Helper()
	b := &bill{rig: setup(t)}
	config := &core.Config{
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
	}
	for _, f := range change {
		f(&config.Buffers[0])
	}
	catalog, err := core.NewCatalog(config, nil)
	require.NoError(t, err)
	ids := 0
	ports := core.Ports{
		Store: b.Store, Timer: noted{b}, Queue: noted{b}, DeadLetters: memory.New().DeadLetters(), Clock: b.clock,
		Coordinator: b.Store, Shared: true,
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
	b.flusher = core.NewFlusher(catalog, ports, &core.Cadence{})
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
	if n.b.fails > 0 {
		n.b.fails--
		return core.Response{Status: 503}
	}
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

// TestCostOfDedupe: one unit for each event, and one for each part, which is one
// request; a double costs the refused write and a reading.
func TestCostOfDedupe(t *testing.T) {
	b := newBill(t, func(b *core.Buffer) { b.Dedupe = 10 * time.Minute })
	for n, most := range map[int]float64{1: 2, 100: 40} { // what they cost without
		b.meter.Reset()
		b.post("k", n)
		u := b.meter.Usage()
		t.Logf("%d events: %d requests, %.2f units an event", n, u.Requests, u.Write/float64(n))
		require.Equal(t, 2+n+1, u.Requests)
		require.LessOrEqual(t, u.Write, most+float64(n)+1)
		require.Zero(t, u.Read)
	}
	double := parts(keyed("k"), policy(), "x")
	double[0].Dedupe = time.Minute
	b.Store = b.open(&carrying{API: b.client})
	b.putAll(double)
	b.meter.Reset()
	require.Len(t, b.putAll(double).Doubles, 1)
	ops := b.meter.Operations()
	require.Equal(t, 1, ops["PutItem"].Requests, "%v", ops)
	require.Equal(t, 1+1, ops["GetItem"].Requests, "the ticket, and what the stand-in's refusal does not carry")
	require.Equal(t, 3, b.meter.Usage().Requests)
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

func minutes(b *core.Buffer) {
	w := core.NewWindow()
	b.Window = &w
}

func counted(b *core.Buffer) {
	minutes(b)
	b.Fold = []core.FoldColumn{{Name: "n", Expr: "count"}}
}

// TestCostOfWindow: one update more than a delivery, which closes it, and one
// for each batch of rows but the last.
func TestCostOfWindow(t *testing.T) {
	for _, c := range []struct {
		name    string
		buffer  func(*core.Buffer)
		keys    int
		sent    []int
		updates int
	}{
		{"as it is", minutes, 1, []int{49}, 3},
		{"one row", counted, 1, []int{1}, 3},
		{"60 rows", counted, 60, []int{50, 10}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBill(t, c.buffer)
			for i := range c.keys {
				b.post(fmt.Sprint(i), max(1, 49/c.keys))
			}
			require.Len(t, b.hints, 1)
			b.clock.pass(2 * time.Minute)
			b.meter.Reset()
			require.NoError(t, b.checker.Check(b.ctx, b.hints[0]))
			b.work()
			require.Equal(t, c.sent, b.sent)
			ops := b.meter.Operations()
			require.Equal(t, c.updates, ops["UpdateItem"].Requests, "%v", ops)
			require.Equal(t, 1, ops["GetItem"].Requests)
			require.Equal(t, 1, ops["Query"].Requests)
			require.Equal(t, c.updates+2, b.meter.Usage().Requests)
		})
	}
}

// TestCostOfTurn: a reading and a write to take it, and the same to give it back.
func TestCostOfTurn(t *testing.T) {
	b := newBill(t, func(b *core.Buffer) { b.FlushEvery = time.Minute })
	b.meter.Reset()
	r, err := b.flusher.FlushBuffer(b.ctx, "b", core.FlushOptions{})
	require.NoError(t, err)
	require.NoError(t, r.Err)
	require.False(t, r.Skipped)
	ops := b.meter.Operations()
	require.Equal(t, 2, ops["GetItem"].Requests)
	require.Equal(t, 2, ops["PutItem"].Requests)
	require.Equal(t, 32, ops["Query"].Requests, "the indexes")
	require.Equal(t, 36, b.meter.Usage().Requests)
}

// TestCostOfLargeWindow: what is read of it grows as it does, each time it is read.
func TestCostOfLargeWindow(t *testing.T) {
	const n, page = 20_000, 1000
	b := newBill(t, counted)
	for range n / page {
		b.post("k", page)
	}
	b.clock.pass(2 * time.Minute)
	b.fails = 1
	b.handed = []core.Delivery{{Ref: b.hints[0].Ref, Destination: "out"}}
	for _, what := range []string{"pending", "claimed"} {
		b.meter.Reset()
		b.work()
		queries := b.meter.Of("Query").Requests
		t.Logf("%s: %d queries", what, queries)
		require.LessOrEqual(t, queries, n/page*(page/256+3), what)
		b.clock.pass(time.Hour)
		b.handed = []core.Delivery{{Ref: b.hints[0].Ref, Destination: "out"}}
	}
	require.Equal(t, []int{1}, b.sent)
}

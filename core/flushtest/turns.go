package flushtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// turnTests are about processes that flush one buffer.
var turnTests = []test{
	{"in every turn exactly one ships", true, func(t *testing.T, p *probe) {
		const processes, turns = 4, 12
		all := make([]*process, processes)
		for i := range all {
			all[i] = p.process()
		}
		for range turns {
			p.put("b", "k1", "k2", "k3")
			var mu sync.Mutex
			shipped := 0
			p.race(processes, func(i int) {
				r, err := all[i].flusher.FlushBuffer(t.Context(), "b", core.FlushOptions{})
				mu.Lock()
				defer mu.Unlock()
				if err == nil && r.Err == nil && !r.Skipped && r.Rows > 0 {
					shipped++
				}
			})
			// one that came while another, which shipped nothing, was under way was turned away
			require.Equal(t, 1, shipped)
			require.Len(t, p.taken(), 3)
			for _, f := range all {
				require.Equal(t, floor, f.wait("b"))
			}
			p.pass(floor)
		}
	}},
	{"each process at its own pace", true, func(t *testing.T, p *probe) {
		const processes = 3
		all := make([]*process, processes)
		for i := range all {
			all[i] = p.process()
		}
		last := start - core.Millis(time.Hour.Milliseconds())
		n := 0
		for i := range 90 { // each of them calls every 30 s, a third of that after the one before
			p.put("b", "k")
			if r := all[i%processes].flush("b", core.FlushOptions{}); !r.Skipped {
				require.GreaterOrEqual(t, p.clock.Now().Sub(last), floor)
				last = p.clock.Now()
				n++
			}
			p.pass(10 * time.Second)
		}
		require.Equal(t, 15, n, "one a minute")
	}},
	{"a holder that dies delays others by the lease of its turn", true, func(t *testing.T, p *probe) {
		p.put("b", "k", "k")
		p.dies(p.process(), "b", 1)
		p.pass(turnLease - time.Millisecond)
		r := p.here.flush("b", core.FlushOptions{})
		require.True(t, r.Skipped)
		require.Equal(t, core.SkippedCadence, r.Reason)
		p.pass(time.Millisecond)
		r = p.here.flush("b", core.FlushOptions{})
		require.NoError(t, r.Err)
		require.Equal(t, &core.Released{Claims: 1, Rows: 2}, r.Recovered)
		require.Equal(t, 2, r.Rows)
		require.Equal(t, floor, p.there.wait("b"))
	}},
	{"a flush that writes nothing gives its turn back", true, func(t *testing.T, p *probe) {
		p.here.ships("b", 0)
		require.Zero(t, p.there.wait("b"))
		p.put("b", "k")
		p.answers(fail)
		r := p.here.flush("b", core.FlushOptions{})
		require.Error(t, r.Err)
		require.Equal(t, 1, r.Rows)
		require.Nil(t, r.Written)
		p.answers(nil)
		require.Zero(t, p.here.wait("b"))
		require.Zero(t, p.there.wait("b"))
		p.put("b", "k")
		p.there.ships("b", 1)
	}},
	{"a forced flush is recorded, beside a turn that another holds", true, func(t *testing.T, p *probe) {
		p.put("b", "k1")
		p.dies(p.process(), "b", 1)
		p.pass(time.Second)
		p.put("b", "k2")
		require.Equal(t, 1, p.here.flush("b", core.FlushOptions{Force: true}).Rows)
		require.Equal(t, ", last 0s, held", p.record("b"))
		p.pass(turnLease - time.Second)
		require.Zero(t, p.there.wait("b"), "its hold has ended, and the interval is over")
	}},
	{"a forced flush that writes nothing leaves the turn alone", true, func(t *testing.T, p *probe) {
		require.Zero(t, p.here.flush("b", core.FlushOptions{Force: true}).Rows)
		require.Zero(t, p.there.wait("b"))
	}},
	{"a flush cut short gives its turn back", true, func(t *testing.T, p *probe) {
		p.put("b", "k1", "k2", "k3", "k4", "k5", "k6")
		ctx, cancel := context.WithCancel(t.Context())
		p.answers(func(*core.Batch) core.Response {
			cancel()
			return core.Response{Status: 200}
		})
		r, err := p.here.flusher.FlushBuffer(ctx, "b", core.FlushOptions{})
		require.NoError(t, err)
		require.Error(t, r.Err)
		require.Equal(t, core.Unavailable, core.CodeOf(r.Err))
		require.NotNil(t, r.Written)
		require.Equal(t, len(p.taken()), r.Written.Rows)
		require.Less(t, r.Rows, 6)
		require.Zero(t, p.here.wait("b"))
		require.Zero(t, p.there.wait("b"))
		p.there.ships("b", 6-r.Rows)
	}},
}

// race runs fn many times at once.
func (p *probe) race(n int, fn func(i int)) {
	var racing sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		racing.Go(func() {
			<-begin
			fn(i)
		})
	}
	close(begin)
	racing.Wait()
}

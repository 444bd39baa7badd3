package flushtest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// crashTests are about flushes that end in the middle, and go on in another process.
var crashTests = []test{
	{"the claims of a dead process are sent again as they are", false, func(t *testing.T, p *probe) {
		p.put("b", "k1", "k1", "k1")
		first := p.dies(p.process(), "b", 1)
		p.put("b", "k1")
		p.restart()
		if !p.h.Abandons {
			p.pass(turnLease)
		}
		r := p.here.ships("b", 4)
		require.Equal(t, &core.Released{Claims: 1, Rows: 2}, r.Recovered)
		sent := p.taken()
		require.Len(t, sent, 2)
		same(t, first, &sent[0])
	}},
	{"a window that has shipped stays closed", false, func(t *testing.T, p *probe) {
		p.pass(-time.Second)
		p.put("w", "r1", "r2", "r3")
		p.pass(time.Second)
		require.Equal(t, 1, p.here.flush("w", core.FlushOptions{Final: true, Force: true}).Buckets)
		p.restart()
		p.pass(-time.Second)
		p.put("w", "late") // the clock is behind: its own window is that one
		p.pass(time.Second)
		require.Zero(t, p.here.flush("w", core.FlushOptions{Final: true, Force: true}).Rows, "its window is open still")
		p.taken()
		p.pass(time.Minute)
		require.Equal(t, 1, p.here.flush("w", core.FlushOptions{Final: true, Force: true}).Rows)
		sent := p.taken()
		require.Len(t, sent, 1)
		require.Equal(t, start, sent[0].Window.Start)
	}},
	{"the rows of a window go on where they were settled", false, func(t *testing.T, p *probe) {
		p.pass(-time.Second)
		p.put("f", "r1", "r2", "r3", "r1", "r4", "r5")
		p.pass(time.Second + 5*time.Second)
		second := p.dies(p.process(), "f", 2)
		require.Equal(t, []string{"r3", "r4"}, rowKeys(t, second))
		p.restart()
		if !p.h.Abandons {
			p.pass(turnLease)
		}
		r := p.here.ships("f", 3)
		require.Equal(t, &core.Released{Claims: 1, Rows: 3}, r.Recovered)
		require.Equal(t, 1, r.Buckets)
		sent := p.taken()
		require.Len(t, sent, 2)
		same(t, second, &sent[0])
		require.Equal(t, []string{"r5"}, rowKeys(t, &sent[1]))
	}},
}

// same holds a batch that is sent again against what was sent before.
func same(t *testing.T, was, is *core.Batch) {
	t.Helper()
	require.Equal(t, was.ID, is.ID)
	require.Equal(t, was.Attempt, is.Attempt, "whether it was sent is not known")
	require.Equal(t, was.Reason, is.Reason)
	require.Equal(t, was.Window, is.Window)
	require.Len(t, is.Items, len(was.Items))
	for i := range was.Items {
		require.Equal(t, was.Items[i].ID, is.Items[i].ID)
		require.Equal(t, string(was.Items[i].Body), string(is.Items[i].Body))
	}
}

// rowKeys are the keys of a batch's rows.
func rowKeys(t *testing.T, b *core.Batch) []string {
	t.Helper()
	var keys []string
	for i := range b.Items {
		var row struct{ Key string }
		require.NoError(t, json.Unmarshal(b.Items[i].Body, &row))
		keys = append(keys, row.Key)
	}
	return keys
}

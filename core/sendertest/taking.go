package sendertest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var takingTests = []test{
	{"a batch of one item", takesOne},
	{"bodies of every kind arrive as the format writes them", takesOddBodies},
	{"a part of a time window arrives as such", takesWindow},
	{"two thousand items arrive in order", takesMany},
	{"batches sent one after another arrive in order", takesInOrder},
	{"batches sent side by side arrive whole", takesConcurrent},
	{"a batch sent again arrives again", takesAgain},
	{"a send only reads its batch", takesAsItIs},
	{"a send whose caller has gone sends nothing", takesNothing},
}

func takesOne(_ *testing.T, p *probe) {
	d, b := p.open(patience), numbered("b", 1)
	p.deliver(&d, b)
	p.arrived(&d, b)
}

func takesOddBodies(_ *testing.T, p *probe) {
	d := p.open(patience)
	b := batch("odd", "", " ", "\n\n", "null", "1e999", `{"a":1,"a":2}`, "{\r\n\"a\":\r\n[1]}\r\n",
		"line\nline", "\ufeff{}", "\x00\xff", "\u2028", `"\ud800"`, strings.Repeat("[", 5_000)+strings.Repeat("]", 5_000),
		strings.Repeat(" ", 1<<18), strings.Repeat("\xff", 100_000))
	p.deliver(&d, b)
	p.arrived(&d, b)
}

func takesWindow(_ *testing.T, p *probe) {
	d, b := p.open(patience), numbered("b", 2)
	b.Reason = core.ReasonWindow
	b.Window = &core.Window{ID: "w-1", Start: start, End: start.Add(time.Minute)}
	p.deliver(&d, b)
	p.arrived(&d, b)
}

func takesMany(_ *testing.T, p *probe) {
	d, b := p.open(patience), numbered("b", 2_000)
	p.deliver(&d, b)
	p.arrived(&d, b)
}

func takesInOrder(_ *testing.T, p *probe) {
	d := p.open(patience)
	var sent []*core.Batch
	for i := range 20 {
		b := numbered(fmt.Sprintf("b%02d", i), 1+i%3)
		p.deliver(&d, b)
		sent = append(sent, b)
	}
	p.arrived(&d, sent...)
}

func takesConcurrent(t *testing.T, p *probe) {
	const senders, each = 16, 4
	d := p.open(patience)
	var sent []*core.Batch
	var all sync.WaitGroup
	for i := range senders {
		mine := make([]*core.Batch, each)
		for j := range mine {
			mine[j] = numbered(fmt.Sprintf("b%02d-%d", i, j), 1+(i+j)%12)
		}
		sent = append(sent, mine...)
		all.Go(func() {
			for _, b := range mine {
				if r := d.Sender.Send(t.Context(), b); core.Classify(&r, nil) != core.Delivered {
					t.Errorf("batch %s: status %d, error %v", b.ID, r.Status, r.Err)
				}
			}
		})
	}
	all.Wait()
	p.arrivedInAnyOrder(&d, sent)
}

func takesAgain(_ *testing.T, p *probe) {
	d, b := p.open(patience), numbered("b", 3)
	p.deliver(&d, b)
	p.deliver(&d, b)
	if p.harness.Replaces {
		p.arrived(&d, b)
		return
	}
	p.arrived(&d, b, b)
}

func takesAsItIs(t *testing.T, p *probe) {
	d, b := p.open(patience), batch("b", "{\n}", "text", "\xff")
	b.Items[0].Headers = []core.Header{{Name: "z", Value: "1"}, {Name: "a", Value: "2"}}
	was := batch("b", "{\n}", "text", "\xff")
	was.Items[0].Headers = []core.Header{{Name: "z", Value: "1"}, {Name: "a", Value: "2"}}
	p.deliver(&d, b)
	require.Equal(t, was, b)
}

func takesNothing(t *testing.T, p *probe) {
	d := p.open(patience)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.fail(ctx, &d, numbered("b", 1), core.Interrupted)
	b := numbered("c", 1)
	p.deliver(&d, b)
	p.arrived(&d, b)
}

package memory

import (
	"slices"

	"sluice/core"
)

// group is a record and its log. The log has an entry for every number from
// first to the record's tail, settled ones in the middle included.
type group struct {
	core.Group
	first uint64 // number of log[0]
	base  int64  // payload bytes before log[0]
	log   []entry
}

type entry struct {
	item   core.Item
	offset int64 // payload bytes of the log up to and including the item
}

// add puts copies of events at the end of the log, under the numbers that the
// record gives them in the same order.
func (g *group) add(events []core.Event) {
	if g.first == 0 {
		g.first = 1
	}
	for i := range events {
		seq, offset := g.first+uint64(len(g.log)), g.base
		if n := len(g.log); n > 0 {
			offset = g.log[n-1].offset
		}
		g.log = append(g.log, entry{
			item:   core.Item{Event: clone(events[i]), Seq: seq},
			offset: offset + events[i].Size(),
		})
	}
}

// trim drops the settled items at the front of the log.
func (g *group) trim() {
	n := 0
	for n < len(g.log) && !g.Live(g.first+uint64(n)) {
		g.base = g.log[n].offset
		n++
	}
	g.first += uint64(n)
	g.log = slices.Delete(g.log, 0, n)
}

// page reads a span.
func (g *group) page(span core.Span) core.Page {
	p := core.Page{End: max(span.From-1, min(span.To, g.first-1))}
	p.Through = g.offset(p.End)
	var bytes int64
	for seq := max(span.From, g.first); seq <= min(span.To, g.Tail); seq++ {
		e := &g.log[seq-g.first]
		if g.Live(seq) {
			bytes += e.item.Size()
			if span.Full(len(p.Items), bytes) {
				break
			}
			p.Items = append(p.Items, core.Item{Event: clone(e.item.Event), Seq: seq})
			p.Offsets = append(p.Offsets, e.offset)
		}
		p.End, p.Through = seq, e.offset
	}
	for seq := max(p.End+1, g.first); seq <= g.Tail; seq++ {
		if g.Live(seq) {
			p.NextAt = g.log[seq-g.first].item.ReceivedAt
			break
		}
	}
	return p
}

// offset is the log's payload bytes up to a number; up to the first one kept,
// if that one lies before it.
func (g *group) offset(seq uint64) int64 {
	n := min(seq+1, g.first+uint64(len(g.log))) // the number after it
	if n <= g.first {
		return g.base
	}
	return g.log[n-1-g.first].offset
}

// claimed is how many items are in claims and not settled.
func (g *group) claimed() int64 {
	var n int64
	for i := range g.Claims {
		c := &g.Claims[i]
		for seq := c.From; seq <= c.To; seq++ {
			if c.Has(seq) {
				n++
			}
		}
	}
	return n
}

// addTo adds the group to its buffer's sums.
func (g *group) addTo(sum *core.BufferStats) {
	sum.Groups++
	sum.Pending += int64(g.Pending())
	sum.Bytes += g.PendingBytes()
	sum.Claimed += g.claimed()
	sum.Held += int64(g.HeldItems())
	if g.FirstAt != 0 && (sum.Oldest == 0 || g.FirstAt < sum.Oldest) {
		sum.Oldest = g.FirstAt
	}
}

// size is the payload of events.
func size(events []core.Event) int64 {
	var n int64
	for i := range events {
		n += events[i].Size()
	}
	return n
}

// clone is a copy that shares nothing with e.
func clone(e core.Event) core.Event {
	e.Headers = slices.Clone(e.Headers)
	e.Body = slices.Clone(e.Body)
	return e
}

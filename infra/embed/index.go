package embed

import (
	"strings"

	"sluice/core"
)

// index is what the store keeps in memory: every group's record, and where
// each of its items lies in the log. Bodies are not.
type index struct {
	segs    *segments
	buffers map[string]*buffer
	closed  closed
	letters letters
	seeing  []*buffer // those that have seen ids
}

// buffer is one buffer's groups, in no order, and their sums.
type buffer struct {
	name   string
	groups map[string]*group
	all    []*group // the same, to walk over in steps

	pending, bytes, claimed int64

	seen *seen // nil: it never looked for doubles
}

// group is one group's record and the places of its items.
type group struct {
	core.Group
	buf   *buffer
	key   string
	slot  int // in buf.all; -1 once it is forgotten
	skip  lsn // a start: log records before it are already in the record
	spans []span
	void  int // places in spans without an item
}

// place is where an item lies; 32 bytes, as there is one for every item.
type place struct {
	seg uint32 // 0: void, because it is settled or lost
	off uint32
	len uint32
	crc uint32
	at  core.Millis // arrival
	cum int64       // the group's payload bytes up to and including it
}

// span is a run of places with consecutive numbers.
type span struct {
	first  uint64
	before int64 // the group's payload bytes before it
	places []place
	cut    int // places dropped from the front since its array was made
}

func newIndex(segs *segments) *index {
	return &index{segs: segs, buffers: map[string]*buffer{}, closed: newClosed(), letters: newLetters()}
}

func (ix *index) buffer(name string) *buffer {
	b := ix.buffers[name]
	if b == nil {
		b = &buffer{name: strings.Clone(name), groups: map[string]*group{}}
		ix.buffers[b.name] = b
	}
	return b
}

// held is how many items a buffer has, with those that are held for it.
func (ix *index) held(of string) int64 {
	var n int64
	for _, name := range []string{of, core.Holder(of)} {
		if b := ix.buffers[name]; b != nil {
			n += b.pending + b.claimed
		}
	}
	return n
}

func (ix *index) find(ref core.Ref) *group {
	b := ix.buffers[ref.Buffer]
	if b == nil {
		return nil
	}
	return b.groups[ref.Key]
}

// record is a group's record: of one that is not there, until when it is closed.
// It is not to be changed.
func (ix *index) record(ref core.Ref) core.Group {
	if gr := ix.find(ref); gr != nil {
		return gr.Group
	}
	return core.Group{Closed: ix.closed.until[ix.buffers[ref.Buffer]][ref.Key]}
}

// obtain returns a group, a new one if there is none. Its key is copied: it
// may be part of a whole request.
func (ix *index) obtain(ref core.Ref) (gr *group, fresh bool) {
	b := ix.buffer(ref.Buffer)
	if gr := b.groups[ref.Key]; gr != nil {
		return gr, false
	}
	gr = &group{Group: ix.record(ref), buf: b, key: strings.Clone(ref.Key), slot: len(b.all)}
	b.groups[gr.key] = gr
	b.all = append(b.all, gr)
	return gr, true
}

// forget removes a group. The last one takes its slot: see [cursor].
func (ix *index) forget(gr *group, at lsn) {
	ix.dropAll(gr, at)
	b := gr.buf
	last := b.all[len(b.all)-1]
	b.all[gr.slot], last.slot = last, gr.slot
	b.all[len(b.all)-1] = nil
	b.all = b.all[:len(b.all)-1]
	gr.slot = -1
	delete(b.groups, gr.key)
}

func (ix *index) dropAll(gr *group, at lsn) {
	for i := range gr.spans {
		for j := range gr.spans[i].places {
			if p := &gr.spans[i].places[j]; p.seg != 0 {
				ix.segs.drop(p, at)
			}
		}
	}
	gr.spans, gr.void = nil, 0
}

// count adds a record to its buffer's sums, or takes it out.
func (b *buffer) count(g *core.Group, sign int64) {
	b.pending += sign * int64(g.Pending())
	b.bytes += sign * g.PendingBytes()
	for i := range g.Claims {
		b.claimed += sign * members(&g.Claims[i])
	}
}

func members(c *core.Claim) int64 { return int64(c.To-c.From+1) - int64(c.Done.Len()) }

// emptied notes that a group has a record with nothing pending or in flight.
func (ix *index) emptied(b *buffer, key string, g *core.Group) {
	if g.Closed == 0 {
		ix.closed.remove(b, key)
		return
	}
	ix.closed.add(b, key, g.Closed)
}

// replace sets a group's record, settles the items that are no longer live,
// and forgets the group when nothing is left, but for until when it is closed. It
// takes time for what changed, not for what there is. at is the end of the log
// with this change.
func (ix *index) replace(gr *group, next core.Group, at lsn) {
	was := gr.Group
	gr.buf.count(&was, -1)
	gr.Group = next
	if next.Empty() {
		ix.forget(gr, at)
		ix.emptied(gr.buf, gr.key, &next)
		return
	}
	gr.buf.count(&next, 1)
	if was.Life != next.Life {
		ix.dropAll(gr, at)
		return
	}
	for i := range was.Claims {
		if c := &was.Claims[i]; !keeps(&next, c) {
			ix.settle(gr, c.From, c.To, at)
		}
	}
	if next.Head > was.Head && !covers(&next, was.Head+1, next.Head) {
		ix.settle(gr, was.Head+1, min(next.Head, was.Tail), at)
	}
	gr.trim()
}

// keeps reports whether g still has all the members of a claim.
func keeps(g *core.Group, c *core.Claim) bool {
	for i := range g.Claims {
		if n := &g.Claims[i]; n.From == c.From && n.To == c.To && string(n.Done) == string(c.Done) {
			return true
		}
	}
	return false
}

// covers reports whether one claim of g has all the items from a to b.
func covers(g *core.Group, a, b uint64) bool {
	for i := range g.Claims {
		if c := &g.Claims[i]; c.From <= a && b <= c.To && len(c.Done) == 0 {
			return true
		}
	}
	return false
}

// settle makes void what is no longer live between two numbers.
func (ix *index) settle(gr *group, from, to uint64, at lsn) {
	for seq := from; seq <= to; seq++ {
		if !gr.Live(seq) {
			ix.discard(gr, seq, at)
		}
	}
}

// discard makes a number void.
func (ix *index) discard(gr *group, seq uint64, at lsn) {
	if p := gr.at(seq); p != nil && p.seg != 0 {
		ix.segs.drop(p, at)
		p.seg = 0
		gr.void++
	}
}

// file notes where an item of so many payload bytes lies, or that it has moved.
func (ix *index) file(gr *group, seq uint64, p place, size int64, at lsn) {
	ix.segs.keep(&p)
	if old := gr.at(seq); old != nil {
		if old.seg != 0 {
			ix.segs.drop(old, at)
		} else {
			gr.void--
		}
		*old = p
		return
	}
	i := len(gr.spans)
	for i > 0 && gr.spans[i-1].first > seq {
		i--
	}
	if i > 0 && gr.spans[i-1].end() == seq {
		sp := &gr.spans[i-1]
		sp.places = append(sp.places, p)
		return
	}
	gr.spans = append(gr.spans, span{})
	copy(gr.spans[i+1:], gr.spans[i:])
	gr.spans[i] = span{first: seq, before: p.cum - size, places: append(make([]place, 0, 2), p)}
}

package embed

import (
	"encoding/binary"

	"sluice/core"
)

// filed is an item of a group as a record's meta lists it.
type filed struct {
	seq  uint64
	len  uint32 // of its payload in the record
	crc  uint32 // of that
	at   core.Millis
	cum  int64 // the group's payload bytes up to and including it
	size int64 // its own
}

// appendFiled lists an item of g; seq is told by its distance from prev.
func appendFiled(b []byte, g *core.Group, prev uint64, f *filed) []byte {
	b = binary.AppendUvarint(b, f.seq-prev)
	b = binary.AppendUvarint(b, uint64(f.len))
	b = appendFixed32(b, f.crc)
	b = binary.AppendVarint(b, int64(f.at-g.LastAt))
	b = binary.AppendVarint(b, g.TailBytes-f.cum)
	return binary.AppendVarint(b, f.size)
}

func (r *reader) filed(g *core.Group, prev uint64) filed {
	return filed{
		seq: prev + r.uint(), len: uint32(r.uint()), crc: r.fixed32(),
		at: g.LastAt + r.millis(), cum: g.TailBytes - r.int(), size: r.int(),
	}
}

// A part of a groups record: the group as it is then, so that no record needs
// an earlier one to make sense, and a list of the items that the record holds.

// appendPart begins a part, which n items follow. dedupe is for how long their
// ids are not to be stored again; 0: nobody cares.
func appendPart(b []byte, gr *group, g *core.Group, n int, dedupe core.Millis) []byte {
	b = appendString(b, gr.buf.name)
	b = appendString(b, gr.key)
	b = appendGroup(b, g)
	return appendNumbers(b, uint64(dedupe), uint64(n))
}

// part is a part of a groups record as it is read back.
type part struct {
	ref    core.Ref
	group  core.Group
	dedupe core.Millis
	items  []filed
}

func (r *reader) part(format uint64) part {
	p := part{ref: core.Ref{Buffer: r.str(), Key: r.str()}, group: r.group(format)}
	if format > 2 {
		p.dedupe = core.Millis(r.uint())
	}
	prev := uint64(0)
	for range r.count() {
		f := r.filed(&p.group, prev)
		if r.bad {
			return part{}
		}
		p.items = append(p.items, f)
		prev = f.seq
	}
	return p
}

// parts takes all the parts of a groups record.
func (r *reader) parts(format uint64) []part {
	parts := make([]part, 0, 1)
	if format < 3 {
		r.count() // of them
	}
	for len(r.b) > 0 {
		parts = append(parts, r.part(format))
	}
	return parts
}

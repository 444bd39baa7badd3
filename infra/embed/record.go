package embed

import (
	"encoding/binary"
	"hash/crc32"
)

// lsn is a place in the log: the segment's generation, then the offset in it.
type lsn uint64

func position(seg uint32, off int64) lsn { return lsn(seg)<<32 | lsn(off) }

func (p lsn) seg() uint32 { return uint32(p >> 32) }
func (p lsn) off() int64  { return int64(uint32(p)) }

// kind says what a record holds.
type kind uint8

const (
	kindGroups1 kind = iota + 1 // as kindGroups, in format 1
	kindLetters                 // dead letters that are filed here
	kindSettled                 // numbers of dead letters that are gone
	kindBegin                   // first record of a segment: the segment before it
	kindEnd                     // last record of a segment: the segment after it
	kindSkip                    // nothing: covers what a torn commit left behind
	kindGroups2                 // as kindGroups, in format 2
	kindGroups                  // groups as they are now, one after the other, with items that are filed here
)

// format is that of what is written. Groups of an earlier format have records of
// another kind, so a log may hold both, and are still read. What a segment's and
// a checkpoint's header say keeps a version that knows only earlier formats from
// opening the store.
//
//	1  groups without windows
//	2  with them, and with what a claim has sent of its rows
//	3  with a claim's destination, and what is held; parts tell the window of
//	   doubles, and are not counted
const format = 3

// A record is a header, its meta, its payloads, and zeros up to a multiple of
// eight bytes. All numbers are little-endian.
//
//	 0  checksum u32   of the rest of the header and the meta, seeded by the place
//	 4  tag u32        of the segment's generation: makes scanning cheap
//	 8  size u32       of the whole record
//	12  meta u32       bytes of meta
//	16  commit u64     number of the commit that wrote it
//	24  kind u8, then seven zeros
//
// Payloads carry their own checksums, which the meta lists: so each can be
// verified alone, and a flipped bit in one costs only that one.
const (
	headerLen = 32
	alignment = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf is CRC-32C.
func sumOf(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func tagOf(seg uint32) uint32 { return seg*0x9E3779B1 ^ 0x51C1CE01 }

// checksum is seeded by the record's place, generation included, so that
// neither the stale bytes of a recycled segment nor a copy of a record inside
// an item ever verify.
func checksum(covered []byte, at lsn) uint32 {
	seed := at.seg()*0x85EBCA6B ^ uint32(at.off())*0xC2B2AE35
	return crc32.Update(seed, castagnoli, covered)
}

// recordSize is the size of a record with so many bytes of meta and payload.
func recordSize(n int) int { return (headerLen + n + alignment - 1) &^ (alignment - 1) }

// seal fills in the header of a record whose meta is in place.
func seal(b []byte, k kind, size, meta int, commit uint64, at lsn) {
	binary.LittleEndian.PutUint32(b[4:], tagOf(at.seg()))
	binary.LittleEndian.PutUint32(b[8:], uint32(size))
	binary.LittleEndian.PutUint32(b[12:], uint32(meta))
	binary.LittleEndian.PutUint64(b[16:], commit)
	binary.LittleEndian.PutUint64(b[24:], uint64(k))
	binary.LittleEndian.PutUint32(b, checksum(b[4:headerLen+meta], at))
}

// record is a verified record.
type record struct {
	kind    kind
	commit  uint64
	at      lsn
	size    int
	meta    []byte
	payload []byte // with the padding; verified one by one
}

// payloadAt is where a record's payloads start in its segment.
func (r *record) payloadAt() int64 { return r.at.off() + headerLen + int64(len(r.meta)) }

// readRecord reads the record at the start of b, which lies at a place; ok is
// false when there is none that verifies.
func readRecord(b []byte, at lsn) (r record, ok bool) {
	if len(b) < headerLen || binary.LittleEndian.Uint32(b[4:]) != tagOf(at.seg()) {
		return record{}, false
	}
	size := uint64(binary.LittleEndian.Uint32(b[8:]))
	meta := uint64(binary.LittleEndian.Uint32(b[12:]))
	if size > uint64(len(b)) || size%alignment != 0 || headerLen+meta > size {
		return record{}, false
	}
	if checksum(b[4:headerLen+meta], at) != binary.LittleEndian.Uint32(b) {
		return record{}, false
	}
	return record{
		kind:    kind(b[24]),
		commit:  binary.LittleEndian.Uint64(b[16:]),
		at:      at,
		size:    int(size),
		meta:    b[headerLen : headerLen+meta],
		payload: b[headerLen+meta : size],
	}, true
}

// nextRecord scans a segment for the next record at or after an offset that
// belongs to no earlier commit than from; ok is false when there is none.
func nextRecord(seg []byte, gen uint32, off int64, from uint64) (r record, ok bool) {
	tag := tagOf(gen)
	for ; off+headerLen <= int64(len(seg)); off += alignment {
		if binary.LittleEndian.Uint32(seg[off+4:]) != tag {
			continue
		}
		if r, ok = readRecord(seg[off:], position(gen, off)); ok && r.commit >= from {
			return r, true
		}
	}
	return record{}, false
}

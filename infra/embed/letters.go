package embed

import (
	"slices"

	"sluice/core"
)

// letters are the dead letters in memory: by id, and by number in the order in
// which they were put.
type letters struct {
	last     uint64 // number given out
	receipts uint64 // leases given out
	byID     map[string]*letter
	order    []*letter // by number; what is gone stays until there is much of it
	gone     int       // of these
}

// letter is one dead letter: what picks it, and where it lies.
type letter struct {
	number  uint64
	id      string
	buffer  string
	place   place
	until   core.Millis // end of its lease: leases end with the process
	receipt uint64      // of its newest lease
	gone    bool
}

func newLetters() letters { return letters{byID: map[string]*letter{}} }

// file notes where a letter lies, or that it has moved.
func (ix *index) fileLetter(f *letter, at lsn) {
	ix.segs.keep(&f.place)
	ls := &ix.letters
	if l := ls.byID[f.id]; l != nil {
		if l.number == f.number {
			ix.segs.drop(&l.place, at)
			l.place = f.place
			return
		}
		ix.removeLetter(l, at) // the record that said so is damaged
	}
	l := *f
	i, _ := ls.search(f.number)
	ls.order = slices.Insert(ls.order, i, &l)
	ls.byID[l.id] = &l
	ls.last = max(ls.last, l.number)
}

// search finds a number, or where it would be.
func (ls *letters) search(number uint64) (int, bool) {
	if n := len(ls.order); n == 0 || ls.order[n-1].number < number {
		return n, false
	}
	return slices.BinarySearchFunc(ls.order, number, func(l *letter, n uint64) int {
		switch {
		case l.number < n:
			return -1
		case l.number > n:
			return 1
		}
		return 0
	})
}

// removeLetter forgets a letter.
func (ix *index) removeLetter(l *letter, at lsn) {
	ls := &ix.letters
	if l.gone {
		return
	}
	ix.segs.drop(&l.place, at)
	l.gone = true
	if ls.byID[l.id] == l {
		delete(ls.byID, l.id)
	}
	if ls.gone++; ls.gone > manyVoid && 2*ls.gone > len(ls.order) {
		ls.order = slices.DeleteFunc(ls.order, func(l *letter) bool { return l.gone })
		ls.gone = 0
	}
}

// appendLetterEntry lists a letter in a record's meta.
func appendLetterEntry(b []byte, l *letter) []byte {
	b = appendNumbers(b, l.number)
	b = appendString(b, l.id)
	b = appendString(b, l.buffer)
	b = appendNumbers(b, uint64(l.place.len))
	return appendFixed32(b, l.place.crc)
}

func (r *reader) letterEntry() letter {
	l := letter{number: r.uint(), id: r.str(), buffer: r.str()}
	l.place.len, l.place.crc = uint32(r.uint()), r.fixed32()
	return l
}

package core

// Bits is a set of small numbers.
type Bits []byte

// Has reports whether i is in the set.
func (b Bits) Has(i int) bool { return i>>3 < len(b) && b[i>>3]&(1<<(i&7)) != 0 }

// With is the set with i added; it may reuse b.
func (b Bits) With(i int) Bits {
	for len(b) <= i>>3 {
		b = append(b, 0)
	}
	b[i>>3] |= 1 << (i & 7)
	return b
}

// Len is how many numbers are in the set.
func (b Bits) Len() int {
	n := 0
	for _, x := range b {
		for ; x != 0; x &= x - 1 {
			n++
		}
	}
	return n
}

// And is the set of what is in both.
func (b Bits) And(c Bits) Bits {
	both := make(Bits, min(len(b), len(c)))
	for i := range both {
		both[i] = b[i] & c[i]
	}
	return both
}

// Without is the set of what is in b and not in c.
func (b Bits) Without(c Bits) Bits {
	rest := append(Bits(nil), b...)
	for i := range min(len(b), len(c)) {
		rest[i] &^= c[i]
	}
	return rest
}

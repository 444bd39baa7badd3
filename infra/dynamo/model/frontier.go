package model

import "iter"

// chunk is how many states a frontier keeps together.
const chunk = 4096

// frontier is a level of a breadth-first search. It gives its memory back
// while it is drained.
type frontier struct {
	n      int
	chunks [][]state
}

func (f *frontier) push(s *state) {
	last := len(f.chunks) - 1
	if last < 0 || len(f.chunks[last]) == chunk {
		f.chunks = append(f.chunks, make([]state, 0, chunk))
		last++
	}
	f.chunks[last] = append(f.chunks[last], *s)
	f.n++
}

func (f *frontier) drain() iter.Seq[*state] {
	return func(yield func(*state) bool) {
		for i := range f.chunks {
			for k := range f.chunks[i] {
				if !yield(&f.chunks[i][k]) {
					return
				}
			}
			f.chunks[i] = nil
		}
	}
}

package timer

import (
	"time"

	"sluice/core"
)

// entry is an armed hint.
type entry struct {
	at    time.Duration // since Timer.start
	index int           // in the heap
	key   key
	hint  core.Hint
}

// key is what a timer keeps one entry of: a group's check, or a claim's due time.
type key struct {
	ref core.Ref
	at  core.Millis // of a claim; 0 for a check
	// behind is how many entries are of lives whose ids are greater. Ids sort
	// by time, but of a clock that may have been set back, so those lives are
	// not known to be newer.
	behind int
}

func keyOf(h *core.Hint) key {
	if h.Check > 0 {
		return key{ref: h.Ref}
	}
	return key{ref: h.Ref, at: h.At}
}

// entries is a heap by time.
type entries []*entry

func (e entries) Len() int           { return len(e) }
func (e entries) Less(i, j int) bool { return e[i].at < e[j].at }

func (e entries) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].index, e[j].index = i, j
}

func (e *entries) Push(x any) {
	x.(*entry).index = len(*e)
	*e = append(*e, x.(*entry))
}

func (e *entries) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*e = old[:len(old)-1]
	return last
}

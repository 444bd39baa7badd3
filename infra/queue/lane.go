package queue

import (
	"slices"

	"sluice/core"
)

// lane is what waits for one destination. Queue.mu guards it.
type lane struct {
	busy    int // deliveries and holds under way
	queued  map[core.Ref]struct{}
	buffers map[string]*fifo // those with something waiting
	turns   fifo             // their names, the one whose turn is next first
	holds   []hold           // the one whose turn is next first
	held    bool             // a hold has had the latest turn
}

// hold waits for a slot. It is told once: whether it has got one, or the queue
// has stopped.
type hold chan bool

func newLane() *lane {
	return &lane{queued: make(map[core.Ref]struct{}), buffers: make(map[string]*fifo)}
}

// waiting reports whether anything waits for a slot.
func (l *lane) waiting() bool { return len(l.queued) > 0 || len(l.holds) > 0 }

// hold takes the next hold, unless it is a delivery's turn: then it returns nil.
func (l *lane) hold() hold {
	l.held = len(l.holds) > 0 && (!l.held || len(l.queued) == 0)
	if !l.held {
		return nil
	}
	h := l.holds[0]
	l.holds = slices.Delete(l.holds, 0, 1)
	return h
}

// drop forgets the deliveries that wait.
func (l *lane) drop() {
	clear(l.queued)
	clear(l.buffers)
	l.turns = fifo{}
}

// refuse tells the holds that wait that they get no slot.
func (l *lane) refuse() {
	for _, h := range l.holds {
		h <- false
	}
	l.holds = nil
}

// push queues a delivery at the end of its buffer's line, unless it waits already.
func (l *lane) push(d core.Delivery) {
	if _, ok := l.queued[d.Ref]; ok {
		return
	}
	l.queued[d.Ref] = struct{}{}
	d.Seen = nil // it ages while it waits, and the store is at hand
	b := l.buffers[d.Ref.Buffer]
	if b == nil {
		b = new(fifo)
		l.buffers[d.Ref.Buffer] = b
		l.turns.push(d)
	}
	b.push(d)
}

// pop takes the next delivery of the buffer whose turn it is.
func (l *lane) pop() (core.Delivery, bool) {
	turn, ok := l.turns.pop()
	if !ok {
		return core.Delivery{}, false
	}
	name := turn.Ref.Buffer
	d, _ := l.buffers[name].pop()
	if l.buffers[name].len() > 0 {
		l.turns.push(turn)
	} else {
		delete(l.buffers, name)
	}
	delete(l.queued, d.Ref)
	return d, true
}

// fifo is a line of deliveries.
type fifo struct {
	head int
	line []core.Delivery
}

func (f *fifo) len() int { return len(f.line) - f.head }

func (f *fifo) push(d core.Delivery) { f.line = append(f.line, d) }

func (f *fifo) pop() (core.Delivery, bool) {
	if f.len() == 0 {
		return core.Delivery{}, false
	}
	d := f.line[f.head]
	f.line[f.head] = core.Delivery{}
	f.head++
	if f.head > len(f.line)/2 { // the moved half pays for itself
		f.line = append(f.line[:0], f.line[f.head:]...)
		f.head = 0
	}
	return d, true
}

package embed

import (
	"container/heap"

	"sluice/core"
)

// closed are the groups that hold nothing, but are closed: of each no more is
// kept than until when it takes no more. They are in no list of groups.
//
// The first append whose time has reached that forgets one. The log has no
// record of it: a start reads the group again, and the next append forgets it
// again, until a checkpoint without it has taken its place.
type closed struct {
	until  map[*buffer]map[string]core.Millis
	ending endings
}

func newClosed() closed { return closed{until: map[*buffer]map[string]core.Millis{}} }

// add keeps until when a group is closed. Its key is kept as it is.
func (c *closed) add(b *buffer, key string, until core.Millis) {
	keys := c.until[b]
	if keys == nil {
		keys = map[string]core.Millis{}
		c.until[b] = keys
	}
	if keys[key] != until {
		keys[key] = until
		heap.Push(&c.ending, ending{until, b, key})
	}
}

// remove forgets a group, if it is kept; its ending then stands for nothing.
func (c *closed) remove(b *buffer, key string) { delete(c.until[b], key) }

// forget forgets what is kept until now.
func (c *closed) forget(now core.Millis) {
	for len(c.ending) > 0 && c.ending[0].until <= now {
		e := heap.Pop(&c.ending).(ending)
		if c.until[e.buf][e.key] == e.until {
			c.remove(e.buf, e.key)
		}
	}
}

// ending is when a group may be forgotten.
type ending struct {
	until core.Millis
	buf   *buffer
	key   string
}

// endings are a heap, the earliest on top.
type endings []ending

// Len implements [heap.Interface].
func (e endings) Len() int { return len(e) }

// Less implements [heap.Interface].
func (e endings) Less(i, j int) bool { return e[i].until < e[j].until }

// Swap implements [heap.Interface].
func (e endings) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements [heap.Interface].
func (e *endings) Push(x any) { *e = append(*e, x.(ending)) }

// Pop implements [heap.Interface].
func (e *endings) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = ending{}
	*e = (*e)[:last]
	return x
}

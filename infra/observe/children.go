package observe

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// maxChildren bounds the series of one metric. Labels are configured names, so
// it is never reached unless somebody makes names up.
const maxChildren = 4096

// other stands for the first label of every series beyond maxChildren.
const other = "other"

// labels are a series' label values in the order of its metric's names; those
// that the metric does not have stay empty.
type labels [4]string

// children finds a metric's series by their labels without a lock: they are
// few and stay, so the table is copied when one is added.
type children[C any] struct {
	names  int // how many labels the metric has
	create func(values ...string) C
	table  atomic.Pointer[map[labels]C]
	adding sync.Mutex
}

func newChildren[C any](names int, create func(values ...string) C) *children[C] {
	c := &children[C]{names: names, create: create}
	c.table.Store(&map[labels]C{})
	return c
}

// get is the series of k.
func (c *children[C]) get(k labels) C {
	if child, ok := (*c.table.Load())[k]; ok {
		return child
	}
	return c.add(k)
}

func (c *children[C]) add(k labels) C {
	c.adding.Lock()
	defer c.adding.Unlock()
	table := *c.table.Load()
	if len(table) >= maxChildren {
		k[0] = other
	}
	if child, ok := table[k]; ok {
		return child
	}
	values := k // the registry refuses what is not UTF-8
	for i := range values {
		values[i] = strings.ToValidUTF8(values[i], "\uFFFD")
	}
	child := c.create(values[:c.names]...)
	table = maps.Clone(table)
	table[k] = child
	c.table.Store(&table)
	return child
}

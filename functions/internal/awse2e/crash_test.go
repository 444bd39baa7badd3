package awse2e

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"sluice/functions/internal/lambdatest"
)

// crashes kills functions at their calls to AWS: before and after each, and
// with the answer lost, once for every call that there is.
type crashes struct {
	only string // the one function that dies; "": any

	mu    sync.Mutex
	done  map[string]bool // by step
	armed chan string     // takes one; nil: no death is called for
}

// fates are what may become of a call, by what a log calls it.
var fates = []struct {
	fate lambdatest.Fate
	name string
}{
	{lambdatest.KillBefore, "killed before"},
	{lambdatest.KillAfter, "killed after"},
	{lambdatest.LoseAnswer, "answer lost"},
}

// repeats is at how many calls of one operation in one invocation a function
// dies. Those behind are of the same loops.
const repeats = 3

// fate decides about a call.
func (c *crashes) fate(call lambdatest.Call) lambdatest.Fate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call.Nth > repeats || c.only != "" && c.only != call.Function {
		return lambdatest.Pass
	}
	for _, f := range fates {
		if c.take(fmt.Sprintf("%s, %s", call, f.name)) {
			return f.fate
		}
	}
	return lambdatest.Pass
}

// take marks a step as died at, unless it is or no death is called for.
func (c *crashes) take(step string) bool {
	if c.armed == nil || c.done[step] {
		return false
	}
	c.done[step] = true
	c.armed <- step
	c.armed = nil
	return true
}

// step is a step that is no call; it reports whether to die there.
func (c *crashes) step(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.take(name)
}

func (c *crashes) arm() (died <-chan string, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	armed := make(chan string, 1)
	c.armed = armed
	return armed, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.armed = nil
	}
}

// steps are those at which something has died.
func (c *crashes) steps() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.done))
}

package embed

// cursor walks over groups in steps, between which the store works on. Every
// group that is there from the first step to the last is seen; one that comes
// or goes meanwhile may be.
//
// It goes down the slots: a group that is forgotten is replaced by the last
// one, which has been seen already or moves to where it will be. So one may
// also be seen twice.
type cursor struct {
	bufs []*buffer // still to be walked over; the last one is under way
	slot int       // everything in it from here on was seen
	gr   *group    // whose items are under way, or nil
	life string    // of that group
	seq  uint64    // its next number
}

// walk starts a walk over all groups, or one buffer's.
func (ix *index) walk(only ...string) *cursor {
	c := &cursor{}
	for name, b := range ix.buffers {
		if len(only) == 0 || name == only[0] {
			c.bufs = append(c.bufs, b)
		}
	}
	c.rewind()
	return c
}

func (c *cursor) rewind() {
	if n := len(c.bufs); n > 0 {
		c.slot = len(c.bufs[n-1].all)
	}
}

// next is the next group, or nil at the end.
func (c *cursor) next() *group {
	for len(c.bufs) > 0 {
		all := c.bufs[len(c.bufs)-1].all
		if c.slot = min(c.slot, len(all)); c.slot > 0 {
			c.slot--
			return all[c.slot]
		}
		c.bufs = c.bufs[:len(c.bufs)-1]
		c.rewind()
	}
	return nil
}

// step visits groups and their items up to a budget of both together. It
// reports whether there is more. more says that the group's earlier items
// came in an earlier step; places are consecutive, from number first on.
func (c *cursor) step(budget int, visit func(gr *group, more bool, sp *span, from, to int)) bool {
	for budget > 0 {
		more := c.gr != nil
		if more && (c.gr.slot < 0 || c.gr.Life != c.life) {
			c.gr = nil
			continue
		}
		if !more {
			if c.gr = c.next(); c.gr == nil {
				return false
			}
			c.life, c.seq = c.gr.Life, 0
		}
		budget -= c.visit(budget, more, visit)
	}
	return true
}

// visit visits the group under way, and says what that used of the budget.
func (c *cursor) visit(budget int, more bool, visit func(gr *group, more bool, sp *span, from, to int)) int {
	gr, used := c.gr, 1
	if !more {
		visit(gr, false, nil, 0, 0)
	}
	for i := range gr.spans {
		sp := &gr.spans[i]
		if sp.end() <= c.seq {
			continue
		}
		from := 0
		if c.seq > sp.first {
			from = int(c.seq - sp.first)
		}
		to := min(len(sp.places), from+max(1, budget-used))
		visit(gr, more, sp, from, to)
		used += to - from
		c.seq = sp.first + uint64(to)
		if used >= budget {
			return used
		}
	}
	c.gr = nil
	return used
}

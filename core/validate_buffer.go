package core

import (
	"fmt"

	"sluice/core/render"
)

func (v *validation) buffer(c *Config, b *Buffer) {
	path := FieldPath("buffers", b.Name)
	v.from(path+".from", b.From)
	if b.To == "" {
		v.add(path+".to", "is missing", "name a destination: "+alternatives(v.destinations.list))
	} else if !v.destinations.has[b.To] {
		v.add(path+".to", "names the destination "+shown(b.To)+", which does not exist", "must be "+alternatives(v.destinations.list))
	}
	v.template(path+".groupBy", b.GroupBy, `"{{ .json.customer_id }}"`)
	v.batch(path+".batch", b)
	v.overflow(path+".overflow", b)
	v.number(path+".concurrency", int64(b.Concurrency), BatchesRange)
	v.number(path+".size", b.Size, SizeRange)
	v.number(path+".shards", int64(b.Shards), ShardsRange)
	v.order(path, b)
	v.delay(path, b)
	v.shadow(path, b)
	if b.Dedupe != 0 {
		v.number(path+".dedupe.window", int64(b.Dedupe), DedupeRange)
	}
	v.window(path+".window", b.Window)
	v.fold(path+".fold", b)
	v.flush(path, c, b)
}

func (v *validation) template(path, text, example string) {
	if _, err := render.Compile(text); err != nil {
		v.add(path, "is not a template: "+err.Error(), "must be like "+example)
	}
}

func (v *validation) from(path string, from []string) {
	if len(from) == 0 {
		v.add(path, "is missing", "list at least one source: "+alternatives(v.sources.list))
	}
	seen := make(map[string]bool, len(from))
	for i, name := range from {
		switch {
		case !v.sources.has[name]:
			v.add(ElementPath(path, i), "names the source "+shown(name)+", which does not exist", "must be "+alternatives(v.sources.list))
		case seen[name]:
			v.add(ElementPath(path, i), "names "+shown(name)+" again", "list each source once")
		}
		seen[name] = true
	}
}

// batch checks the conditions of a buffer. All but maxItems, which also bounds
// a batch, make it due, and so have no meaning where something else does.
func (v *validation) batch(path string, b *Buffer) {
	condition := v.number
	if other := b.leavesBy(); other != "" {
		condition = func(path string, n int64, r Range) {
			if n != r.Default {
				v.add(path, "has no meaning beside "+other, "remove it, or remove "+other)
			}
		}
	}
	v.number(path+".maxItems", int64(b.Batch.MaxItems), BatchItemsRange)
	condition(path+".maxBytes", b.Batch.MaxBytes, BatchBytesRange)
	condition(path+".idleTimeoutMs", int64(b.Batch.IdleTimeout), IdleTimeoutRange)
	condition(path+".maxWaitFromFirstMs", int64(b.Batch.MaxWait), MaxWaitRange)
}

// leavesBy is the field that says when a buffer's groups leave in place of the
// conditions of batch, or "".
func (b *Buffer) leavesBy() string {
	switch {
	case b.Window != nil && b.FlushEvery != 0:
		return "window and flush"
	case b.Window != nil:
		return "window"
	case b.FlushEvery != 0:
		return "flush"
	}
	return ""
}

func (v *validation) overflow(path string, b *Buffer) {
	v.number(path+".maxBytes", b.Overflow.MaxBytes, OverflowBytesRange)
	v.number(path+".maxItems", int64(b.Overflow.MaxItems), OverflowItemsRange)
	inRange := OverflowBytesRange.Has(b.Overflow.MaxBytes) && BatchBytesRange.Has(b.Batch.MaxBytes)
	if inRange && b.leavesBy() == "" && b.Overflow.MaxBytes < b.Batch.MaxBytes {
		v.add(path+".maxBytes",
			"is "+formatBytes(b.Overflow.MaxBytes)+", below batch.maxBytes, "+formatBytes(b.Batch.MaxBytes),
			"must be at least batch.maxBytes, so that a due batch fits")
	}
}

// flush checks what is about flushes and claims.
func (v *validation) flush(path string, c *Config, b *Buffer) {
	if b.FlushEvery != 0 {
		v.number(path+".flush.every", int64(b.FlushEvery), FlushEveryRange)
	}
	switch n := b.ClaimLimit; {
	case n != 0 && b.Fold != nil:
		v.add(path+".claimLimit", "has no meaning beside fold: a window is claimed whole", "remove it")
	case n > b.Batch.MaxItems && ClaimLimitRange.Has(int64(n)) && BatchItemsRange.Has(int64(b.Batch.MaxItems)):
		v.add(path+".claimLimit", fmt.Sprintf("is %d, above batch.maxItems, %d", n, b.Batch.MaxItems), "must be at most batch.maxItems; 0 means as many")
	default:
		v.number(path+".claimLimit", int64(n), ClaimLimitRange)
	}
	v.recoverAfter(path+".recoverAfter", c, b)
}

// recoverAfter checks that a claim is nobody else's before its send has ended,
// to whichever destination that goes.
func (v *validation) recoverAfter(path string, c *Config, b *Buffer) {
	v.number(path, int64(b.RecoverAfter), RecoverAfterRange)
	if b.RecoverAfter == 0 || !RecoverAfterRange.Has(int64(b.RecoverAfter)) {
		return
	}
	var slowest Destination
	for _, d := range c.hops(b.To) {
		if d.Timeout > slowest.Timeout && TimeoutRange.Has(int64(d.Timeout)) {
			slowest = *d
		}
	}
	if least := slowest.Timeout + leaseMargin; slowest.Timeout != 0 && b.RecoverAfter < least {
		v.add(path,
			fmt.Sprintf("is %s, too short for the timeout of destination %s, %s, and %s to settle",
				formatDuration(b.RecoverAfter), slowest.Name, formatDuration(slowest.Timeout), formatDuration(leaseMargin)),
			"must be at least "+formatDuration(least)+", or leave it out")
	}
}

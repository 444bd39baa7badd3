package core

import (
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// sqsEntries is how many messages one request to SQS takes.
	sqsEntries = 10

	// longWait and longRetry are more than the defaults make a group wait, with
	// room for what is still reasonable where order counts.
	longWait  = time.Minute
	longRetry = 4 * time.Hour
)

func (c *Config) destination(name string) *Destination {
	i := slices.IndexFunc(c.Destinations, func(d Destination) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Destinations[i]
}

// hops is a destination and its fallbacks, as far as there are such.
func (c *Config) hops(of string) []*Destination {
	first := c.destination(of)
	if first == nil {
		return nil
	}
	hops := []*Destination{first}
	for _, name := range first.Fallbacks {
		if d := c.destination(name); d != nil {
			hops = append(hops, d)
		}
	}
	return hops
}

func (v *validation) lintAck(path string, s *Source) {
	given := s.RespondTimeout != 0 && int64(s.RespondTimeout) != RespondRange.Default
	if given && !s.AckDelivered {
		v.add(path+".respondTimeout", "has no effect: events are answered when they are durable", "add ack: delivered, or remove it")
	}
}

// lintFallbacks warns of fallbacks that do not do what they seem to.
func (v *validation) lintFallbacks(c *Config, d *Destination) {
	largest := largestBatch(c, d.Name)
	for i, name := range d.Fallbacks {
		f := c.destination(name)
		if f == nil {
			continue
		}
		path := ElementPath(FieldPath("destinations", d.Name)+".fallbacks", i)
		if b := f.Breaker; b != nil && b.Cooldown > longWait {
			v.add(path,
				fmt.Sprintf("names %s, whose breaker is open for %s: %d batches of a group that wait for it, or 1 where ordering is set, keep the next ones from %s, too", name, formatDuration(b.Cooldown), MaxClaims, d.Name),
				"lower its breaker.cooldown to at most "+formatDuration(longWait)+", or leave its breaker out")
		}
		if len(f.Fallbacks) > 0 {
			v.add(path, "names "+name+", which has fallbacks of its own: they are not followed from here", "list them here, too, in the order in which they are to be tried")
		}
		if n := largest.items; f.Type == TypeSQS && d.Type != TypeSQS && n > sqsEntries {
			v.add(path,
				fmt.Sprintf("names %s, of type sqs, which takes %d items at a time: a batch of %d from buffer %s is sent in %d parts", name, sqsEntries, n, largest.buffer, (n+sqsEntries-1)/sqsEntries),
				fmt.Sprintf("set batch.maxItems to at most %d, or expect a batch of which only a part has arrived", sqsEntries))
		}
	}
}

// batchOf is the most items in one batch of a buffer.
type batchOf struct {
	buffer string
	items  int
}

// largestBatch is that of the buffers that send to a destination.
func largestBatch(c *Config, to string) (largest batchOf) {
	for i := range c.Buffers {
		if b := &c.Buffers[i]; b.To == to && b.Batch.MaxItems > largest.items {
			largest = batchOf{b.Name, b.Batch.MaxItems}
		}
	}
	return largest
}

// lintOrder warns of a key that does nothing, and of what makes an ordered
// group wait for long: everything behind it waits, too.
func (v *validation) lintOrder(c *Config, b *Buffer) {
	path := FieldPath("buffers", b.Name)
	if b.OrderKey != "" && b.Shards == 1 {
		v.add(path+".ordering.key", "has no effect: a group is kept in order as a whole, and the key only picks one of several shards", "set shards, or write ordering: {}")
	}
	if !b.Ordered {
		return
	}
	for _, field := range b.delayedBy() {
		v.add(path+field, "makes an event that is held hold back all behind it in its group, since ordering is set", "group by something that few events share, or leave ordering out")
	}
	if b.leavesBy() == "" && b.Batch.MaxWait > longWait {
		v.add(path+".batch.maxWaitFromFirstMs",
			fmt.Sprintf("is %s beside ordering: an event may wait so long for its batch, and then for the one before, whose retries come first", UnitMillis.Format(int64(b.Batch.MaxWait))),
			"lower it where order and speed both count, or leave ordering out")
	}
	var span time.Duration
	hops := c.hops(b.To)
	for _, d := range hops {
		span += d.Retry.span()
	}
	if span > longRetry {
		of, whose := "destination "+b.To, "its"
		if len(hops) > 1 {
			of, whose = of+" and its fallbacks", "their"
		}
		v.add(path+".ordering",
			fmt.Sprintf("makes a batch that fails hold back all behind it in its group for up to %s, the retries of %s", formatDuration(span.Round(time.Minute)), of),
			"lower "+whose+" retry.maxAttempts or retry.max, or leave ordering out")
	}
}

// lintDelay warns of what is held at a risk.
func (v *validation) lintDelay(c *Config, b *Buffer) {
	if held := b.delayedBy(); held != nil && !c.Store.Sync {
		v.add(FieldPath("buffers", b.Name)+held[0], "holds events while store.sync is false: a crash of the host can lose some, and by then nobody sends them again", "set store.sync: true, or leave it out")
	}
}

// lintWait warns of callers that wait in vain for what becomes of their events.
func (v *validation) lintWait(c *Config, b *Buffer) {
	const right = "make it ack: accepted, or give the buffer a source of its own"
	field, most := b.keeps()
	for i := range c.Sources {
		s := &c.Sources[i]
		if !s.AckDelivered || b.Shadow || !slices.Contains(b.From, s.Name) {
			continue
		}
		path, of := FieldPath("buffers", b.Name), "events of source "+s.Name+", whose ack is delivered"
		switch held := b.delayedBy(); {
		case b.Fold != nil:
			v.add(path+".fold", "makes rows of "+of+", and what becomes of one says nothing of an event: its callers hear pending at once", right)
		case held != nil && !b.Ordered:
			v.add(path+held[0], "may hold "+of+": its callers then hear pending at once", right)
		case most >= s.RespondTimeout:
			v.add(path+field, "may keep "+of+", for its respondTimeout, "+formatDuration(s.RespondTimeout)+", or longer: its callers then hear pending", right)
		}
	}
}

// keeps is the field that keeps an event in a buffer the longest before it is
// first sent, and for how long it may.
func (b *Buffer) keeps() (field string, most time.Duration) {
	switch {
	case b.DeliverAt != "":
		return ".deliverAt", math.MaxInt64
	case b.DeliverAfter != 0:
		return ".deliverAfter", b.DeliverAfter
	case b.Window != nil:
		return ".window", b.Window.Every + b.Window.Grace + b.FlushEvery
	case b.FlushEvery != 0:
		return ".flush.every", b.FlushEvery
	case b.Batch.MaxItems == 1:
		return "", 0
	case b.Batch.MaxWait < b.Batch.IdleTimeout:
		return ".batch.maxWaitFromFirstMs", b.Batch.MaxWait
	}
	return ".batch.idleTimeoutMs", b.Batch.IdleTimeout
}

// lintShadow warns of a copy that is on the way of what counts.
func (v *validation) lintShadow(c *Config, b *Buffer) {
	if !b.Shadow {
		return
	}
	if n := b.Overflow.MaxItems; n != 0 {
		v.add(FieldPath("buffers", b.Name)+".overflow.maxItems", fmt.Sprintf("is %d, but has no effect beside shadow: no request is refused for a copy", n), "set size, which bounds the copies, or remove it")
	}
	used := make(map[*Destination]string)
	for i := range c.Buffers {
		other := &c.Buffers[i]
		for _, d := range c.hops(other.To) {
			if !other.Shadow && used[d] == "" {
				used[d] = other.Name
			}
		}
	}
	for _, d := range c.hops(b.To) {
		if other := used[d]; other != "" {
			v.add(FieldPath("buffers", b.Name)+".shadow",
				"is set, but its copies go to destination "+d.Name+", as what buffer "+other+" sends may: they count for its breaker, rateLimit and concurrency",
				"give the copies a destination of their own, of the same url")
			return
		}
	}
}

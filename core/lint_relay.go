package core

import (
	"fmt"
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

// fallbacks is where batches for a destination may end up.
func (c *Config) fallbacks(of string) []string {
	if d := c.destination(of); d != nil {
		return d.Fallbacks
	}
	return nil
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
	if d := c.destination(b.To); d != nil {
		if span := d.Retry.span(); span > longRetry {
			v.add(path+".ordering",
				fmt.Sprintf("makes a batch that fails hold back all behind it in its group for up to %s, the retries of destination %s", formatDuration(span.Round(time.Minute)), d.Name),
				"lower its retry.maxAttempts or retry.max, or leave ordering out")
		}
	}
}

// lintDelay warns of what is held at a risk, and of callers that wait in vain.
func (v *validation) lintDelay(c *Config, b *Buffer) {
	path := FieldPath("buffers", b.Name)
	held := b.delayedBy()
	if held == nil {
		return
	}
	if !c.Store.Sync {
		v.add(path+held[0], "holds events while store.sync is false: a crash of the host can lose some, and by then nobody sends them again", "set store.sync: true, or leave it out")
	}
	for i := range c.Sources {
		s := &c.Sources[i]
		waits := b.DeliverAt != "" || b.DeliverAfter >= s.RespondTimeout
		if s.AckDelivered && waits && slices.Contains(b.From, s.Name) {
			v.add(path+held[0], "holds events of source "+s.Name+", whose ack is delivered: its callers wait for respondTimeout and then hear pending", "make it ack: accepted, or give the buffer a source of its own")
		}
	}
}

package core

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// httpSource checks a source that is called, and so has no queue.
func (v *validation) httpSource(path string, s *Source) {
	if a := s.Auth; a != nil && !a.Open {
		v.auth(path+".auth", a)
	}
	if s.Queue != "" {
		v.add(path+".queue", "has no meaning here", "remove it, or make the source one of type sqs")
	}
	if s.AckDelivered || s.RespondTimeout != 0 {
		v.number(path+".respondTimeout", int64(s.RespondTimeout), RespondRange)
	}
}

// sqsSource checks a source that has no caller whom to let in, or to answer.
func (v *validation) sqsSource(path string, s *Source) {
	switch {
	case s.Queue == "":
		v.add(path+".queue", "is missing", "an sqs source needs the URL of its queue, or a reference to it such as env:QUEUE_URL")
	case !IsReference(string(s.Queue)):
		if problem := SourceQueueProblem(string(s.Queue)); problem != "" {
			v.add(path+".queue", problem, "must be the URL of a queue, such as https://sqs.eu-west-1.amazonaws.com/123456789012/orders, or a reference to it such as env:QUEUE_URL")
		}
	}
	const right = "remove it, or make the source one of type http"
	if s.Auth != nil {
		v.add(path+".auth", "has no meaning here: who may send is the queue's policy", right)
	}
	if s.AckDelivered {
		v.add(path+".ack", "has no meaning here: a message leaves the queue when its event is durable", right)
	}
	if s.RespondTimeout != 0 && int64(s.RespondTimeout) != RespondRange.Default {
		v.add(path+".respondTimeout", "has no meaning here: nobody waits for an answer", right)
	}
}

// queues checks that no queue is that of two sources: whose a message is would
// be chance. References that differ may still lead to one.
func (v *validation) queues(c *Config) {
	first := make(map[Secret]string)
	for i := range c.Sources {
		s := &c.Sources[i]
		if s.Type != TypeSQS || s.Queue == "" {
			continue
		}
		other, again := first[s.Queue]
		if !again {
			first[s.Queue] = s.Name
			continue
		}
		v.add(FieldPath("sources", s.Name)+".queue", "is the queue of source "+shown(other)+", too",
			"give each source a queue of its own, or have several buffers read one source")
	}
}

// SourceQueueProblem says what is wrong with the URL of a source's queue, or
// "". Only from a private address do events come in the clear.
func SourceQueueProblem(s string) string {
	if problem := urlProblem(s); problem != "" {
		return problem
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "is not a URL"
	case u.RawQuery != "" || u.Fragment != "":
		return "has a query or a fragment"
	case u.Scheme != "https" && !privateHost(s):
		return "is an http URL, which is for private addresses"
	case strings.Trim(u.Path, "/") == "":
		return "names no queue"
	}
	return ""
}

// onward checks what a destination does when it fails or is too fast.
func (v *validation) onward(path string, d *Destination) {
	if b := d.Breaker; b != nil {
		v.number(path+".breaker.failures", int64(b.Failures), FailuresRange)
		v.number(path+".breaker.cooldown", int64(b.Cooldown), CooldownRange)
	}
	if r := d.RateLimit; r != nil {
		v.number(path+".rateLimit.requests", int64(r.Requests), RequestsRange)
		v.number(path+".rateLimit.per", int64(r.Per), PerRange)
	}
	path += ".fallbacks"
	if n := len(d.Fallbacks); n > MaxFallbacks {
		v.add(path, fmt.Sprintf("has %d destinations", n), fmt.Sprintf("must have at most %d", MaxFallbacks))
	}
	seen := make(map[string]bool, len(d.Fallbacks))
	for i, name := range d.Fallbacks {
		switch {
		case name == d.Name:
			v.add(ElementPath(path, i), "names the destination itself", "name another, or raise retry.maxAttempts")
		case !v.destinations.has[name]:
			v.add(ElementPath(path, i), "names the destination "+shown(name)+", which does not exist", "must be "+alternatives(v.destinations.list))
		case seen[name]:
			v.add(ElementPath(path, i), "names "+shown(name)+" again", "list each fallback once")
		}
		seen[name] = true
	}
}

// order checks that what is to keep its order stays in one shard.
func (v *validation) order(path string, b *Buffer) {
	v.template(path+".ordering.key", b.OrderKey, `"{{ .json.order_id }}"`)
	windowed := b.Window != nil
	if windowed && b.OrderKey != "" {
		v.add(path+".ordering.key", "has no meaning beside window: groupBy picks the shard of an event there", "remove it, or remove window")
	}
	if !b.Ordered || b.Shards <= 1 || b.OrderKey != "" && !windowed {
		return
	}
	right := "must be 1, or say what keeps its order, such as ordering: {key: \"{{ .json.order_id }}\"}"
	if windowed {
		right = "must be 1, or leave ordering out"
	}
	v.add(path+".shards", fmt.Sprintf("is %d, which breaks the order that ordering asks for", b.Shards), right)
}

// delay checks until when a buffer holds events.
func (v *validation) delay(path string, b *Buffer) {
	v.number(path+".deliverAfter", int64(b.DeliverAfter), DelayRange)
	v.template(path+".deliverAt", b.DeliverAt, `"{{ .json.send_at }}"`)
	for _, field := range b.delayedBy() {
		if b.Window != nil {
			v.add(path+field, "has no meaning beside window: a window has its own time, its end, when all of it leaves", "remove it, or remove window")
		}
		if b.Shadow {
			v.add(path+field, "has no meaning beside shadow: nothing waits for a copy, and so nothing keeps it", "remove it, or remove shadow")
		}
	}
}

// delayedBy is the fields that make a buffer hold events.
func (b *Buffer) delayedBy() []string {
	var fields []string
	if b.DeliverAfter != 0 {
		fields = append(fields, ".deliverAfter")
	}
	if b.DeliverAt != "" {
		fields = append(fields, ".deliverAt")
	}
	return fields
}

// shadow checks which share of the events a copy gets.
func (v *validation) shadow(path string, b *Buffer) {
	path += ".sample"
	switch {
	case !b.Shadow && b.Sample != 0 && b.Sample != 1: // 0 is not given
		v.add(path, "has no meaning without shadow: a buffer gets every event that its filter keeps", "add shadow: true, or remove it")
	case b.Shadow && !(b.Sample > 0 && b.Sample <= 1): // nor NaN
		v.add(path, fmt.Sprintf("is %g", b.Sample), SampleRight)
	}
}

// SampleRight is what the sample of a shadow buffer should be.
const SampleRight = "must be above 0 and at most 1, such as 0.05 for one event in 20"

// shadows checks that no source has shadows alone: they may drop what they get.
func (v *validation) shadows(c *Config) {
	told := map[string]bool{} // or has a buffer that is no shadow
	for i := range c.Buffers {
		for _, s := range c.Buffers[i].From {
			told[s] = told[s] || !c.Buffers[i].Shadow
		}
	}
	for i := range c.Buffers {
		var alone []string
		for _, s := range c.Buffers[i].From {
			if v.sources.has[s] && !told[s] {
				alone, told[s] = append(alone, s), true
			}
		}
		if alone != nil {
			v.add(FieldPath("buffers", c.Buffers[i].Name)+".shadow", "is set in every buffer that reads "+alternatives(alone)+", and a shadow may drop events",
				"must be false in one of them at least")
		}
	}
}

// span is the most that all waits between a batch's attempts take.
func (p *RetryPolicy) span() (sum time.Duration) {
	wait := p.Initial
	for range p.MaxAttempts - 1 {
		sum += min(wait, p.Max)
		wait = min(2*wait, p.Max)
	}
	return sum
}

package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/core"
)

// show shows the explanation to people.
func (e *explanation) show(p *program) {
	say := p.paint(p.stdout)
	fmt.Fprintf(p.stdout, "source       %s\n", clean(e.Source))
	fmt.Fprintf(p.stdout, "event        %s of %s\n", size(e.Bytes), clean(contentType(e.ContentType)))
	switch {
	case e.Refused != nil && e.Queue:
		fmt.Fprintf(p.stdout, "answer       %s: %s\n", say.red("refused, and its message comes again"), clean(e.Refused.Detail))
		return
	case e.Refused != nil:
		fmt.Fprintf(p.stdout, "answer       %s: %s\n", say.red(fmt.Sprintf("%d, refused", e.Refused.Status)), clean(e.Refused.Detail))
		return
	case e.Queue:
		fmt.Fprintln(p.stdout, "id           its message's")
	case e.ID == "":
		fmt.Fprintln(p.stdout, "id           a new one")
	default:
		fmt.Fprintf(p.stdout, "id           %s\n", clean(e.ID))
	}
	fmt.Fprintf(p.stdout, "answer       %s\n", e.answer(say))
	for i := range e.Routes {
		e.Routes[i].show(p, say)
	}
}

// answer is what an event gets that is not refused.
func (e *explanation) answer(say paint) string {
	status, leaves := "202, ", ""
	if e.Queue {
		status, leaves = "", ": its message leaves the queue"
	}
	switch {
	case len(e.Routes) == 0:
		return say.yellow(status+"unrouted") + ": no buffer reads this source"
	case !slices.ContainsFunc(e.Routes, func(r routedThen) bool { return r.Dropped == "" && !r.Shadow }):
		return say.yellow(status+"filtered") + ": no buffer keeps it"
	case e.Waits > 0:
		return say.green("200, delivered") + ", or 502 when it is a dead letter, or 202 when neither is known after " + millis(e.Waits)
	}
	return say.green(status+"accepted") + leaves
}

func contentType(s string) string {
	if s == "" {
		return "no content type"
	}
	return s
}

func (r *routedThen) show(p *program, say paint) {
	fmt.Fprintf(p.stdout, "\nbuffer       %s\n", say.bold(clean(r.Buffer)))
	if r.Shadow {
		fmt.Fprintf(p.stdout, "shadow       a copy, of %.4g %% of the events: nothing waits for it\n", 100*r.Sample)
	}
	if r.Filter != "" {
		fmt.Fprintf(p.stdout, "filter       %s\n", clean(r.Filter))
	}
	if r.Transform != "" {
		fmt.Fprintf(p.stdout, "transform    %s\n", clean(r.Transform))
	}
	switch {
	case r.Dropped != "":
		fmt.Fprintf(p.stdout, "             %s: %s\n", say.yellow("dropped"), clean(r.Dropped))
		return
	case r.DeadLetter != "":
		fmt.Fprintf(p.stdout, "             %s: %s\n", say.red("a dead letter"), clean(r.DeadLetter))
		return
	case r.Becomes != "":
		fmt.Fprintf(p.stdout, "becomes      %s\n", clean(r.Becomes))
	}
	if r.DedupeMs > 0 {
		fmt.Fprintf(p.stdout, "dedupe       it is dropped if the buffer has stored its id within %s\n", millis(r.DedupeMs))
	}
	if r.HeldUntil != "" {
		then := "then goes on as if it had just come"
		if r.Ordered {
			then = "until then holds back those behind it in its group"
		}
		fmt.Fprintf(p.stdout, "held         until %s, and %s\n", clean(r.HeldUntil), then)
	}
	if r.Window != nil {
		r.Window.show(p, say, r)
	} else {
		r.showGroup(p)
	}
	r.showRoom(p)
	if r.Ordered {
		fmt.Fprintln(p.stdout, "order        kept: one batch of the group at a time")
	}
	if r.OrderKey != "" {
		fmt.Fprintf(p.stdout, "             among those of one %s, where the group has several shards\n", clean(r.OrderKey))
	}
	r.Destination.show(p, "destination ")
	for i := range r.Destination.Fallbacks {
		r.Destination.Fallbacks[i].show(p, "or at last  ")
	}
}

func (d *destinationTo) show(p *program, as string) {
	to := d.Type
	if d.To != "" {
		to += " " + d.To
	}
	fmt.Fprintf(p.stdout, "%s %s (%s), as %s\n", as, clean(d.Name), clean(to), d.Format)
	if d.Filter != "" {
		fmt.Fprintf(p.stdout, "             behind its own filter, %s\n", clean(d.Filter))
	}
	if d.Transform != "" {
		fmt.Fprintf(p.stdout, "             behind its own transform, %s\n", clean(d.Transform))
	}
	if b := d.Breaker; b != nil {
		fmt.Fprintf(p.stdout, "             breaker: nothing is sent for %s after %s in a row\n", millis(b.CooldownMs), plural(b.Failures, "failure"))
	}
	if l := d.RateLimit; l != nil {
		fmt.Fprintf(p.stdout, "             rate limit: %s in %s\n", plural(l.Requests, "request"), millis(l.PerMs))
	}
}

func (r *routedThen) showRoom(p *program) {
	if r.Room == nil {
		return
	}
	var most []string
	if n := r.Room.Buffer; n > 0 {
		most = append(most, plural(n, "event")+" in the buffer")
	}
	if n := r.Room.Group; n > 0 {
		in := " in the group"
		if r.Window != nil {
			in = " in the window"
		}
		most = append(most, plural(n, "event")+in)
	}
	then := "it is refused until there is room again"
	if r.Shadow {
		then = "it is dropped"
	}
	fmt.Fprintf(p.stdout, "room         for %s; beyond that %s\n", strings.Join(most, " and "), then)
}

func (r *routedThen) showGroup(p *program) {
	switch {
	case r.GroupBy != "":
		fmt.Fprintf(p.stdout, "group        %s, from %s\n", keyCell(r.Group), clean(r.GroupBy))
	case r.MessageGroup == certain:
		fmt.Fprintln(p.stdout, "group        its message group")
	case r.MessageGroup == possible:
		fmt.Fprintln(p.stdout, "group        its message group if the queue is FIFO, else the only one")
	default:
		fmt.Fprintln(p.stdout, "group        the only one")
	}
	if r.FlushEvery > 0 {
		fmt.Fprintf(p.stdout, "leaves       by flushes alone, every %s, as batches of at most %s\n", millis(r.FlushEvery), plural(r.Conditions.MaxItems, "event"))
		return
	}
	c := r.Conditions
	fmt.Fprintf(p.stdout, "leaves       when the group has %s or %s, %s after its last event,\n",
		plural(c.MaxItems, "event"), core.UnitBytes.Format(c.MaxBytes), millis(c.IdleTimeoutMs))
	fmt.Fprintf(p.stdout, "             or %s after its first\n", millis(c.MaxWaitFromFirstMs))
}

func (w *windowThen) show(p *program, say paint, r *routedThen) {
	by := "the time of receipt"
	if w.Time != "" {
		by = clean(w.Time)
	}
	fmt.Fprintf(p.stdout, "window       %s to %s, by %s\n", clean(w.Start), clean(w.End), by)
	if w.Late {
		fmt.Fprintf(p.stdout, "             %s: its own window counts as shipped, so it is moved on into this one\n", say.yellow("late"))
	}
	what := "event"
	if w.Fold != nil {
		what = "row"
		fmt.Fprintf(p.stdout, "folded       into %s\n", clean(strings.Join(w.Fold, ", ")))
	}
	switch {
	case r.GroupBy != "":
		fmt.Fprintf(p.stdout, "row          %s, from %s\n", keyCell(w.Row), clean(r.GroupBy))
	case w.Fold != nil:
		fmt.Fprintln(p.stdout, "row          the only one")
	}
	how := "whole, at " + clean(w.ShipsAt)
	switch over := until(w.ShipsAt, core.At(p.now())) == "now"; {
	case r.FlushEvery > 0 && over:
		how = "by the next flush (they are made every " + millis(r.FlushEvery) + "), as it is over since " + clean(w.ShipsAt)
	case r.FlushEvery > 0:
		how = "by the first flush (they are made every " + millis(r.FlushEvery) + ") after " + clean(w.ShipsAt)
	case over:
		how = "whole, at once, as it is over since " + clean(w.ShipsAt)
	}
	fmt.Fprintf(p.stdout, "leaves       %s (%s after its end), as batches of at most %s\n",
		how, millis(w.GraceMs), plural(r.Conditions.MaxItems, what))
}

func millis(ms int64) string {
	return core.UnitDuration.Format(int64(time.Duration(ms) * time.Millisecond))
}

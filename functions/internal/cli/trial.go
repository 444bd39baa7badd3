package cli

import (
	"context"
	"fmt"

	"github.com/oklog/ulid/v2"

	"sluice/core"
	"sluice/infra/fault"
)

// trial sends events through faults, batch by batch.
type trial struct {
	*program

	arrived *arrivals
	faults  *fault.Sender
	retry   core.RetryPolicy
	dice    core.Rand
	report  chaosReport
}

// arrivals is the endpoint, of which it notes what it has taken.
type arrivals struct {
	to     core.Sender
	calls  int
	seen   map[string]int // by the event's id
	answer string         // the last that was no success
}

// Send passes a batch on.
func (a *arrivals) Send(ctx context.Context, b *core.Batch) core.Response {
	a.calls++
	r := a.to.Send(ctx, b)
	outcome := core.Classify(&r, nil)
	if outcome != core.Delivered {
		a.answer = answerText(&r)
	}
	if outcome == core.Delivered || outcome == core.Partial {
		for i := range b.Items {
			if !r.Failed.Has(i) {
				a.seen[b.Items[i].ID]++
			}
		}
	}
	return r
}

// answerText is a response that is no success in a line.
func answerText(r *core.Response) string {
	switch {
	case r.Err != nil && core.DetailOf(r.Err) != "":
		return core.DetailOf(r.Err)
	case r.Err != nil:
		return r.Err.Error()
	case r.Failed.Len() > 0:
		return fmt.Sprintf("%d, but not for %s", r.Status, plural(r.Failed.Len(), "event"))
	}
	return fmt.Sprintf("%d %s", r.Status, r.Answer)
}

// run sends events in batches of so many, until ctx ends.
func (t *trial) run(ctx context.Context, events []core.Event, batch int) {
	begin, run := t.now(), ulid.Make().String()
	t.report.Events = len(events)
	for n := 0; len(events) > 0 && ctx.Err() == nil; n++ {
		b := core.Batch{ID: fmt.Sprintf("%s-%d", run, n+1), Buffer: chaosBuffer, Reason: core.ReasonFlush, Attempt: 1}
		of := events[:min(batch, len(events))]
		events = events[len(of):]
		for i := range of {
			of[i].ID, of[i].ReceivedAt = fmt.Sprintf("%s-%d", b.ID, i+1), core.At(t.now())
			b.Items = append(b.Items, core.Item{Event: of[i], Seq: uint64(i + 1)})
		}
		t.report.Batches++
		t.deliver(ctx, &b)
	}
	r := &t.report
	r.Left += len(events)
	r.Taken = len(t.arrived.seen)
	for _, times := range t.arrived.seen {
		r.Doubles += times - 1
	}
	r.PutIn = putIn{Failed: t.faults.Failed(), Dropped: t.faults.Dropped()}
	r.Answer, r.TookMs = t.arrived.answer, t.now().Sub(begin).Milliseconds()
}

// deliver sends a batch until it is taken, refused for good, or tried as often as
// the destination's policy allows.
func (t *trial) deliver(ctx context.Context, b *core.Batch) {
	for id := b.ID; ; b.Attempt++ {
		before := t.sent()
		r := t.faults.Send(ctx, b)
		made := t.sent() - before // none, when it was interrupted in its delay
		t.report.Sent += made
		if b.Attempt > 1 {
			t.report.Retried += made
		}
		switch core.Classify(&r, t.retry.On) {
		case core.Delivered:
			return
		case core.Permanent:
			t.fail(b.Items)
			return
		case core.Interrupted:
			t.report.Left += len(b.Items)
			return
		case core.Partial:
			left, refused := sorted(b.Items, &r)
			t.fail(refused)
			if b.Items = left; len(left) == 0 {
				return
			}
			b.ID = fmt.Sprintf("%s.%d", id, b.Attempt+1)
		case core.Retry:
		}
		if b.Attempt >= t.retry.MaxAttempts {
			t.fail(b.Items)
			return
		}
		if t.wait(ctx, t.retry.Wait(b.Attempt, r.RetryAfter, t.dice)) != nil {
			t.report.Left += len(b.Items)
			return
		}
	}
}

// sent is how many sends have been made so far.
func (t *trial) sent() int { return t.arrived.calls + t.faults.Failed() }

// fail counts items that would become dead letters.
func (t *trial) fail(items []core.Item) {
	t.report.Failed += len(items)
	for i := range items {
		if t.arrived.seen[items[i].ID] > 0 {
			t.report.Unheard++
		}
	}
}

// sorted are the items that failed: those to be sent again, and those that are
// refused for good.
func sorted(items []core.Item, r *core.Response) (left, refused []core.Item) {
	for i := range items {
		switch {
		case r.Refused.Has(i):
			refused = append(refused, items[i])
		case r.Failed.Has(i):
			left = append(left, items[i])
		}
	}
	return left, refused
}

package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"
)

const (
	// replayChunk is how many dead letters a replay holds in memory by default.
	replayChunk = 1000
	// replayTime bounds one call by default; what is left over is for the next one.
	replayTime = 4 * time.Minute
	// replayLease keeps letters from another replay meanwhile; it outlives
	// the last send.
	replayLease = 10 * time.Minute
)

// Replayer sends dead letters again.
type Replayer struct {
	catalog *Catalog
	ports   Ports
	letters DeadLetterQueue
}

// NewReplayer makes a replayer.
func NewReplayer(c *Catalog, p Ports, q DeadLetterQueue) *Replayer {
	return &Replayer{catalog: c, ports: p, letters: q}
}

// ReplayRequest picks what to replay; its zero value is everything.
type ReplayRequest struct {
	Filter DeadLetterFilter
	To     string // instead of each letter's own destination
	Max    int    // at most so many; 0: no limit

	Budget time.Duration // no batch is begun after this; 0: four minutes
	Chunk  int           // letters held in memory at a time, which bounds a batch too; 0: 1,000

	// Lease is how long letters are kept from other replays, also when this one
	// dies: longer than its last send; 0: ten minutes.
	Lease time.Duration
}

// ReplayReport is what came of a replay. Letters are replayed when their
// destination has taken them. The failed ones are dead letters still, and among
// those left: it did not take them, they could not be sent, or its breaker or rate
// limit left no time for them. What was not even read then is only left. Left is what the queue counts in the time there is,
// and may be too low, but never lower than what the replay itself has given back.
type ReplayReport struct {
	Replayed int
	Failed   int
	Left     int
	Missing  []string // destinations of failed ones that are not configured, sorted
}

// Replay sends dead letters to their destination, in batches as they were,
// once. Those that it takes are dead letters no more. Invalid: there is no
// such destination.
func (r *Replayer) Replay(ctx context.Context, q ReplayRequest) (ReplayReport, error) {
	if q.To != "" && r.catalog.Destination(q.To) == nil {
		return ReplayReport{}, Errorf(Invalid, "there is no destination %q to replay to", q.To)
	}
	if q.Budget == 0 {
		q.Budget = replayTime
	}
	if q.Chunk == 0 {
		q.Chunk = replayChunk
	}
	if q.Lease == 0 {
		q.Lease = replayLease
	}
	run := replay{Replayer: r, request: q, until: r.ports.Clock.Now().Add(q.Budget), shut: make(map[string]bool)}
	err := run.all(ctx)
	// the failed ones stay leased until here, so that no chunk meets them twice
	if e := r.letters.Settle(context.WithoutCancel(ctx), nil, run.failed); err == nil {
		err = e
	}
	if err != nil {
		return run.report, err
	}
	run.report.Left = len(run.failed) + run.back
	left, err := r.letters.Count(ctx, q.Filter)
	if err != nil && CodeOf(err) != Canceled { // else there was no time to count
		return run.report, err
	}
	run.report.Left = max(run.report.Left, left)
	return run.report, nil
}

// replay is one call of Replay.
type replay struct {
	*Replayer
	request ReplayRequest
	until   Millis
	failed  []DeadLetter
	back    int             // letters given back because the time was over
	shut    map[string]bool // destinations whose breaker or rate limit leaves no time
	report  ReplayReport
}

// all takes letters for as long as there are some that may be sent. Where a chunk holds
// none, it leaves the rest: they would all be read for nothing.
func (r *replay) all(ctx context.Context) error {
	for ctx.Err() == nil && r.ports.Clock.Now() < r.until && !r.shut[r.request.To] {
		limit := r.request.Chunk
		if r.request.Max > 0 {
			limit = min(limit, r.request.Max-r.report.Replayed-r.report.Failed)
		}
		if limit == 0 {
			return nil
		}
		now := r.ports.Clock.Now()
		letters, err := r.letters.Take(ctx, r.request.Filter, limit, now, now.Add(r.request.Lease))
		if err != nil || len(letters) == 0 {
			return err
		}
		if err := r.chunk(ctx, letters); err != nil {
			return err
		}
		if !slices.ContainsFunc(letters, func(l DeadLetter) bool { return !r.shut[r.to(&l)] }) {
			return nil
		}
	}
	return nil
}

// chunk sends letters batch by batch: those whose destination has to be waited for when
// the others are through.
func (r *replay) chunk(ctx context.Context, letters []DeadLetter) error {
	later, err := r.round(ctx, letters, make(map[string]bool))
	if err != nil {
		return errors.Join(err, r.letters.Settle(context.WithoutCancel(ctx), nil, later))
	}
	_, err = r.round(ctx, later, nil)
	return err
}

// round sends letters batch by batch, and gives back what it does not get to. busy is
// for the destinations that have to be waited for, whose letters it returns; nil: it
// waits for them.
func (r *replay) round(ctx context.Context, letters []DeadLetter, busy map[string]bool) (later []DeadLetter, err error) {
	for len(letters) > 0 {
		if ctx.Err() != nil || r.ports.Clock.Now() >= r.until {
			r.back += len(letters)
			return later, r.letters.Settle(context.WithoutCancel(ctx), nil, letters)
		}
		n := 1
		for n < len(letters) && letters[n].Batch == letters[0].Batch && letters[n].Destination == letters[0].Destination {
			n++
		}
		aside, err := r.batch(ctx, letters[:n], busy)
		if err != nil {
			return later, errors.Join(err, r.letters.Settle(context.WithoutCancel(ctx), nil, letters[n:]))
		}
		if aside {
			later = append(later, letters[:n]...)
		}
		letters = letters[n:]
	}
	return later, nil
}

// batch sends letters of one batch and settles those that were taken, unless they are
// put aside.
func (r *replay) batch(ctx context.Context, letters []DeadLetter, busy map[string]bool) (aside bool, err error) {
	var done []DeadLetter
	taken, aside := r.send(ctx, letters, busy)
	if aside {
		return true, nil
	}
	for i := range letters {
		if taken.Has(i) {
			done = append(done, letters[i])
			continue
		}
		l := letters[i]
		l.Item = Item{} // to give it back, its name is enough
		r.failed = append(r.failed, l)
	}
	r.report.Replayed += len(done)
	r.report.Failed += len(letters) - len(done)
	return false, r.letters.Settle(context.WithoutCancel(ctx), done, nil)
}

// send makes one attempt, and returns which letters were taken. Why some were not
// even sent, the observer is told: of a destination that leaves no time, once.
func (r *replay) send(ctx context.Context, letters []DeadLetter, busy map[string]bool) (taken Bits, aside bool) {
	name := r.to(&letters[0])
	dest := r.catalog.Destination(name)
	if dest == nil {
		r.missing(name)
		return nil, false
	}
	if r.shut[name] || busy[name] {
		return nil, busy[name]
	}
	b := Batch{Buffer: letters[0].Buffer, Group: letters[0].Group, Reason: ReasonReplay, Attempt: letters[0].Attempts + 1}
	var at []int // where those that are sent were
	var lost, err error
	b.Items, at, lost = r.dressed(ctx, name, letters)
	var p *probe
	if len(at) > 0 {
		p, err = r.admitted(ctx, dest, busy == nil)
	}
	if err == errLater { //nolint:errorlint // it is returned as it is
		busy[name] = true
		return nil, true
	}
	r.unsent(len(letters)-len(at), letters, name, lost)
	if err != nil {
		r.shut[name] = true
		r.unsent(len(at), letters, name, err)
	}
	if err != nil || len(at) == 0 {
		return nil, false
	}
	b.ID = replayID(letters[0].Batch, b.Items)
	failed := r.attempt(ctx, dest, p, &b)
	for i, of := range at {
		if !failed.Has(i) {
			taken = taken.With(of)
		}
	}
	return taken, false
}

// attempt sends a batch, and returns which of its items were not taken.
func (r *replay) attempt(ctx context.Context, dest *Destination, p *probe, b *Batch) (failed Bits) {
	begin, g := r.ports.Clock.Now(), gate{&r.ports}
	resp, outcome := r.ports.send(ctx, r.catalog, dest, b)
	if outcome == Interrupted {
		g.unused(context.WithoutCancel(ctx), p) // it has shown nothing, so it is another's
	}
	g.outcome(context.WithoutCancel(ctx), dest, outcome)
	r.ports.Observer.attempt(&Attempt{
		Buffer: b.Buffer, Group: b.Group, Batch: b.ID, Destination: dest.Name,
		Items: len(b.Items), Bytes: b.Bytes(), Reason: b.Reason, Number: b.Attempt,
		Outcome: outcome, Status: resp.Status, Err: resp.Err,
		At: begin, Took: r.ports.Clock.Now().Sub(begin),
	})
	switch outcome {
	case Delivered:
		return nil
	case Partial:
		return resp.Failed
	default:
		return allBits(len(b.Items))
	}
}

// dressed is the items of letters as a destination's transform makes them, and
// whose they are. Those on which it fails are left out: why, says the first.
func (r *replay) dressed(ctx context.Context, to string, letters []DeadLetter) (items []Item, at []int, why error) {
	for i := range letters {
		it := letters[i].Item
		if err := r.catalog.hops[to].dress(ctx, &it.Event); err != nil {
			why = cmp.Or(why, Errorf(CodeOf(err), "%s: %s", letters[i].ID, DetailOf(err)))
			continue
		}
		items, at = append(items, it), append(at, i)
	}
	return items, at, why
}

// unsent tells why so many of a batch's letters are not sent.
func (r *replay) unsent(n int, of []DeadLetter, to string, why error) {
	if why != nil {
		r.ports.Observer.failed("replay dead letters",
			Errorf(CodeOf(why), "%d of batch %s were not sent to %s: %s", n, of[0].Batch, to, DetailOf(why)))
	}
}

// to is where a letter is sent.
func (r *replay) to(l *DeadLetter) string { return cmp.Or(r.request.To, l.Destination) }

// missing notes that a destination is not configured any more.
func (r *replay) missing(name string) {
	if at, known := slices.BinarySearch(r.report.Missing, name); !known {
		r.report.Missing = slices.Insert(r.report.Missing, at, name)
	}
}

func allBits(n int) Bits {
	var b Bits
	for i := range n {
		b = b.With(i)
	}
	return b
}

// replayID names the batch of items that a replay sends again. It stays the same
// for the same items, and differs from the original batch's and from that of any
// other part of it, so that no receiver drops one for the other.
func replayID(batch string, items []Item) string {
	h := fnv.New64a()
	for i := range items {
		fmt.Fprintf(h, "%d,", items[i].Seq)
	}
	return fmt.Sprintf("%s.r%x", batch, h.Sum64())
}

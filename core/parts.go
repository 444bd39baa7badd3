package core

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"time"
)

// parts is what a request appends, and what becomes of its events.
type parts struct {
	list    []Part
	of      []owner
	letters []DeadLetter // of events that can never be delivered
	fates   []fate       // of the events, in order; nil: nobody asks, as all are kept
	waits   bool         // somebody waits for the outcome
	unsure  bool         // which can't be known, or not in time
	changed bool         // a part's Change is made
	stored  []place      // where to look for it
	ids     []string     // of the events that it is awaited of, each once
	in      *input       // the event that programs run on
}

// owner is whose a part is.
type owner struct {
	*Subscription

	index []int // which events of the request it has, if somebody asks
	late  int   // so many of them have missed their time window
}

// fate is what becomes of one event.
type fate struct {
	kept   bool // by a buffer that is no shadow: it is stored, or a dead letter
	double bool // a buffer has had it before
	dead   bool
}

// place is where an event was stored.
type place struct {
	ref  Ref
	life string
	seq  uint64
}

// keepsAll reports whether a buffer that is no shadow keeps every event.
func (r *Route) keepsAll() bool {
	return slices.ContainsFunc(r.Subscriptions, func(s *Subscription) bool {
		return !s.Buffer.Shadow && s.Buffer.Dedupe == 0 && !s.programmed()
	})
}

// parts sorts events into groups, in the order in which they first occur.
func (in *Ingester) parts(ctx context.Context, route *Route, events []Event, now Millis) (*parts, error) {
	n := len(route.Subscriptions)
	p := &parts{list: make([]Part, 0, n), of: make([]owner, 0, n), waits: route.Source.AckDelivered}
	if p.waits || !route.keepsAll() {
		p.fates = make([]fate, len(events))
	}
	var at map[Ref]int
	if len(events) > 1 {
		at = make(map[Ref]int)
	}
	if err := in.sort(ctx, p, at, route, events, now); err != nil {
		return nil, err
	}
	in.copies(ctx, p, at, route, events, now)
	p.in = nil
	return p, nil
}

const (
	// programTime bounds what the filters and transforms of one request take, so
	// that its sender hears why before it gives up.
	programTime = 10 * time.Second
	// copyTime bounds what all copies of one request may keep it from its answer.
	copyTime = 100 * time.Millisecond
)

// sort puts the events into the parts of the buffers that are no shadows.
func (in *Ingester) sort(ctx context.Context, p *parts, at map[Ref]int, route *Route, events []Event, now Millis) error {
	working := ctx
	if slices.ContainsFunc(route.Subscriptions, (*Subscription).programmed) {
		var end context.CancelFunc
		working, end = context.WithTimeout(ctx, programTime)
		defer end()
	}
	for i := range events {
		for _, s := range route.Subscriptions {
			if s.Buffer.Shadow {
				continue
			}
			err := in.route(working, p, at, s, &events[i], i, now)
			switch {
			case ctx.Err() == nil && working.Err() != nil:
				return Errorf(Unavailable, "the filters and transforms took longer than %s, and were done with %d of %d events; send fewer at a time",
					programTime, i, len(events))
			case err != nil:
				return &EventError{Index: i, Err: err}
			}
		}
	}
	return nil
}

// programmed reports whether events run through a program on their way in.
func (s *Subscription) programmed() bool { return s.filter != nil || s.transform != nil }

// copies puts what is sampled of the events into the parts of shadows. Nothing
// fails for a copy, and little time passes: what is left by then is dropped.
func (in *Ingester) copies(ctx context.Context, p *parts, at map[Ref]int, route *Route, events []Event, now Millis) {
	if !slices.ContainsFunc(route.Subscriptions, func(s *Subscription) bool { return s.Buffer.Shadow }) {
		return
	}
	working, end := context.WithTimeout(context.WithoutCancel(ctx), copyTime)
	defer end()
	for i := range events {
		for _, s := range route.Subscriptions {
			if !s.Buffer.Shadow || !s.Sampled(events[i].ID) {
				continue
			}
			err := working.Err()
			if err == nil {
				err = in.route(working, p, at, s, &events[i], i, now)
			}
			switch {
			case err == nil:
			case working.Err() != nil:
				in.ports.Observer.shadow(s.Buffer.Name, ShadowDropped, 1)
			default:
				in.ports.Observer.shadow(s.Buffer.Name, ShadowFailed, 1)
			}
		}
	}
}

// route puts an event into its part for one buffer, if that wants it.
func (in *Ingester) route(ctx context.Context, p *parts, at map[Ref]int, s *Subscription, e *Event, i int, now Millis) error {
	if s.programmed() {
		out, keep, err := s.run(ctx, p.input(e))
		if err != nil {
			return Errorf(CodeOf(err), "buffer %s: %s", s.Buffer.Name, DetailOf(err))
		}
		if !keep {
			return nil
		}
		e = &out
	}
	if limit := in.ports.MaxEvent; limit > 0 && e.Size() > limit { // a transform can make it so
		return Errorf(TooLarge, "buffer %s: the event has %d bytes; the store takes at most %d", s.Buffer.Name, e.Size(), limit)
	}
	ref, late, err := s.Place(e, now)
	if err != nil {
		return err
	}
	due, err := s.Due(e)
	if err != nil {
		p.letters = append(p.letters, s.letter(ref, e, err, now))
		if p.fates != nil {
			p.fates[i].dead, p.fates[i].kept = true, true
		}
		return nil
	}
	if s.holds(due, now) {
		ref, late = s.hold(e, due), false
		p.unsure = true // it leaves as another, later
	}
	p.unsure = p.unsure || s.fold != nil && !s.Buffer.Shadow // it leaves in a row, which names no event
	k, ok := at[ref]
	if !ok {
		k = p.add(owner{Subscription: s}, s.part(ref))
		if at != nil {
			at[ref] = k
		}
	}
	p.list[k].Events = append(p.list[k].Events, *e)
	if p.fates != nil && !s.Buffer.Shadow {
		p.of[k].index = append(p.of[k].index, i)
	}
	if late {
		p.of[k].late++
	}
	return nil
}

// part is an empty part for one of the subscription's groups, or one in which
// its events are held. Only the first that stores an event looks for doubles.
func (s *Subscription) part(ref Ref) Part {
	part := Part{Ref: ref, Policy: s.policy(ref), Size: s.Buffer.Size, Shed: s.Buffer.Shadow, Dedupe: s.Buffer.Dedupe}
	if s.delay != nil && s.delay.held != nil && ref.Buffer != s.Buffer.Name {
		part.Policy = s.delay.held.policy(ref)
	}
	return part
}

// Fitting is the position behind the last of the part's events that are stored
// when there is room for so many, without the doubles, whose positions are known.
func (p *Part) Fitting(doubles []int, room int64) (end int) {
	for i := range p.Events {
		switch {
		case len(doubles) > 0 && doubles[0] == i:
			doubles = doubles[1:]
		case room <= 0:
			return end
		default:
			room--
			end = i + 1
		}
	}
	return end
}

// shed is how many of n events were left out, as there was no room.
func (a *Appended) shed(n int) int {
	n -= a.Stored
	for _, at := range a.Doubles {
		if at >= a.Stored {
			n--
		}
	}
	return n
}

// Sampled reports whether the buffer gets an event of some id, as a shadow does not
// get all of them: the same answer however often it is sent.
func (s *Subscription) Sampled(id string) bool {
	if !s.Buffer.Shadow || s.Buffer.Sample >= 1 {
		return true
	}
	h := sha256.Sum256([]byte(s.Buffer.Name + "/" + id))
	return float64(binary.BigEndian.Uint64(h[:])) < s.Buffer.Sample*math.MaxUint64
}

// letter is the dead letter of an event that has not even been stored: the same
// one when its sender sends it again.
func (s *Subscription) letter(ref Ref, e *Event, err error, now Millis) DeadLetter {
	h := sha256.New()
	for _, of := range []string{s.Buffer.Name, e.Source, e.ID} {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(of))))
		_, _ = h.Write([]byte(of))
	}
	_, _ = h.Write(e.Body) // an id may name several events: no letter is lost for that
	id := hex.EncodeToString(h.Sum(nil)[:16])
	return DeadLetter{
		ID: id + "/1", Batch: id, Buffer: s.Buffer.Name, Group: ref.Key, Destination: s.Destination.Name,
		Reason: DeadPermanent, Attempts: 0, FirstErrorAt: now, LastErrorAt: now,
		LastError: Cut(DetailOf(err), MaxAnswer), Item: Item{Event: *e, Seq: 1},
	}
}

func (p *parts) add(o owner, part Part) int {
	p.list, p.of = append(p.list, part), append(p.of, o)
	return len(p.list) - 1
}

// receipt sums up what became of the events.
func (p *parts) receipt(ids []string) Receipt {
	r := Receipt{IDs: ids}
	if p.fates == nil {
		r.Accepted = len(ids)
	}
	for i := range p.fates {
		switch f := &p.fates[i]; {
		case f.kept:
			r.Accepted++
		case f.double:
			r.Duplicates++
		default:
			r.Filtered++
		}
	}
	return r
}

// store makes a request durable: its parts, then its dead letters. Where these
// fail the whole is Unavailable: the parts are stored.
func (in *Ingester) store(ctx context.Context, now Millis, p *parts) error {
	if err := fit(p.list); err != nil {
		return err
	}
	if len(p.list) > 0 {
		if err := in.append(ctx, now, p); err != nil {
			return err
		}
	}
	if len(p.letters) == 0 {
		return nil
	}
	if err := in.ports.DeadLetters.Put(ctx, p.letters); err != nil {
		return Wrap(Unavailable, err, "an event that can't be delivered is no dead letter yet")
	}
	in.ports.Observer.deadLetters(p.letters)
	return nil
}

// maxMoves bounds how often the events of one request are moved on. Windows
// that have shipped though the clock has not reached them are few.
const maxMoves = 1000

// append makes the parts durable, then sends the hints that they ask for. What
// meets a window that has shipped is moved on into a later one.
func (in *Ingester) append(ctx context.Context, now Millis, p *parts) error {
	left := p
	for range maxMoves {
		for i := range left.list {
			left.list[i].Life = in.ports.IDs.New()
		}
		done, err := in.ports.Store.Append(ctx, now, left.list)
		in.hint(context.WithoutCancel(ctx), left, done) // what is in the store does not go with its sender
		if err != nil {
			return err
		}
		if left = in.left(p, left, done, now); left == nil {
			return nil
		}
	}
	return Errorf(Unavailable, "the time window closes again and again; try again")
}

// hint sends the hints that stored parts ask for: most ask for none; with an
// error, too, some may.
func (in *Ingester) hint(ctx context.Context, p *parts, done []Appended) {
	var hinted []int
	for i := range done {
		if done[i].Armed || done[i].Reached {
			hinted = append(hinted, i)
		}
	}
	sideBySide(len(hinted), func(n int) {
		i := hinted[n]
		part, a := &p.list[i], &done[i]
		if a.Armed {
			in.ports.armCheck(ctx, part.Policy, part.Ref, &Group{Life: a.Life, Rev: a.Rev, CheckAt: a.CheckAt})
		}
		if a.Reached {
			in.ports.hand(ctx, p.of[i].delivery(part.Ref, nil))
		}
	})
}

// left is what is still to be stored of a request because a group was closed:
// its own parts, moved on to the next window, and those that the store has left
// out with them. nil: everything is stored.
func (in *Ingester) left(all, p *parts, done []Appended, now Millis) *parts {
	var left *parts
	closed := slices.ContainsFunc(done, func(a Appended) bool { return a.Closed })
	for i := range done {
		part, o, a := p.list[i], p.of[i], &done[i]
		switch {
		case part.Change != nil && (a.Changed || !closed):
			all.changed = a.Changed
			continue
		case a.Shed:
			in.ports.Observer.shadow(part.Ref.Buffer, ShadowDropped, a.shed(len(part.Events)))
			in.ports.Observer.late(part.Ref.Buffer, min(o.late, a.Stored))
			continue
		case part.Change != nil: // it is to be made with what is moved on
		case a.First != 0 || len(a.Doubles) == len(part.Events):
			in.ports.Observer.late(part.Ref.Buffer, o.late)
			all.settle(&part, &o, a, len(part.Events))
			continue
		}
		if w, ok := o.Window(part.Ref); ok && a.Closed {
			all.settle(&part, &o, a, a.Stored)
			if part.Events = part.Events[a.Stored:]; len(part.Events) == 0 {
				continue
			}
			part.Ref.Key = windowKey(o.windows.next(w, now))
			part.Policy = o.policy(part.Ref)
			if o.index != nil {
				o.index = o.index[a.Stored:]
			}
			o.late = len(part.Events)
		}
		if left == nil {
			left = new(parts)
		}
		left.add(o, part)
	}
	return left
}

// settle notes what became of the first n events of a part; of copies, nobody asks.
func (p *parts) settle(part *Part, o *owner, a *Appended, n int) {
	if p.fates == nil || o.Buffer.Shadow || n == 0 {
		return
	}
	seq, doubles := a.First, a.Doubles
	for i, event := range o.index[:n] {
		if len(doubles) > 0 && doubles[0] == i {
			doubles = doubles[1:]
			p.fates[event].double = true
			p.unsure = true // what became of it, another request knows
			continue
		}
		p.fates[event].kept = true
		if p.waits {
			p.stored = append(p.stored, place{ref: part.Ref, life: a.Life, seq: seq})
		}
		seq++
	}
	p.unsure = p.unsure || a.Split || a.Closed && a.First == 0 // their numbers are not known
}

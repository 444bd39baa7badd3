package dynamo

import (
	"context"
	"crypto/rand"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sluice/core"
)

const (
	// longestAppend is how long a request may be at work that has marked ids.
	longestAppend = 30 * time.Second
	// longestNote is how long it may then take to say what became of them.
	longestNote = 5 * time.Second
	// markLease is how long a marker keeps others waiting when nothing says what
	// became of its event: by then its writer has given up.
	markLease = longestAppend + longestNote + 5*time.Second
)

// marker says who has an event of some id in hand, or has had. What became of
// it says the ticket, once for all the events of a part.
type marker struct {
	ticket string
	index  int         // the event's position in its part
	at     core.Millis // when it arrived
	until  core.Millis // the end of its lease
}

// marking is one event of a request, whose id is to be marked.
type marking struct {
	w      *writing
	i      int
	tried  bool
	double bool
}

// storeOnce stores what has not been stored before: it marks the ids, stores
// what is left of the parts, and notes how far that went. A note that fails is
// none: its events stay marked until the lease ends, and can be stored again.
func (s *Store) storeOnce(ctx context.Context, writings []writing) error {
	working, end := context.WithTimeout(ctx, longestAppend)
	defer end()
	err := s.mark(working, writings)
	if err == nil {
		err = s.store(working, writings)
	}
	noting, done := context.WithTimeout(context.WithoutCancel(ctx), longestNote)
	defer done()
	_ = each(len(writings), func(i int) error {
		if w := &writings[i]; w.marked && !w.unclear {
			s.note(noting, w)
		}
		return nil
	})
	return err
}

// mark marks the ids of all events whose buffers want no doubles, and leaves
// those that are out of their parts. Conflict: another request has one of
// them in hand; a part that may be shed is, instead.
func (s *Store) mark(ctx context.Context, writings []writing) error {
	all, ids := markings(writings)
	var stop atomic.Bool
	err := each(len(ids), func(n int) error {
		m := ids[n]
		if stop.Load() || m.w.failed.Load() {
			return nil
		}
		m.tried = true
		var err error
		if m.double, err = s.take(ctx, m); err != nil && m.w.Shed {
			m.w.failed.Store(true)
			return nil
		}
		if err != nil {
			stop.Store(true)
		}
		return err
	})
	for _, m := range ids {
		m.w.marked = m.w.marked || m.tried && !m.double
	}
	if err != nil {
		return err
	}
	for len(all) > 0 {
		n := len(all[0].w.Events)
		w := all[0].w
		w.answer.Shed = w.failed.Load()
		w.leaveOut(all[:n])
		all = all[n:]
	}
	return nil
}

// markings are the events of the parts that want no doubles, and those of them
// whose ids are to be marked: of those that are in the request twice the first.
func markings(writings []writing) (all []marking, ids []*marking) {
	type id struct{ buffer, id string }
	n := 0
	for i := range writings {
		if w := &writings[i]; w.Dedupe > 0 {
			n += len(w.Events)
		}
	}
	all = make([]marking, 0, n)
	firsts := make(map[id]struct{}, n)
	for i := range writings {
		w := &writings[i]
		if w.Dedupe <= 0 {
			continue
		}
		w.ticket = rand.Text()
		for j := range w.Events {
			all = append(all, marking{w: w, i: j})
			m, name := &all[len(all)-1], id{core.Owner(w.Ref.Buffer), w.Events[j].ID}
			if _, m.double = firsts[name]; !m.double {
				firsts[name] = struct{}{}
				ids = append(ids, m)
			}
		}
	}
	return all, ids
}

// leaveOut takes the doubles out of a part.
func (w *writing) leaveOut(markings []marking) {
	if !slices.ContainsFunc(markings, func(m marking) bool { return m.double }) {
		return
	}
	kept := *w.Part
	kept.Events = nil
	for i := range markings {
		if markings[i].double {
			w.doubles = append(w.doubles, i)
		} else {
			w.places = append(w.places, i)
			kept.Events = append(kept.Events, w.Events[i])
		}
	}
	w.Part = &kept
}

// through is the position in the caller's part behind its n-th event.
func (w *writing) through(n int) int {
	if n == 0 || w.places == nil {
		return n
	}
	return w.places[n-1] + 1
}

// take marks an id, unless it is one of an event that the buffer has stored:
// that is a double. Conflict: another has it in hand, or may have.
func (s *Store) take(ctx context.Context, m *marking) (double bool, err error) {
	w := m.w
	pk := markPlace(core.Owner(w.Ref.Buffer), w.Events[m.i].ID)
	mine := marker{ticket: w.ticket, index: m.i, at: w.now, until: s.opts.Clock.Now().Add(markLease)}
	was := marker{}
	for range attempts {
		met, err := s.saveMarker(ctx, pk, was, mine, w)
		switch {
		case err != nil:
			return false, err
		case met.ticket == mine.ticket:
			return false, nil
		case met.ticket != "": // else it has expired meanwhile
			stored, free, err := s.fate(ctx, met, w.repeats()...)
			switch {
			case err != nil:
				return false, err
			case stored && w.now.Sub(met.at).Abs() < w.Dedupe: // before it, when the clock was set back
				return true, nil
			case !stored && !free:
				return false, underWay()
			}
		}
		was = met
	}
	return false, underWay()
}

func underWay() error {
	return &core.Error{Code: core.Conflict, RetryAfter: time.Second,
		Detail: "another request has an event with one of these ids, and it is not yet known what becomes of it; try again in a moment"}
}

// fate is what became of an event that another request has marked: it is
// stored, or its id is free, or neither is known.
func (s *Store) fate(ctx context.Context, m marker, o ...func(*dynamodb.Options)) (stored, free bool, err error) {
	out, err := s.api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.opts.Table, Key: key(ticketPlace(m.ticket), 0), ConsistentRead: aws.Bool(true),
	}, o...)
	if err != nil {
		return false, false, failure(err, "look for a double")
	}
	if len(out.Item) > 0 {
		f := fields{item: out.Item}
		stored = int64(m.index) < f.int("n")
		return stored, !stored, f.err
	}
	now := s.opts.Clock.Now()
	free = now >= m.until || m.until > now.Add(2*markLease) // or a clock that was set back would catch up first
	return false, free, nil
}

// saveMarker puts a marker in the place of the one that was there, or of none,
// and returns the one that is there then: this one, unless another was faster.
func (s *Store) saveMarker(ctx context.Context, pk string, was, m marker, w *writing) (marker, error) {
	item := key(pk, 0)
	item["by"], item["at"], item["until"] = text(m.ticket), number(m.at), number(m.until)
	optional(item, "i", m.index)
	item[attrExpires] = number(seconds(max(m.at, s.opts.Clock.Now()).Add(w.Dedupe + markLease)))
	in := &dynamodb.PutItemInput{
		TableName: &s.opts.Table, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if was.ticket != "" {
		in.ConditionExpression = aws.String("#by = :was")
		in.ExpressionAttributeNames = map[string]string{"#by": "by"}
		in.ExpressionAttributeValues = attrs{":was": text(was.ticket)}
	}
	_, err := s.api.PutItem(ctx, in, w.repeats()...)
	met, conditional := refused(err)
	switch {
	case err == nil:
		return m, nil
	case !conditional:
		return marker{}, failure(err, "mark an event")
	case met == nil:
		out, err := s.api.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &s.opts.Table, Key: key(pk, 0), ConsistentRead: aws.Bool(true),
		}, w.repeats()...)
		if err != nil {
			return marker{}, failure(err, "mark an event")
		}
		met = out.Item
	}
	f := fields{item: met}
	return marker{ticket: f.text("by"), index: int(f.int("i")), at: f.millis("at"), until: f.millis("until")}, f.err
}

// note says what became of a part's events: the first are stored, and the ids
// of the others are free.
func (s *Store) note(ctx context.Context, w *writing) {
	item := key(ticketPlace(w.ticket), 0)
	item["n"] = number(w.through(w.stored))
	item[attrExpires] = number(seconds(max(w.now, s.opts.Clock.Now()).Add(w.Dedupe + markLease)))
	_, _ = insist(ctx, w.tries(), func() error {
		_, err := s.api.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.opts.Table, Item: item}, w.repeats()...)
		return err
	})
}

// insist makes one call until it succeeds, so many times at most. sure is whether
// an error means that it has done nothing: then the client must not repeat it by
// itself.
func insist(ctx context.Context, tries int, fn func() error) (sure bool, err error) {
	sure = true
	for try := 1; ; try++ {
		err = fn()
		sure = sure && (err == nil || throttled(err) || hopeless(err))
		if err == nil || try == tries || hopeless(err) || pause(ctx, backoff(try)) != nil {
			return sure, err
		}
	}
}

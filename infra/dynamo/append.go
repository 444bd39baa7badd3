package dynamo

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sluice/core"
	pack "sluice/infra/dynamo/segment"
)

// writing is one part on its way into its group's log.
type writing struct {
	*core.Part

	now    core.Millis
	bytes  int64
	answer core.Appended
	cut    bool  // its last events are left out, as there was no room for them
	offset int64 // the log's payload bytes before the part
	armed  bool  // some numbering of it has set checkAt
	unsure bool  // one may have numbered it without saying so
	stored int   // so many of its first events are in the log
	split  bool  // not all of them at the numbers that follow the answer's first

	failed  atomic.Bool // what may be shed: one of its ids could not be marked, or an event is too large
	ticket  string      // under which it marks the ids of its events; "": it marks none
	marked  bool        // it has marked some
	unclear bool        // whether more of it than is stored is in the log is not known
	places  []int       // where its events stand in the caller's part; nil: at the same places
	doubles []int       // where those stood that were left out of it
}

// tries is how often a call for the part is made until it succeeds. Nobody waits
// for what may be shed.
func (w *writing) tries() int {
	if w.Shed {
		return 1
	}
	return attempts
}

// repeats is the same for calls that the table's client repeats by itself.
func (w *writing) repeats() []func(*dynamodb.Options) {
	if w.Shed {
		return []func(*dynamodb.Options){once}
	}
	return nil
}

// spare returns what the request fails by: that is no error of a part that may
// be shed, which it sheds.
func (w *writing) spare(err error) error {
	if err == nil || !w.Shed {
		return err
	}
	w.answer.First, w.answer.Shed = 0, true
	return nil
}

// fit refuses what no segment could hold, before anything is marked or numbered:
// found later, some of the request would be stored. A part that may be shed is.
func (w *writing) fit() error {
	for i := range w.Events {
		if n := pack.Size(&w.Events[i]); n > maxSegmentBytes {
			if w.Shed {
				w.answer.Shed = true
				w.failed.Store(true)
				return nil
			}
			return core.Errorf(core.TooLarge, "an event for buffer %s takes %d bytes with its headers; the table holds at most %d", core.Owner(w.Ref.Buffer), n, maxSegmentBytes)
		}
	}
	return nil
}

// Append implements [core.Store]: it numbers every part, and then writes them.
// When one is refused a number nothing is written, and the numbers of the
// others are given up; what that has left to be done is in the answer. When
// one can't be written the others may be: the error is then Unavailable. A part
// whose group is closed is left out, as is one that may be shed, when its buffer
// is full or anything fails with it; some of it may be stored then.
func (s *Store) Append(ctx context.Context, now core.Millis, parts []core.Part) ([]core.Appended, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	writings := make([]writing, len(parts))
	dedupe := false
	for i := range parts {
		writings[i] = writing{Part: &parts[i], now: now}
		dedupe = dedupe || parts[i].Dedupe > 0
		if err := writings[i].fit(); err != nil {
			return nil, err
		}
	}
	store := s.store
	if dedupe {
		store = s.storeOnce
	}
	err := store(ctx, writings)
	if err == nil {
		s.sizes.add(writings)
	}
	return answers(writings), err
}

// store numbers and writes what is to be stored of the parts.
func (s *Store) store(ctx context.Context, writings []writing) error {
	if err := s.room(ctx, writings); err != nil {
		return err
	}
	groups := byGroup(writings)
	err := each(len(groups), func(i int) error {
		for _, w := range groups[i] { // a group's parts one after the other
			if err := w.spare(s.number(ctx, w)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		ctx := context.WithoutCancel(ctx)
		_ = each(len(groups), func(i int) error {
			s.giveUp(ctx, groups[i])
			return nil
		})
		return err
	}
	return each(len(groups), func(i int) error {
		for _, w := range groups[i] {
			if w.answer.Closed || w.answer.Shed {
				continue
			}
			if err := w.spare(s.write(ctx, w)); err != nil {
				return err
			}
		}
		return nil
	})
}

func answers(writings []writing) []core.Appended {
	a := make([]core.Appended, len(writings))
	for i := range writings {
		w := &writings[i]
		a[i] = w.answer
		a[i].Armed = w.armed
		a[i].Split = w.split && a[i].First != 0
		a[i].Shed = a[i].Shed || w.cut && !a[i].Closed
		if a[i].Closed || a[i].Shed {
			a[i].Stored = w.through(w.stored)
		}
		for _, at := range w.doubles {
			// what is behind a closing is left to the caller, doubles and all
			if !a[i].Closed || at < a[i].Stored {
				a[i].Doubles = append(a[i].Doubles, at)
			}
		}
	}
	return a
}

// byGroup sorts what is to be stored by the groups that are named, each in order.
func byGroup(writings []writing) [][]*writing {
	groups := make([][]*writing, 0, len(writings))
	at := make(map[core.Ref]int, len(writings))
	for i := range writings {
		w := &writings[i]
		if w.answer.Shed || len(w.Events) == 0 {
			continue
		}
		w.bytes = payload(w.Events)
		k, ok := at[w.Ref]
		if !ok {
			k = len(groups)
			at[w.Ref] = k
			groups = append(groups, nil)
		}
		groups[k] = append(groups[k], w)
	}
	return groups
}

// attempts is how often a numbering or a write is tried.
const attempts = 5

// number gets a part its sequence numbers, unless its group is closed. A call
// whose answer was lost may have numbered: those numbers are a hole like any
// other, and it numbers again. Full: the group's ceiling is reached.
func (s *Store) number(ctx context.Context, w *writing) error {
	if limit := w.Policy.CapItems; limit > 0 && len(w.Events) > limit {
		return w.full() // a new record would take any number
	}
	for try := 1; ; try++ {
		err := s.tryNumber(ctx, w)
		met, conditional := refused(err)
		switch {
		case err == nil:
			return nil
		case conditional:
			again, err := s.whyRefused(ctx, w, met)
			if err != nil || w.answer.Closed {
				return err
			}
			if !again || try == attempts {
				return w.full()
			}
		case try >= w.tries() || ctx.Err() != nil || hopeless(err):
			return failure(err, "store an event")
		default:
			w.now = max(w.now, s.opts.Clock.Now()) // or a slow table would make an old hole of it
			w.unsure = w.unsure || !throttled(err)
			if err := pause(ctx, backoff(try)); err != nil {
				return failure(err, "store an event")
			}
		}
	}
}

func (w *writing) full() error {
	return &core.Error{Code: core.Full, RetryAfter: time.Second,
		Detail: fmt.Sprintf("the group is full: it holds at most %d pending events (overflow.maxItems)", w.Policy.CapItems)}
}

// tryNumber is one call of the sequencer: an update of the record without any
// reading. It must not be repeated by the client, as it counts.
func (s *Store) tryNumber(ctx context.Context, w *writing) error {
	pk, hashed := place(w.Ref)
	n, check := len(w.Events), w.Policy.FirstCheck(w.now)
	set := "SET lastAt = :now, life = if_not_exists(life, :life), rev = if_not_exists(rev, :zero), " +
		"firstAt = if_not_exists(firstAt, :now), checkAt = if_not_exists(checkAt, :check), due = if_not_exists(due, :due)"
	remove := " REMOVE expires"
	var conditions []string
	values := attrs{
		":n": number(n), ":bytes": number(w.bytes), ":now": number(w.now), ":check": number(check),
		":life": text(w.Life), ":zero": number(0), ":due": text(dueShard(pk, s.opts.DueShards)),
	}
	in := &dynamodb.UpdateItemInput{
		TableName: &s.opts.Table, Key: key(pk, 0), ExpressionAttributeValues: values,
		ReturnValues: types.ReturnValueAllNew,
	}
	if w.Policy.CapItems > 0 {
		set += ", room = if_not_exists(room, :cap) - :n"
		values[":cap"] = number(w.Policy.CapItems)
		conditions = append(conditions, "(attribute_not_exists(life) OR room >= :n)")
	} else {
		remove += ", room"
	}
	if w.Policy.ShipAt != 0 {
		conditions = append(conditions, "attribute_not_exists(closed)")
	}
	if conditions != nil {
		in.ConditionExpression = aws.String(strings.Join(conditions, " AND "))
		in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	if hashed {
		set += ", #key = :key"
		values[":key"] = binary([]byte(w.Ref.Key))
		in.ExpressionAttributeNames = map[string]string{"#key": "key"}
	}
	in.UpdateExpression = aws.String(set + remove + " ADD tail :n, tailBytes :bytes")
	out, err := s.api.UpdateItem(ctx, in, once)
	if err != nil {
		return err
	}
	r, err := decode(out.Attributes)
	if err != nil {
		return err
	}
	armed := r.Tail-uint64(n) == r.Head // checkAt is set while anything is pending, and only then
	w.answer = r.Appended(n, w.bytes, armed, w.Policy)
	w.offset = r.TailBytes - w.bytes
	w.armed = w.armed || armed
	if w.unsure { // its lost numbers may be those that filled the group, or opened it
		w.armed = true
		w.answer.Reached = r.Wanted(w.Policy, w.now)
	}
	return nil
}

// once keeps the client from repeating a call.
func once(o *dynamodb.Options) { o.Retryer, o.RetryMaxAttempts = aws.NopRetryer{}, 1 }

// whyRefused looks at the record that has refused a numbering. If the group is
// closed, that is the answer, and whoever has closed it sees to what the part
// has left there. Otherwise it reports whether to try again: with the ceiling
// that the part's policy asks for, when the group had another.
func (s *Store) whyRefused(ctx context.Context, w *writing, met attrs) (again bool, err error) {
	r, err := decode(met)
	if met == nil {
		r, err = s.read(ctx, w.Ref)
	}
	switch {
	case err != nil:
		return false, err
	case r.Closed != 0 && w.Policy.ShipAt != 0:
		w.answer, w.armed = core.Appended{Closed: true}, false
		return false, nil
	case r.Life == "", w.Policy.CapItems == 0:
		return true, nil // it has expired meanwhile, and begins anew
	}
	_, err = s.update(ctx, w.Ref, &r.Group, func(g *core.Group) error {
		if again = g.Life == ""; again {
			return nil
		}
		rev := g.Rev
		g.Recap(w.Policy)
		again = g.Rev != rev
		return nil
	})
	return again, err
}

// giveUp fills the numbers that a group's parts were given, and that will never
// be used, so that no reader waits for them, and notes in the record that they
// are void. Where that fails it leaves a hole like any other.
func (s *Store) giveUp(ctx context.Context, group []*writing) {
	var last *writing
	voids, bytes := uint64(0), int64(0)
	for _, w := range group {
		if w.answer.First == 0 {
			continue
		}
		void := segment{first: w.answer.First, n: len(w.Events), at: w.now, offset: w.offset}
		if done, err := s.put(ctx, w.answer.Life, &void); err != nil || !done {
			continue
		}
		if last == nil || last.answer.Rev != w.answer.Rev || last.answer.Life != w.answer.Life {
			voids, bytes = 0, 0
		}
		last, voids, bytes = w, voids+uint64(void.n), bytes+w.bytes
	}
	if last == nil {
		return
	}
	g, err := s.update(ctx, last.Ref, nil, func(g *core.Group) error {
		// another transition may have found them void and counted them already:
		// to count them twice is worse than not at all
		if g.Life == last.answer.Life && g.Rev == last.answer.Rev {
			g.Voided(g.Void+voids, g.VoidBytes+bytes, last.Policy, last.now)
		}
		return nil
	})
	if err != nil {
		return
	}
	// an append behind may have found the group full already by these numbers
	last.answer.CheckAt, last.answer.Rev = g.CheckAt, g.Rev
	last.answer.Reached = g.Wanted(last.Policy, last.now)
}

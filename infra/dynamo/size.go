package dynamo

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"sluice/core"
)

// sizeAge is how long a process goes by the size of a buffer that it has read.
const sizeAge = 5 * time.Second

// sizes is what a process knows of the sizes of buffers: what was counted
// last, and what it has added itself since.
type sizes struct {
	mu    sync.Mutex
	known map[string]*size
}

type size struct {
	held    int64       // items, when they were counted
	counted core.Millis // when that was; 0: never
	read    core.Millis // when this was read
	added   int64       // by this process since
}

// room checks parts against the sizes of their buffers, as far as they are
// known: they are counted by [Store.Maintain]. Of one that may be shed those events
// are for which there is no room, or all when that can't be read. Full: another has
// no room.
func (s *Store) room(ctx context.Context, writings []writing) error {
	var asked map[string]int64
	for i := range writings {
		w := &writings[i]
		p := w.Part
		if p.Size == 0 || len(p.Events) == 0 || w.answer.Shed {
			continue
		}
		if asked == nil {
			asked = make(map[string]int64)
		}
		owner := core.Owner(p.Ref.Buffer)
		held, err := s.held(ctx, owner, w.repeats()...)
		more := asked[owner] + int64(len(p.Events))
		switch {
		case err == nil && held+more <= p.Size:
			asked[owner] = more
		case err == nil && p.Shed && held+asked[owner] < p.Size:
			w.keep(p.Size - held - asked[owner])
			asked[owner] = p.Size - held
		case p.Shed:
			w.answer.Shed = true
		case err != nil:
			return err
		default:
			return &core.Error{Code: core.Full, RetryAfter: time.Second,
				Detail: fmt.Sprintf("buffer %s is full: it holds at most %d events (size)", owner, p.Size)}
		}
	}
	return nil
}

// keep leaves all events but the first n out of a part.
func (w *writing) keep(n int64) {
	kept := *w.Part
	kept.Events = kept.Events[:n]
	w.Part, w.cut = &kept, true
}

// held is about how many items a buffer has.
func (s *Store) held(ctx context.Context, buffer string, o ...func(*dynamodb.Options)) (int64, error) {
	now := s.opts.Clock.Now()
	s.sizes.mu.Lock()
	z := s.sizes.known[buffer]
	if z != nil && z.read <= now && now < z.read.Add(sizeAge) {
		defer s.sizes.mu.Unlock()
		return z.held + z.added, nil
	}
	s.sizes.mu.Unlock()
	out, err := s.api.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.opts.Table, Key: key(sizePlace(buffer), 0)}, o...)
	if err != nil {
		return 0, failure(err, "read the size of a buffer")
	}
	f := fields{item: out.Item}
	at := f.millis("at")
	return s.sizes.set(buffer, f.int("held"), at, now, z == nil || z.counted != at), f.err
}

// set notes what was counted at a time, and returns the size. What this
// process has added before a new count is in that, or will be in the next.
func (z *sizes) set(buffer string, held int64, counted, now core.Millis, anew bool) int64 {
	z.mu.Lock()
	defer z.mu.Unlock()
	k := z.known[buffer]
	if k == nil {
		k = new(size)
		z.known[buffer] = k
	}
	if anew {
		k.added = 0
	}
	k.held, k.counted, k.read = held, counted, now
	return k.held + k.added
}

// add notes what a request has added to buffers of a limited size.
func (z *sizes) add(writings []writing) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for i := range writings {
		if k := z.known[core.Owner(writings[i].Ref.Buffer)]; k != nil && writings[i].Size > 0 { // without, it is one that was held, and counted
			k.added += int64(writings[i].stored)
		}
	}
}

// Maintain does what must be done every minute beside a sweep: it counts the
// items of the buffers whose size is limited, and keeps what has waited for
// half of the retention. Without such it costs next to nothing.
func (s *Store) Maintain(ctx context.Context, sized []string) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	for _, buffer := range sized {
		if err := s.count(ctx, buffer); err != nil {
			return err
		}
	}
	return s.keep(ctx)
}

// count counts the items of a buffer, for all processes.
func (s *Store) count(ctx context.Context, buffer string) error {
	now := s.opts.Clock.Now()
	refs, err := s.refs(ctx, buffer)
	if err != nil {
		return err
	}
	held, err := s.refs(ctx, core.Holder(buffer))
	if err != nil {
		return err
	}
	refs = append(refs, held...)
	slices.SortFunc(refs, compareRefs)
	groups, err := s.records(ctx, slices.Compact(refs))
	if err != nil {
		return err
	}
	var sum core.BufferStats
	for i := range groups {
		addTo(&sum, &groups[i].Group)
	}
	items := sum.Pending + sum.Claimed
	_, err = s.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.opts.Table, Key: key(sizePlace(buffer), 0),
		UpdateExpression:         aws.String("SET #held = :held, #at = :at"),
		ExpressionAttributeNames: map[string]string{"#held": "held", "#at": "at"},
		ExpressionAttributeValues: attrs{
			":held": number(items), ":at": number(now),
		},
	})
	if err != nil {
		return failure(err, "note the size of a buffer")
	}
	s.sizes.set(buffer, items, now, now, true)
	return nil
}

package core

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"sluice/core/fold"
	"sluice/core/render"
)

// leaseMargin is what a claim's lease lasts beyond the send's timeout: room
// to settle, and for clocks that differ.
const leaseMargin = 15 * time.Second

// flushRest is how often a group is checked that only a flush delivers, so that
// one whose settings have changed leaves.
const flushRest = 15 * time.Minute

// Subscription is a buffer with what it needs to take and deliver events.
type Subscription struct {
	Buffer      *Buffer
	Destination *Destination
	Policy      Policy // of its groups; a time window's has its deadline, too

	programs // what it does to events before they are grouped
	key      *render.Template
	orderKey *render.Template // what keeps its order in a sharded group; nil: none
	windows  *windows         // nil: none
	fold     *fold.Fold       // of its windows; nil: they leave as they are
	foldedBy string           // names the settings that rows are made by
	delay    *delay           // nil: none
	hops     []*hop           // the destination, then its fallbacks
}

func (k *Catalog) subscribe(b *Buffer) error {
	path := FieldPath("buffers", b.Name)
	key, err := render.Compile(b.GroupBy)
	if err != nil {
		return Wrap(Invalid, err, "%s.groupBy", path)
	}
	s := &Subscription{Buffer: b, Destination: k.hops[b.To].Destination, key: key}
	if s.programs, err = k.programs(path, b.Filter, b.Transform); err != nil {
		return err
	}
	s.hops = append(s.hops, k.hops[b.To])
	for _, name := range s.Destination.Fallbacks {
		s.hops = append(s.hops, k.hops[name])
	}
	s.Policy = Policy{
		MaxItems:    b.Batch.MaxItems,
		MaxBytes:    b.Batch.MaxBytes,
		IdleTimeout: b.Batch.IdleTimeout,
		MaxWait:     b.Batch.MaxWait,
		CapBytes:    b.Overflow.MaxBytes,
		CapItems:    b.Overflow.MaxItems,
		Ordered:     b.Ordered,
		Concurrency: b.Concurrency,
		Lease:       cmp.Or(b.RecoverAfter, s.Longest()+leaseMargin),
		MaxHold:     s.maxHold(),
		Rest:        restOf(b),
	}
	if b.Shadow {
		s.Policy.CapItems = 0 // a request is not refused for a copy: its size bounds it
	}
	if b.OrderKey != "" {
		if s.orderKey, err = render.Compile(b.OrderKey); err != nil {
			return Wrap(Invalid, err, "%s.ordering.key", path)
		}
	}
	if b.Window != nil {
		if s.windows, err = newWindows(b, k.config.Store.Retention); err != nil {
			return Wrap(Invalid, err, "%s.window.time", path)
		}
	}
	if err := s.folds(b); err != nil {
		return err
	}
	if err := k.delays(s); err != nil {
		return err
	}
	k.buffers[b.Name] = s
	for _, from := range b.From {
		r := k.routes[from]
		r.Subscriptions = append(r.Subscriptions, s)
	}
	return nil
}

// Longest is the longest that one send may take, to the destination or one of
// its fallbacks.
func (s *Subscription) Longest() time.Duration {
	var longest time.Duration
	for _, h := range s.hops {
		longest = max(longest, h.Timeout)
	}
	return longest
}

// maxHold is the longest that a claim may wait for its next attempt.
func (s *Subscription) maxHold() time.Duration {
	var longest time.Duration
	for _, h := range s.hops {
		longest = max(longest, h.Retry.Max)
		if h.Breaker != nil {
			longest = max(longest, h.Breaker.Cooldown)
		}
		if h.RateLimit != nil {
			longest = max(longest, h.RateLimit.Per)
		}
	}
	return longest
}

// folds compiles how a buffer's windows are folded.
func (s *Subscription) folds(b *Buffer) error {
	s.foldedBy = "items"
	if len(b.Fold) == 0 {
		return nil
	}
	var err error
	if s.fold, err = fold.Compile(b.Fold); err != nil {
		return Wrap(Invalid, err, "buffers.%s.fold", b.Name)
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q", b.GroupBy, b.Fold)
	s.foldedBy = strconv.FormatUint(h.Sum64(), 36)
	return nil
}

// restOf is how often a group is checked that only a flush delivers; 0: it leaves
// by itself.
func restOf(b *Buffer) time.Duration {
	if b.FlushEvery == 0 {
		return 0
	}
	return flushRest
}

// MaxKeyBytes bounds a group key, in bytes.
const MaxKeyBytes = 2 << 10

// Key renders the group that an event belongs to, or within its time window the
// row, whatever its unit: that is not stored, so no fold would see it. Invalid:
// the template fails on the event, or the key is too long.
func (s *Subscription) Key(e *Event) (string, error) {
	if s.Buffer.GroupBy == "" && e.Unit != "" && s.windows == nil {
		return e.Unit, nil
	}
	key, err := s.key.Execute(view{e})
	if err != nil {
		return "", Errorf(Invalid, "the group key of buffer %s, %s, fails on this event: %v", s.Buffer.Name, s.key, err)
	}
	if len(key) > MaxKeyBytes {
		return "", Errorf(Invalid, "the group key of buffer %s has %d bytes; at most %d are allowed", s.Buffer.Name, len(key), MaxKeyBytes)
	}
	return key, nil
}

// Place is the group that an event belongs to at now. late says that it has been
// moved on, as its time window counts as shipped. Invalid, TooLarge: the buffer
// does not take the event.
func (s *Subscription) Place(e *Event, now Millis) (ref Ref, late bool, err error) {
	if limit := s.Policy.CapBytes; e.Size() > limit {
		return Ref{}, false, Errorf(TooLarge, "the event has %d bytes; buffer %s takes at most %d (overflow.maxBytes)", e.Size(), s.Buffer.Name, limit)
	}
	key, err := s.Key(e)
	if err != nil {
		return Ref{}, false, err
	}
	if s.windows == nil {
		of := e.ID
		if s.orderKey != nil {
			if of, err = s.orderKey.Execute(view{e}); err != nil {
				return Ref{}, false, Errorf(Invalid, "the ordering key of buffer %s, %s, fails on this event: %v", s.Buffer.Name, s.orderKey, err)
			}
		}
		return Ref{Buffer: s.Buffer.Name, Key: key, Shard: s.shard(of)}, false, nil
	}
	if s.fold != nil {
		if err := s.fold.Check(view{e}); err != nil {
			return Ref{}, false, Errorf(Invalid, "buffer %s does not take the event: %v", s.Buffer.Name, err)
		}
	}
	window, late, err := s.windows.of(e, now)
	if err != nil {
		return Ref{}, false, Errorf(CodeOf(err), "buffer %s does not take the event: %s", s.Buffer.Name, DetailOf(err))
	}
	return Ref{Buffer: s.Buffer.Name, Key: window, Shard: s.shard(key)}, late, nil
}

// shard is the shard for what is to stay together: a row of a time window, or an
// event however often it is sent.
func (s *Subscription) shard(of string) int {
	if s.Buffer.Shards <= 1 {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(of)) // never fails
	return int(h.Sum32() % uint32(s.Buffer.Shards))
}

// delivery is the delivery of one of the subscription's groups, which has been
// read as seen, or not if that is nil.
func (s *Subscription) delivery(ref Ref, seen *Group) Delivery {
	return Delivery{Ref: ref, Destination: s.Destination.Name, Seen: seen}
}

// view shows an event to a template.
type view struct{ e *Event }

func (v view) ID() string     { return v.e.ID }
func (v view) Source() string { return v.e.Source }
func (v view) Body() []byte   { return v.e.Body }
func (v view) JSON() bool     { return v.e.JSON }

func (v view) Header(name string) string {
	for _, h := range v.e.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

func (v view) Headers() map[string]string {
	m := make(map[string]string, len(v.e.Headers))
	for _, h := range v.e.Headers {
		if _, ok := m[h.Name]; !ok {
			m[h.Name] = h.Value
		}
	}
	return m
}

// String names the group for people.
func (r Ref) String() string {
	if r.Shard == 0 {
		return fmt.Sprintf("%s/%q", r.Buffer, r.Key)
	}
	return fmt.Sprintf("%s/%q#%d", r.Buffer, r.Key, r.Shard)
}

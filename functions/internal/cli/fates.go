package cli

import (
	"slices"
	"strings"

	"sluice/core"
)

// maxShown bounds what is shown of an event that a transform has made, in bytes.
const maxShown = 1 << 10

// source adds what the event's source makes of it.
func (e *explanation) source(cfg *core.Config) {
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		if s.Name != e.Source {
			continue
		}
		if s.AckDelivered {
			e.Waits = s.RespondTimeout.Milliseconds()
		}
		if e.Queue = s.Type == core.TypeSQS; !e.Queue {
			continue
		}
		e.ID = "" // it is its message's
		switch {
		case core.IsReference(string(s.Queue)):
			e.messageGroup = possible
		case strings.HasSuffix(string(s.Queue), ".fifo"):
			e.messageGroup = certain
		}
	}
}

// routes adds what would become of the event in each buffer that reads its
// source, as the store was asked to keep it.
func (e *explanation) routes(catalog *core.Catalog, store *onlooker, now core.Millis) {
	for _, sub := range catalog.Route(e.Source).Subscriptions {
		r := routedThen{Buffer: sub.Buffer.Name, Filter: sub.Buffer.Filter, Transform: sub.Buffer.Transform, Shadow: sub.Buffer.Shadow}
		if r.Shadow {
			r.Sample = sub.Buffer.Sample
		}
		part := store.of(r.Buffer)
		letter := slices.IndexFunc(store.letters, func(l core.DeadLetter) bool { return l.Buffer == r.Buffer })
		switch {
		case part != nil:
			r.then(catalog, sub, part, now)
			if r.GroupBy == "" && r.Window == nil {
				r.MessageGroup = e.messageGroup
			}
		case letter >= 0:
			r.DeadLetter = store.letters[letter].LastError
		default:
			r.Dropped = dropped(sub, e, slices.Contains(store.failed, r.Buffer))
		}
		e.Routes = append(e.Routes, r)
	}
}

// of is the part for a buffer, even if it is held at first, or nil.
func (s *onlooker) of(buffer string) *core.Part {
	for i := range s.parts {
		if name, _ := core.Held(s.parts[i].Ref.Buffer); name == buffer {
			return &s.parts[i]
		}
	}
	return nil
}

// dropped is why a buffer does not get an event.
func dropped(s *core.Subscription, e *explanation, failed bool) string {
	b := s.Buffer
	switch {
	case failed:
		return "it is a copy on which the buffer fails"
	case b.Shadow && b.Sample < 1 && e.Queue:
		return "its message's id may be in the sample, or not"
	case b.Shadow && b.Sample < 1 && e.ID == "":
		return "a new id may be in the sample, or not"
	case !s.Sampled(e.ID):
		return "it is not in the sample"
	case b.Transform == "":
		return "by the filter"
	case b.Filter == "":
		return "the transform makes nothing of it"
	}
	return "by the filter, or the transform makes nothing of it"
}

// then is what becomes of an event that a buffer gets.
func (r *routedThen) then(catalog *core.Catalog, s *core.Subscription, part *core.Part, now core.Millis) {
	b, event := s.Buffer, &part.Events[0]
	r.Group, r.GroupBy, r.Ordered, r.OrderKey = part.Ref.Key, b.GroupBy, b.Ordered, b.OrderKey
	r.DedupeMs = b.Dedupe.Milliseconds()
	if r.Transform != "" {
		r.Becomes = core.Cut(string(event.Body), maxShown)
	}
	if at, err := s.Due(event); err == nil && at > now {
		r.HeldUntil = at.String()
	}
	if part.Ref.Buffer != b.Name { // it is held where it has no group yet
		ref, _, _ := s.Place(event, now) // it has been placed before
		r.Group = ref.Key
	}
	r.Window, r.FlushEvery = windowed(s, part, now), b.FlushEvery.Milliseconds()
	r.Conditions = &conditions{
		MaxItems: b.Batch.MaxItems, MaxBytes: b.Batch.MaxBytes,
		IdleTimeoutMs: b.Batch.IdleTimeout.Milliseconds(), MaxWaitFromFirstMs: b.Batch.MaxWait.Milliseconds(),
	}
	if b.Size > 0 || b.Overflow.MaxItems > 0 {
		r.Room = &room{Buffer: b.Size, Group: b.Overflow.MaxItems}
	}
	to := toward(s.Destination)
	for _, name := range s.Destination.Fallbacks {
		to.Fallbacks = append(to.Fallbacks, toward(catalog.Destination(name)))
	}
	r.Destination = &to
}

type destinationTo struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	To     string `json:"to,omitempty"` // its URL, path, queue, or bucket and key
	Format string `json:"format"`

	Filter    string          `json:"filter,omitempty"` // its own
	Transform string          `json:"transform,omitempty"`
	Breaker   *breakerTo      `json:"breaker,omitempty"`
	RateLimit *rateLimitTo    `json:"rateLimit,omitempty"`
	Fallbacks []destinationTo `json:"fallbacks,omitempty"` // in the order in which they are tried
}

type breakerTo struct {
	Failures   int   `json:"failures"` // in a row
	CooldownMs int64 `json:"cooldownMs"`
}

type rateLimitTo struct {
	Requests int   `json:"requests"`
	PerMs    int64 `json:"perMs"`
}

func toward(d *core.Destination) destinationTo {
	to := destinationTo{Name: d.Name, Type: d.Type, To: endpoint(d), Format: d.Format, Filter: d.Filter, Transform: d.Transform}
	if b := d.Breaker; b != nil {
		to.Breaker = &breakerTo{b.Failures, b.Cooldown.Milliseconds()}
	}
	if l := d.RateLimit; l != nil {
		to.RateLimit = &rateLimitTo{l.Requests, l.Per.Milliseconds()}
	}
	return to
}

// windowed is the time window that a part is, or nil.
func windowed(s *core.Subscription, part *core.Part, now core.Millis) *windowThen {
	c := s.Buffer.Window
	if c == nil {
		return nil
	}
	w := &windowThen{ShipsAt: part.Policy.ShipAt.String(), GraceMs: c.Grace.Milliseconds(), Time: c.Time}
	w.Start, w.End, _ = strings.Cut(part.Ref.Key, "/")
	event := &part.Events[0]
	_, w.Late, _ = s.Place(event, now) // it has been placed before
	w.Row, _ = s.Key(event)
	for i := range s.Buffer.Fold {
		w.Fold = append(w.Fold, s.Buffer.Fold[i].Name)
	}
	return w
}

// endpoint is a destination's URL or path, its queue, or its bucket and the
// template of keys there; the last two as they are written, perhaps by reference. A
// query may hold a secret.
func endpoint(d *core.Destination) string {
	switch d.Type {
	case core.TypeSQS:
		return d.Queue
	case core.TypeS3:
		return "s3://" + d.Bucket + "/" + d.Key
	}
	if u, query, found := strings.Cut(d.URL, "?"); found && query != "" {
		return u + "?…"
	}
	return d.URL + d.Path
}

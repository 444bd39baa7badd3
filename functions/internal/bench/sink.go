package bench

import (
	"bytes"
	"context"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Sink is the destination: it takes deliveries in NDJSON and keeps count of
// what a buffer must get right.
type Sink struct {
	idle, wait time.Duration // the buffer's deadlines, for lateness

	mu     sync.Mutex
	batch  []uint64 // by event id: hash of the webhook-id it came under; 0: not delivered
	last   []uint64 // by key: the newest id, plus one
	counts Counts
	late   []lateness
}

// Counts is what a sink has seen.
type Counts struct {
	Batches   uint64
	Delivered uint64 // distinct events
	Doubled   uint64 // events delivered once more
	Strayed   uint64 // of these, under another webhook-id
	Mixed     uint64 // batches with events of several groups
	Reordered uint64 // events older than one that their group has delivered
	Damaged   uint64 // lines that are no event, and batches without a webhook-id
}

// lateness is when a batch that a deadline closed came, against that deadline.
type lateness struct {
	deadline time.Time
	late     time.Duration // negative: early
}

// NewSink makes the sink of a buffer with these deadlines.
func NewSink(idle, wait time.Duration) *Sink { return &Sink{idle: idle, wait: wait} }

// Serve takes deliveries on a free port of the loopback address until ctx
// ends, which stop waits for.
func (s *Sink) Serve(ctx context.Context) (url string, stop func(), err error) {
	return serveLoopback(ctx, s)
}

// ServeHTTP takes one delivery.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body ended early", http.StatusBadRequest)
		return
	}
	s.take(r.Header, body, time.Now())
}

// take counts one delivery.
func (s *Sink) take(h http.Header, body []byte, now time.Time) {
	name := fnv.New64a()
	_, _ = io.WriteString(name, h.Get("Webhook-Id")) // a hash takes all it is given
	batch := name.Sum64() | 1                        // never zero
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.Batches++
	if h.Get("Webhook-Id") == "" {
		s.counts.Damaged++
	}
	var first, newest event
	n, mixed := 0, false
	for line := range bytes.SplitSeq(bytes.TrimSuffix(body, []byte("\n")), []byte("\n")) {
		e, ok := readEvent(line)
		if !ok {
			s.counts.Damaged++
			continue
		}
		s.note(e, batch)
		if n++; n == 1 {
			first, newest = e, e
		}
		mixed = mixed || e.key != first.key
		first.sent, newest.sent = min(first.sent, e.sent), max(newest.sent, e.sent)
	}
	if mixed {
		s.counts.Mixed++
	}
	if reason := h.Get("Sluice-Reason"); n > 0 && (reason == "idle" || reason == "wait") {
		at := earlier(time.Unix(0, first.sent).Add(s.wait), time.Unix(0, newest.sent).Add(s.idle))
		s.late = append(s.late, lateness{deadline: at, late: now.Sub(at)})
	}
}

// note counts one event.
func (s *Sink) note(e event, batch uint64) {
	s.batch = reach(s.batch, e.id)
	s.last = reach(s.last, e.key)
	if was := s.batch[e.id]; was != 0 {
		s.counts.Doubled++
		if was != batch {
			s.counts.Strayed++
		}
		return
	}
	s.batch[e.id] = batch
	s.counts.Delivered++
	if e.id+1 < s.last[e.key] {
		s.counts.Reordered++
	}
	s.last[e.key] = max(s.last[e.key], e.id+1)
}

// reach is list, made long enough to hold place i.
func reach(list []uint64, i uint64) []uint64 {
	if i < uint64(len(list)) {
		return list
	}
	return append(list, make([]uint64, i+1-uint64(len(list)))...)
}

// Counts is what has been seen so far.
func (s *Sink) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Missing is how many accepted events have not been delivered.
func (s *Sink) Missing(sent *Sent) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n uint64
	for id := range sent.IDs() {
		if id >= uint64(len(s.batch)) || s.batch[id] == 0 {
			n++
		}
	}
	return n
}

// Drain waits until every accepted event is delivered, or nothing has come for
// patience, and returns how many are missing.
func (s *Sink) Drain(ctx context.Context, sent *Sent, patience time.Duration) uint64 {
	seen, since := s.Counts(), time.Now()
	for {
		now := s.Counts()
		if now.Delivered >= sent.Accepted && s.Missing(sent) == 0 {
			return 0
		}
		if now != seen {
			seen, since = now, time.Now()
		}
		if time.Since(since) > patience || !pause(ctx, 20*time.Millisecond) {
			return s.Missing(sent)
		}
	}
}

// Lateness is how late each batch came whose deadline lies between two times,
// sorted.
func (s *Sink) Lateness(from, to time.Time) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var late []time.Duration
	for _, l := range s.late {
		if l.deadline.After(from) && l.deadline.Before(to) {
			late = append(late, l.late)
		}
	}
	slices.Sort(late)
	return late
}

// earlier is the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// serveLoopback serves h on a free port of the loopback address until ctx ends
// or stop is called; stop returns when nothing of it runs any more.
func serveLoopback(ctx context.Context, h http.Handler) (url string, stop func(), err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: answerTimeout}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends when it is closed, as it is below
	}()
	unwatch := context.AfterFunc(ctx, func() { _ = server.Close() })
	return "http://" + l.Addr().String(), func() {
		unwatch()
		_ = server.Close()
		<-done
	}, nil
}

package bench

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Load is a stream of events to send. Each connection has one request in
// flight: in a closed loop (Rate 0) the next follows the answer at once, in an
// open one requests leave by the clock.
type Load struct {
	URL      string
	Conns    int
	PerPost  int                              // events per request; more than one go as NDJSON
	Size     int                              // bytes per event
	Key      func(conn int, id uint64) uint64 // an event's group
	Rate     float64                          // events a second; 0: as many as are answered
	Warmup   time.Duration                    // before the window that counts
	Duration time.Duration                    // of the window; 0: until Events or ctx ends it
	Events   uint64                           // stop after sending so many; 0: no such bound
	Progress *atomic.Uint64                   // if not nil, counts the events accepted so far
}

// keysOf spreads events over so many keys, each of which belongs to one
// connection, so that its events have one order.
func keysOf(keys, conns int) func(int, uint64) uint64 {
	per := uint64(max(1, keys/conns))
	return func(conn int, id uint64) uint64 {
		return scatter(id)%per*uint64(conns) + uint64(conn)
	}
}

// scatter is a mix of n's bits: the finalizer of MurmurHash3, by A. Appleby.
func scatter(n uint64) uint64 {
	n ^= n >> 33
	n *= 0xff51afd7ed558ccd
	n ^= n >> 33
	n *= 0xc4ceb9fe1a85ec53
	return n ^ n>>33
}

// Sent is what came of a load.
type Sent struct {
	Accepted  uint64          // events answered with a 2xx
	InWindow  uint64          // of these, begun within the window
	Refused   uint64          // requests answered otherwise
	Broken    uint64          // requests without an answer
	Refusal   string          // the first refusal
	Latencies []time.Duration // of the accepted requests in the window, sorted
	Window    time.Duration   // to the last answer that counts
	Begun     time.Time

	perPost uint64
	firsts  [][]uint64 // by connection: first id of each accepted request
}

// Rate is the events accepted per second of the window.
func (s *Sent) Rate() float64 { return float64(s.InWindow) / s.Window.Seconds() }

// IDs are the ids of the accepted events.
func (s *Sent) IDs() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, firsts := range s.firsts {
			for _, first := range firsts {
				for id := first; id < first+s.perPost; id++ {
					if !yield(id) {
						return
					}
				}
			}
		}
	}
}

// Run sends the load. It ends early, with what has been sent, when ctx does.
func (l *Load) Run(ctx context.Context) (*Sent, error) {
	u, err := url.Parse(l.URL)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	if l.Size < minEvent {
		return nil, fmt.Errorf("load: an event has at least %d bytes", minEvent)
	}
	r := &stream{Load: l, host: u.Host, header: l.header(u), begun: time.Now()}
	r.opens = r.begun.Add(l.Warmup)
	if l.Duration > 0 {
		r.closes = r.opens.Add(l.Duration)
	}
	workers := make([]*worker, l.Conns)
	var wg sync.WaitGroup
	for i := range workers {
		workers[i] = newWorker(r, i)
		wg.Go(func() { workers[i].run(ctx) })
	}
	wg.Wait()
	return r.sum(workers), nil
}

// header is the head of every request: events are of one size, and so are bodies.
func (l *Load) header(u *url.URL) []byte {
	kind := "application/json"
	if l.PerPost > 1 {
		kind = "application/x-ndjson"
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n",
		u.RequestURI(), u.Host, kind, l.PerPost*(l.Size+1)-1)
}

// stream is one run of a load.
type stream struct {
	*Load
	host   string
	header []byte
	begun  time.Time
	opens  time.Time // the window's ends
	closes time.Time // zero: open
	ids    atomic.Uint64
	ticks  atomic.Uint64
}

func (r *stream) sum(workers []*worker) *Sent {
	s := &Sent{perPost: uint64(r.PerPost), Begun: r.begun}
	for _, w := range workers {
		s.Accepted += uint64(len(w.firsts)) * s.perPost
		s.InWindow += uint64(len(w.latencies)) * s.perPost
		s.Window = max(s.Window, w.last.Sub(r.opens))
		s.Refused += w.refused
		s.Broken += w.broken
		if s.Refusal == "" {
			s.Refusal = w.refusal
		}
		s.firsts = append(s.firsts, w.firsts)
		s.Latencies = append(s.Latencies, w.latencies...)
	}
	slices.Sort(s.Latencies)
	return s
}

// next waits for the time of a connection's n-th request, or reports that the
// load is over. from is when the request begins; in an open loop that is its
// scheduled time if the connection was still busy then, or a slow server would
// hide its own queue. The first request is always sent, so that a busy machine
// measures something.
func (r *stream) next(ctx context.Context, n int) (from time.Time, ok bool) {
	now := time.Now()
	if r.Rate > 0 {
		n = int(r.ticks.Add(1) - 1)
		at := r.begun.Add(time.Duration(float64(n) * float64(r.PerPost) / r.Rate * float64(time.Second)))
		if pause(ctx, at.Sub(now)); now.After(at) {
			now = at
		} else {
			now = time.Now()
		}
	}
	over := ctx.Err() != nil || n > 0 && !r.closes.IsZero() && now.After(r.closes)
	return now, !over
}

// worker is one connection of a stream.
type worker struct {
	*stream
	number  int
	conn    conn
	request []byte // header and body, whose digits are written anew each time

	firsts    []uint64
	latencies []time.Duration
	last      time.Time // answer within the window
	refused   uint64
	broken    uint64
	refusal   string
}

func newWorker(r *stream, number int) *worker {
	w := &worker{stream: r, number: number, conn: conn{addr: r.host}}
	random := rand.New(rand.NewPCG(1, uint64(number)))
	events := make([][]byte, r.PerPost)
	for i := range events {
		events[i] = newEvent(r.Size, random)
	}
	w.request = append(slices.Clone(r.header), bytes.Join(events, []byte("\n"))...)
	return w
}

func (w *worker) run(ctx context.Context) {
	defer w.conn.close()
	for n := 0; ; n++ {
		from, ok := w.next(ctx, n)
		if !ok {
			return
		}
		first := w.ids.Add(uint64(w.PerPost)) - uint64(w.PerPost)
		if w.Events > 0 && first >= w.Events {
			return
		}
		w.write(first)
		status, body, err := w.conn.post(ctx, w.request)
		switch {
		case err != nil:
			w.broken++
			pause(ctx, 5*time.Millisecond) // the server is away: do not spin
		case status/100 != 2:
			w.refused++
			if w.refusal == "" {
				w.refusal = fmt.Sprintf("%d %s", status, body)
			}
			pause(ctx, 5*time.Millisecond)
		default:
			w.accept(first, from)
		}
	}
}

// write puts the next events' digits into the request.
func (w *worker) write(first uint64) {
	at := len(w.header)
	for id := first; id < first+uint64(w.PerPost); id++ {
		e := event{key: w.Key(w.number, id), id: id, sent: time.Now().UnixNano()}
		e.write(w.request[at:])
		at += w.Size + 1
	}
}

func (w *worker) accept(first uint64, from time.Time) {
	w.firsts = append(w.firsts, first)
	if w.Progress != nil {
		w.Progress.Add(uint64(w.PerPost))
	}
	if !from.Before(w.opens) {
		w.last = time.Now()
		w.latencies = append(w.latencies, w.last.Sub(from))
	}
}

// pause waits, not at all if d is negative, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

package scenario

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Delivery is one request that a sink has received.
type Delivery struct {
	At     time.Time
	Path   string // which tells destinations apart that have the same sink
	Header http.Header
	Lines  []string
}

// ID is the id of the batch.
func (d *Delivery) ID() string { return d.Header.Get("Webhook-Id") }

// Reason is why the batch has left.
func (d *Delivery) Reason() string { return d.Header.Get("Sluice-Reason") }

// Oldest is when the batch's oldest event arrived.
func (d *Delivery) Oldest(t testing.TB) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, d.Header.Get("Sluice-Oldest"))
	require.NoError(t, err)
	return at
}

// Answer is what a sink answers with.
type Answer struct {
	Status     int // 0: 200
	Body       string
	RetryAfter string // the header, if any
}

// Stage is how far a sink is with a delivery.
type Stage string

// The stages.
const (
	Received Stage = "received" // and not answered
	Answered Stage = "answered" // all of it is on its way
)

// Sink is a destination that keeps what it receives.
type Sink struct {
	*httptest.Server

	got chan Delivery

	mu     sync.Mutex
	answer func(Delivery) Answer
	tap    func(Stage)
}

// NewSink starts a sink, which ends with the test. A nil answer takes everything.
func NewSink(t testing.TB, answer func(Delivery) Answer) *Sink {
	t.Helper()
	s := &Sink{got: make(chan Delivery, 100_000), answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(s.receive))
	t.Cleanup(s.Close)
	return s
}

func (s *Sink) receive(w http.ResponseWriter, r *http.Request) {
	d := Delivery{At: time.Now(), Path: r.URL.Path, Header: r.Header}
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		d.Lines = append(d.Lines, lines.Text())
	}
	if lines.Err() != nil {
		return // the sender was killed
	}
	s.mu.Lock()
	answer, tap := s.answer, s.tap
	s.mu.Unlock()
	if tap != nil {
		tap(Received)
	}
	s.got <- d
	var a Answer
	if answer != nil {
		a = answer(d)
	}
	if a.RetryAfter != "" {
		w.Header().Set("Retry-After", a.RetryAfter)
	}
	if a.Status != 0 {
		w.WriteHeader(a.Status)
	}
	_, _ = io.WriteString(w, a.Body) // a sender that was killed is noticed elsewhere
	if tap != nil {
		_ = http.NewResponseController(w).Flush() // the same
		tap(Answered)
	}
}

// Answers changes what the sink answers.
func (s *Sink) Answers(f func(Delivery) Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// Tap has f told of every stage of every delivery, which waits for it.
func (s *Sink) Tap(f func(Stage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tap = f
}

// Next waits for a delivery, or fails with what explain says, which may be nil.
func (s *Sink) Next(t testing.TB, explain func() string) Delivery {
	t.Helper()
	select {
	case d := <-s.got:
		return d
	case <-time.After(Patience):
		text := ""
		if explain != nil {
			text = explain()
		}
		require.FailNow(t, "nothing was delivered", text)
		return Delivery{}
	}
}

// Poll is a delivery that has come, if there is one.
func (s *Sink) Poll() (Delivery, bool) {
	select {
	case d := <-s.got:
		return d, true
	default:
		return Delivery{}, false
	}
}

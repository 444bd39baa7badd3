package scenario

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Token is what control calls carry; TokenVariable is the variable that the
// system finds it in.
const (
	Token         = "e2e-control-token"
	TokenVariable = "SLUICE_CONTROL_TOKEN"
)

// System is Sluice, running somewhere.
type System interface {
	// URL is the base of its HTTP API. It stays the same when parts die.
	URL() string

	// Sweep does once what the system does by itself every minute, or at its
	// start: it finds what lost hints have left behind.
	Sweep(t testing.TB)

	// Lose has the hints that send gives rise to be lost, at least so many,
	// while it runs and until that many are.
	Lose(t testing.TB, hints int, send func())

	// Double has hints reach their parts more than once from now on, until
	// the returned function is called.
	Double(t testing.TB) (stop func())

	// Crash has a part of the system die at the next step at which none has
	// died yet, and tells of the step when it has; work for it may have to be
	// posted first. The part comes back by itself. stop calls a death off that
	// has not come.
	Crash() (died <-chan string, stop func())

	// State is what to know of the system when a scenario fails.
	State() string
}

// Setup is what a scenario wants of a system.
type Setup struct {
	Config string // the text of sluice.yaml
	Sink   *Sink  // the destination of its buffers
}

// Start starts a system of its own for a test, and ends it with the test.
type Start func(t *testing.T, s Setup) System

// scenario is one of the list.
type scenario struct {
	name        string
	source      string // settings beside the defaults below
	buffer      string
	destination string

	sources, destinations, more string // other sources, destinations and buffers

	answer func() func(Delivery) Answer // of the sink; nil: all is well
	run    func(w *world)
}

// Run runs every scenario on systems that start starts. name is the system's.
func Run(t *testing.T, name string, start Start) {
	t.Helper()
	list := scenarios()
	t.Cleanup(func() {
		if !t.Failed() && !t.Skipped() {
			t.Logf("scenarios: %s: %d passed", name, len(list))
		}
	})
	for _, s := range list {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(enter(t, &s, start))
		})
	}
}

// scenarios is the list, the longest first.
func scenarios() []scenario {
	var list []scenario
	for _, part := range [][]scenario{faulty(), flushCalls(), flushing(), windowing(), cases(), outcomes(), routing(), intake(), inputs()} {
		list = append(list, part...)
	}
	return list
}

// world is a scenario's view of one system.
type world struct {
	*testing.T
	System

	sink   *Sink
	client *http.Client
}

// enter starts a scenario's system.
func enter(t *testing.T, s *scenario, start Start) *world {
	t.Helper()
	var answer func(Delivery) Answer
	if s.answer != nil {
		answer = s.answer()
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	sink := NewSink(t, answer)
	w := &world{T: t, sink: sink, client: &http.Client{Transport: transport, Timeout: Patience}}
	text := fmt.Sprintf(`
control: {tokens: [env:%s]}
sources:
  in: {type: http, auth: none%s}
%s
destinations:
  out: {type: http, url: "<sink>", allowPrivate: true, timeout: 5s%s}
%s
buffers:
  b: {from: [in], to: out, groupBy: "{{ .json.k }}"%s}
%s
`, TokenVariable, s.source, s.sources, s.destination, s.destinations, s.buffer, s.more)
	w.System = start(t, Setup{Sink: sink, Config: strings.ReplaceAll(text, "<sink>", sink.URL)})
	return w
}

// Patience bounds every wait for something that must happen. It covers the
// lease of a deliverer that died, a sweep's minute, and a machine under load.
const Patience = 3 * time.Minute

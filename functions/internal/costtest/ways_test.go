package costtest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
)

// way is one in which events come in and leave.
type way struct {
	name   string
	source string
	post   int // events a request
	groups int // that the events of a request belong to
	url    bool
	// instead is a buffer that takes the place of the one that fills.
	instead string
	round   func(w *way, s *stack, of kind, keys []string) // takes 100 events of each key through
}

var ways = []way{
	{name: "1 event a POST", source: "full", post: 1, groups: 1, round: fill},
	{name: "1 event a POST, to the function URL", source: "full", post: 1, groups: 1, url: true, round: fill},
	{name: "10 a POST, each for another group", source: "full", post: 10, groups: 10, round: fill},
	{name: "10 a POST", source: "full", post: 10, groups: 1, round: fill},
	{name: "10 a POST, leaving at a deadline within a minute", source: "slow", post: 10, groups: 1, round: wait},
	{name: "10 a POST, leaving at a deadline of minutes", source: "far", post: 10, groups: 1, round: waitLong},
	{name: "10 a POST, leaving at the end of a time window", source: "full", post: 10, groups: 1, instead: windowed, round: waitWindow},
	{name: "10 a POST, leaving by flushes alone", source: "full", post: 10, groups: 1, instead: rare, round: waitFlush},
	{name: "20 a POST, to the function URL", source: "full", post: 20, groups: 1, url: true, round: fill},
	{name: "100 a POST", source: "full", post: 100, groups: 1, round: fill},
	{name: "100 a POST, to the function URL", source: "full", post: 100, groups: 1, url: true, round: fill},
}

const (
	// leastKeys is over how many keys a way's usage is averaged at least.
	leastKeys = 2
	// perKey is how many events of each key go through in one.
	perKey = 2 * groupSize
)

// use takes events through a stack of their own, and returns what one has used.
func (w *way) use(s *stack, of kind) usage {
	s.t.Helper()
	rounds := max(1, leastKeys/w.groups)
	for r := range rounds {
		keys := []string{}
		for k := range w.groups {
			keys = append(keys, fmt.Sprintf("c-%d", 1000+100*r+k))
		}
		w.round(w, s, of, keys)
		require.Equal(s.t, (r+1)*perKey*w.groups, s.taken(), "events delivered")
	}
	s.pass(time.Minute)
	s.checked() // what was armed for the end of a lease that was not needed
	s.drained()
	return s.wire.since(usage{}).times(1 / float64(rounds*perKey*w.groups))
}

// send posts one request.
func (w *way) send(s *stack, of kind, keys []string) {
	s.t.Helper()
	bodies := []string{}
	for i := range w.post {
		bodies = append(bodies, of(s.mint, keys[i%len(keys)]))
	}
	if w.post == 1 {
		s.post("/v1/sources/"+w.source, bodies[0], 1, !w.url)
		return
	}
	s.post("/v1/sources/"+w.source+"/batch", array(bodies), w.post, !w.url)
}

// fill fills groups to 50 events, at which they leave.
func fill(w *way, s *stack, of kind, keys []string) {
	for range perKey * len(keys) / w.post {
		w.send(s, of, keys)
		s.sent()
	}
	s.pass(5 * time.Second)
	require.NotZero(s.t, s.checked()) // of groups that have left
}

// wait has groups of 50 events leave by their idle timeout: the first check
// finds that more has come, and arms a second one.
func wait(w *way, s *stack, of kind, keys []string) {
	for range perKey / groupSize {
		w.send(s, of, keys)
		s.pass(3 * time.Second)
		for range groupSize/w.post - 1 {
			w.send(s, of, keys)
		}
		s.pass(2 * time.Second)
		require.Equal(s.t, 1, s.checked())
		require.Zero(s.t, s.sent())
		s.pass(3 * time.Second)
		require.Equal(s.t, 1, s.checked())
		require.Equal(s.t, 1, s.sent())
	}
}

// waitLong has them leave by a deadline that is a schedule, which wakes the
// check a minute early.
func waitLong(w *way, s *stack, of kind, keys []string) {
	for range perKey / groupSize {
		for range groupSize / w.post {
			w.send(s, of, keys)
		}
		require.Zero(s.t, s.checked())
		s.pass(4 * time.Minute)
		<-s.fired
		require.Equal(s.t, 1, s.checked())
		require.Zero(s.t, s.sent())
		s.pass(time.Minute)
		require.Equal(s.t, 1, s.checked())
		require.Equal(s.t, 1, s.sent())
	}
}

// waitWindow has them leave when their window and its grace are over. What is left
// of a minute is longer than the least time of a schedule.
func waitWindow(w *way, s *stack, of kind, keys []string) {
	for range perKey / groupSize {
		for range groupSize / w.post {
			w.send(s, of, keys)
		}
		s.pass(5 * time.Second)
		<-s.fired // a minute early
		require.Equal(s.t, 1, s.checked())
		require.Zero(s.t, s.sent())
		s.pass(time.Minute)
		require.Equal(s.t, 1, s.checked())
		require.Equal(s.t, 1, s.sent())
		s.pass(55 * time.Second)
	}
}

// waitFlush has them leave by a flush. What a run does that ships nothing is left
// out: it is paid for every minute, whatever comes.
func waitFlush(w *way, s *stack, of kind, keys []string) {
	before := s.wire.since(usage{})
	s.swept()
	usual := s.wire.since(before)
	s.wire.count(usual.times(-1))
	for range perKey / groupSize {
		for range groupSize / w.post {
			w.send(s, of, keys)
		}
		require.Zero(s.t, s.checked())
		s.pass(5 * time.Minute)
		require.Equal(s.t, groupSize, s.flushed(groupSize, 1))
		s.wire.count(usual.times(-1))
	}
}

// step is one thing that a function does.
type step struct {
	name string
	usage
}

// steps are those of a group's way.
func steps(s *stack) []step {
	full, slow, far := way{source: "full", post: 1}, way{source: "slow", post: 1}, way{source: "far", post: 1}
	all := []step{}
	do := func(name string, run func()) {
		before := s.wire.since(usage{})
		run()
		if name != "" {
			all = append(all, step{name, s.wire.since(before)})
		}
	}
	post := func(w way) func() { return func() { w.send(s, order, []string{"c-1"}) } }
	do("a POST that opens a group, and arms its check", post(full))
	do("a POST that adds to it", post(full))
	do("", func() {
		for range groupSize - 3 {
			post(full)()
		}
	})
	do("a POST that fills it", post(full))
	do("its delivery", func() { require.Equal(s.t, 1, s.sent()) })
	s.pass(5 * time.Second)
	do("the check that finds it gone", func() { require.Equal(s.t, 1, s.checked()) })

	do("", post(slow))
	s.pass(3 * time.Second)
	do("", post(slow))
	s.pass(2 * time.Second)
	do("a check that finds it not due, and arms another", func() { require.Equal(s.t, 1, s.checked()) })
	s.pass(3 * time.Second)
	do("a check that hands it over", func() { require.Equal(s.t, 1, s.checked()) })
	do("its delivery, behind a check", func() { require.Equal(s.t, 1, s.sent()) })

	do("a POST that opens a group, whose check is a schedule", post(far))
	s.pass(4 * time.Minute)
	do("that schedule, and the check that it wakes early", func() { <-s.fired; require.Equal(s.t, 1, s.checked()) })
	return all
}

// windowSteps are those of a time window's way that differ.
func windowSteps(s *stack) []step {
	w := way{source: "full", post: 1}
	for range groupSize {
		w.send(s, order, []string{"c-1"})
	}
	s.pass(5 * time.Second)
	<-s.fired
	require.Equal(s.t, 1, s.checked())
	s.pass(time.Minute)
	require.Equal(s.t, 1, s.checked())
	before := s.wire.since(usage{})
	require.Equal(s.t, 1, s.sent())
	return []step{{"the delivery of a time window, which closes it first", s.wire.since(before)}}
}

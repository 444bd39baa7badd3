package model

// Size bounds what is explored. Times are ticks.
type Size struct {
	Items  []int8 // for each writer, how many items it appends; at most 3 writers
	Actors int    // checks and deliverers at a time, at most 2

	Runs    int8 // how often an actor begins
	Doubles int8 // deliveries that are received once more
	Fails   int8 // sends
	Crashes int8 // of a writer or an actor, at any step
	Losses  int8 // of the answer to a write, or of a handed over delivery

	MaxItems    int8
	Cap         int8 // capItems; 0: no limit
	Concurrency int  // batches sent at a time, at most 2
	Claims      int  // claims at a time, at most 2
	Idle, Wait  int8
	Lease       int8
	Hole        int8 // after which a hole is fenced
	Expire      int8 // after which a settled record may vanish
	End         int8 // time stops here
	Numbers     int8 // that one life hands out, at most 7
	Lives       int8 // at most 2; 1: the record does not expire

	Ship int8 // when the group, a time window, ships; 0: it is none
	Kept int8 // from when on there are no events for the window

	Ordered bool
	Voids   bool // requests may be refused elsewhere, and put a void segment here
	Flush   bool // deliverers may also take what is not due
}

// Small is a size that is explored within seconds. The others start from it.
func Small() Size {
	return Size{
		Items: []int8{2, 1}, Actors: 2, Runs: 3, Doubles: 1, Fails: 1,
		MaxItems: 2, Concurrency: 1, Claims: 2, Idle: 2, Wait: 3, Lease: 2, Hole: 1, Expire: 1, End: 3,
		Numbers: maxNumbers, Lives: 1,
	}
}

// Model is the protocol at a size.
type Model struct {
	Size
	Rules Rules
}

func (m *Model) start() state {
	s := state{runs: m.Runs, doubles: m.Doubles, fails: m.Fails, crashes: m.Crashes, losses: m.Losses}
	for i := range s.writers {
		s.writers[i].pc = gone
	}
	for i, n := range m.Items {
		s.writers[i] = writer{n: n}
	}
	return s
}

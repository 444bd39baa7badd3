package model

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	states = flag.Int("model.states", 0, "explore the large sizes too, up to so many states each")
	walks  = flag.Int("model.walks", 2000, "random walks through the largest size")
	seed   = flag.Uint64("model.seed", 0, "seed of the random walks; 0: any")
)

// sizing is a size that is made for one thing that may happen.
type sizing struct {
	name string
	set  func(*Size)
}

func (z sizing) model() *Model {
	m := Model{Size: Small(), Rules: AllRules()}
	z.set(&m.Size)
	return &m
}

// small sizes are explored completely.
var small = []sizing{
	{"crash", func(s *Size) { s.Crashes, s.Doubles, s.Fails, s.End = 1, 0, 0, 2 }},
	{"lost answer", func(s *Size) { s.Losses, s.Actors, s.Doubles, s.Fails, s.End = 1, 1, 0, 0, 2 }},
	{"late delivery", func(s *Size) { s.Items, s.Fails = []int8{1, 1}, 0 }},
	{"ordered", func(s *Size) { s.Ordered, s.MaxItems, s.Items, s.Doubles = true, 1, []int8{1, 1}, 0 }},
	{"two at a time", func(s *Size) { s.Concurrency, s.MaxItems, s.Items, s.Fails, s.End = 2, 1, []int8{1, 1}, 0, 2 }},
	{"takeover", func(s *Size) { s.Items, s.Crashes, s.Lease, s.Runs, s.MaxItems = []int8{2}, 1, 1, 4, 1 }},
	{"room", func(s *Size) { s.Cap, s.Items, s.Actors, s.Doubles, s.Fails = 3, []int8{2, 1, 1}, 1, 0, 0 }},
	{"expiry", func(s *Size) { s.Lives, s.Items, s.Numbers, s.Fails = 2, []int8{1, 1}, 4, 0 }},
	{"refused", func(s *Size) {
		s.Voids, s.Items, s.Actors, s.Runs, s.Doubles, s.Fails, s.End = true, []int8{1, 1, 1}, 1, 2, 0, 0, 2
	}},
	{"refused, some", func(s *Size) { s.Voids, s.Fails, s.Runs, s.End = true, 0, 2, 2 }},
	{"flush", func(s *Size) { s.Flush, s.Items, s.Runs, s.Doubles, s.Fails, s.End = true, []int8{1, 1}, 2, 0, 0, 2 }},
	{"window", func(s *Size) { s.Ship, s.Kept, s.Doubles = 1, 3, 0 }},
	{"window, crash", func(s *Size) { s.Ship, s.Kept, s.Items, s.Crashes, s.Doubles = 1, 4, []int8{1, 1}, 1, 0 }},
	{"window, lost answer", func(s *Size) {
		s.Ship, s.Kept, s.Items, s.Losses, s.Actors, s.Doubles = 1, 4, []int8{1, 1}, 1, 1, 0
	}},
	{"window, expiry", func(s *Size) { s.Ship, s.Kept, s.Lives, s.Items, s.Doubles, s.End = 1, 3, 2, []int8{1, 1}, 0, 4 }},
	{"window, flush", func(s *Size) { s.Ship, s.Kept, s.Flush, s.Items, s.Doubles, s.Fails = 2, 4, true, []int8{1, 1}, 0, 0 }},
}

// large sizes are explored on demand.
var large = []sizing{
	{"crash", func(s *Size) { s.Crashes, s.Runs, s.End = 1, 4, 4 }},
	{"lost answer", func(s *Size) { s.Losses, s.Runs = 1, 4 }},
	{"late delivery", func(s *Size) { s.Items, s.Doubles = []int8{2, 1, 1}, 2 }},
	{"ordered", func(s *Size) { s.Ordered, s.Crashes, s.Runs, s.End = true, 1, 4, 4 }},
	{"two at a time", func(s *Size) { s.Concurrency, s.MaxItems, s.Crashes, s.Runs = 2, 1, 1, 4 }},
	{"room", func(s *Size) { s.Cap, s.Items, s.Losses = 3, []int8{2, 1, 1}, 1 }},
	{"expiry", func(s *Size) { s.Lives, s.Crashes, s.Losses, s.Runs, s.End = 2, 1, 1, 4, 4 }},
	{"refused", func(s *Size) { s.Voids, s.Items, s.Crashes = true, []int8{2, 1, 1}, 1 }},
	{"flush", func(s *Size) { s.Flush, s.Crashes, s.Losses = true, 1, 1 }},
	{"window", func(s *Size) { s.Ship, s.Kept, s.Crashes, s.Losses, s.Runs, s.End = 1, 3, 1, 1, 4, 4 }},
	{"window, expiry", func(s *Size) {
		s.Ship, s.Kept, s.Lives, s.Flush, s.Crashes, s.Items, s.End = 1, 3, 2, true, 1, []int8{1, 1, 1}, 4
	}},
}

// little is how many states of a size are a mere taste of it.
const little = 20_000

// TestProtocol explores every state of the small sizes.
func TestProtocol(t *testing.T) {
	for _, z := range small {
		t.Run(z.name, func(t *testing.T) {
			limit := math.MaxInt
			if slow {
				limit = little
			}
			got := z.model().Explore(limit)
			require.Nil(t, got.Violation, "%v", got)
			require.True(t, got.Complete || slow)
			t.Log(got)
		})
	}
}

// TestProtocolLarge explores the large sizes as far as -model.states allows:
// without it a little of each.
func TestProtocolLarge(t *testing.T) {
	for _, z := range large {
		t.Run(z.name, func(t *testing.T) {
			got := z.model().Explore(max(*states, little))
			require.Nil(t, got.Violation, "%v", got)
			t.Log(got)
		})
	}
}

// TestWalks walks at random through sizes that are too large to be explored.
func TestWalks(t *testing.T) {
	t.Parallel()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("-model.seed=%d", *seed)
	rng := rand.New(rand.NewPCG(*seed, 0))
	var total Result
	for range *walks {
		m := Model{Size: anySize(rng), Rules: AllRules()}
		got := m.Walk(rng)
		require.Nil(t, got.Violation, "%+v: %v", m.Size, got)
		require.True(t, got.Complete)
		total.States += got.States
		total.Transitions += got.Transitions
	}
	total.Complete = true
	t.Logf("%d walks, %v", *walks, total)
}

// anySize draws a size in which everything happens.
func anySize(rng *rand.Rand) Size {
	between := func(low, high int8) int8 { return low + int8(rng.IntN(int(high-low)+1)) }
	s := Size{
		Items: []int8{between(1, 3), between(1, 2), between(1, 2)}, Actors: 2, Runs: 12,
		Doubles: 3, Fails: 2, Crashes: between(0, 2), Losses: between(0, 2),
		MaxItems: between(1, 3), Concurrency: int(between(1, 2)), Claims: 2,
		Idle: between(1, 4), Wait: between(1, 4), Lease: between(1, 4), Hole: between(0, 2), Expire: between(0, 2), End: 8,
		Numbers: maxNumbers, Lives: between(1, 2),
		Ordered: rng.IntN(2) == 0, Voids: rng.IntN(2) == 0, Flush: rng.IntN(2) == 0,
	}
	if rng.IntN(2) == 0 {
		s.Cap = between(3, 5)
	}
	if rng.IntN(3) == 0 {
		s.Ship = between(1, 4)
		s.Kept = s.Ship + between(1, 4)
	}
	return s
}

// TestWalksFind shows that walks would find a broken rule.
func TestWalksFind(t *testing.T) {
	t.Parallel()
	rules, _ := Without("WriteOnce")
	rng := rand.New(rand.NewPCG(1, 0))
	for range 100_000 {
		m := Model{Size: anySize(rng), Rules: rules}
		if got := m.Walk(rng); got.Violation != nil {
			require.NotEmpty(t, got.Violation.Trace)
			return
		}
	}
	t.Fatal("nothing was found")
}

// TestLimit: an exploration that was cut short says so.
func TestLimit(t *testing.T) {
	t.Parallel()
	got := (&Model{Size: Small(), Rules: AllRules()}).Explore(1000)
	require.False(t, got.Complete)
	require.Greater(t, got.States, 1000)
	require.Contains(t, got.String(), "not complete")
}

package embed

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

// TestPlaces files, moves and settles items of a group in any order that claims
// allow, and compares with a map.
func TestPlaces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		segs := segments{byGen: map[uint32]*segment{}}
		ix := newIndex(&segs)
		gr, _ := ix.obtain(core.Ref{Buffer: "b", Key: "k"})
		want := map[uint64]place{}
		sizes := []int64{0} // by number
		cum := []int64{0}
		at := func(seq uint64) place {
			return place{seg: uint32(rapid.IntRange(1, 3).Draw(t, "segment")), len: 10, cum: cum[seq]}
		}
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "n") {
					seq := uint64(len(cum))
					sizes = append(sizes, int64(seq%5))
					cum = append(cum, cum[seq-1]+sizes[seq])
					want[seq] = at(seq)
					gr.Tail, gr.TailBytes = seq, cum[seq]
					ix.file(gr, seq, want[seq], sizes[seq], 0)
				}
			},
			"hole": func(*rapid.T) {
				sizes = append(sizes, 3)
				cum = append(cum, cum[len(cum)-1]+3)
				gr.Tail, gr.TailBytes = uint64(len(cum)-1), cum[len(cum)-1]
			},
			"move": func(t *rapid.T) {
				if seq, ok := pick(t, want); ok {
					want[seq] = at(seq)
					ix.file(gr, seq, want[seq], 0, 0)
				}
			},
			"settle": func(t *rapid.T) {
				from, ok := pick(t, want)
				if !ok {
					return
				}
				for seq := from; seq < from+uint64(rapid.IntRange(1, 200).Draw(t, "n")); seq++ {
					ix.discard(gr, seq, 0)
					delete(want, seq)
				}
				gr.trim()
			},
			"": func(t *rapid.T) {
				live := map[uint32]int{}
				for seq := uint64(1); seq < uint64(len(cum)); seq++ {
					p := gr.at(seq)
					w, ok := want[seq]
					require.Equal(t, ok, p != nil && p.seg != 0, "number %d", seq)
					if ok {
						require.Equal(t, w, *p)
						require.Equal(t, sizes[seq], p.cum-gr.through(seq-1), "size of %d", seq)
						live[p.seg]++
					}
				}
				void := 0
				for _, sp := range gr.spans {
					for _, p := range sp.places {
						if p.seg == 0 {
							void++
						}
					}
				}
				require.Equal(t, void, gr.void)
				for gen, seg := range segs.byGen {
					require.Equal(t, live[gen], seg.live, "segment %d", gen)
					require.Equal(t, int64(10*live[gen]), seg.bytes)
				}
			},
		})
	})
}

func pick(t *rapid.T, m map[uint64]place) (uint64, bool) {
	if len(m) == 0 {
		return 0, false
	}
	var seqs []uint64
	for seq := range m {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	return rapid.SampledFrom(seqs).Draw(t, "number"), true
}

// TestLongLivedItem keeps one item for ever while many others pass: memory does
// not grow with them.
func TestLongLivedItem(t *testing.T) {
	t.Parallel()
	segs := segments{byGen: map[uint32]*segment{}}
	ix := newIndex(&segs)
	gr, _ := ix.obtain(core.Ref{Buffer: "b", Key: "k"})
	for seq := uint64(1); seq <= 100_000; seq++ {
		gr.Tail = seq
		ix.file(gr, seq, place{seg: 1}, 0, 0)
		if seq > 20 {
			ix.discard(gr, seq-19, 0)
			gr.trim()
		}
	}
	total := 0
	for i := range gr.spans {
		total += cap(gr.spans[i].places)
	}
	require.Less(t, total, 1000)
	require.NotNil(t, gr.at(1))
	require.Equal(t, 20, segs.get(1).live)
}

// TestWalk sees every group that is there all the time, whatever comes and goes.
func TestWalk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ix := newIndex(&segments{byGen: map[uint32]*segment{}})
		stay := map[string]int{}
		for i := range rapid.IntRange(0, 60).Draw(t, "groups") {
			key := fmt.Sprint(i)
			gr, _ := ix.obtain(core.Ref{Buffer: fmt.Sprint("b", i%3), Key: key})
			gr.Tail = uint64(rapid.IntRange(1, 30).Draw(t, "items"))
			for seq := uint64(1); seq <= gr.Tail; seq++ {
				ix.file(gr, seq, place{seg: 1}, 0, 0)
			}
			stay[key] = int(gr.Tail)
		}
		seen := map[string]int{}
		c := ix.walk()
		more := true
		t.Repeat(map[string]func(*rapid.T){
			"step": func(t *rapid.T) {
				more = c.step(rapid.IntRange(1, 40).Draw(t, "budget"), func(gr *group, _ bool, sp *span, from, to int) {
					if sp == nil {
						seen[gr.key] = 0
					} else {
						require.LessOrEqual(t, to, len(sp.places))
						seen[gr.key] += to - from
					}
				})
			},
			"come": func(t *rapid.T) {
				ix.obtain(core.Ref{Buffer: "b1", Key: rapid.StringMatching("new[0-9]").Draw(t, "key")})
			},
			"go": func(t *rapid.T) {
				b := ix.buffers[rapid.SampledFrom([]string{"b0", "b1", "b2"}).Draw(t, "buffer")]
				if b == nil || len(b.all) == 0 {
					return
				}
				gr := rapid.SampledFrom(b.all).Draw(t, "group")
				delete(stay, gr.key)
				ix.forget(gr, 0)
			},
		})
		for more {
			more = c.step(7, func(gr *group, _ bool, sp *span, from, to int) {
				if sp == nil {
					seen[gr.key] = 0
				} else {
					seen[gr.key] += to - from
				}
			})
		}
		for key, items := range stay {
			require.Equal(t, items, seen[key], "items seen of group %s", key)
		}
	})
}

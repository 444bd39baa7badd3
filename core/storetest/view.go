package storetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// view is all that can be seen of one group, with numbers counted from its
// head: so the views of two stores are the same even when one of them has
// forgotten the group once and begun it anew.
type view struct {
	Ref                      core.Ref
	Pending                  uint64
	PendingBytes             int64
	FirstAt, LastAt, CheckAt core.Millis
	Closed, Hold             core.Millis
	Room                     uint64 // numbers up to the ceiling
	Events                   []core.Event
	Claims                   []claimView
}

type claimView struct {
	ID       string // without the life, its number counted from the head
	From, To uint64 // back from the head
	Events   []core.Event
	core.Claim
}

// observe is all that can be seen of some buffers, group by group in order.
// It checks on the way that the store's indexes and sums agree with its records.
func observe(p *probe, buffers ...string) []view {
	p.t.Helper()
	var views []view
	stats := map[string]core.BufferStats{}
	due := map[core.Ref][]core.Millis{}
	for _, b := range buffers {
		for _, g := range p.groups(b, 3) {
			sameRecord(p.t, p.group(g.Ref), g.Group, "listed record")
			require.False(p.t, g.Empty(), "%v is listed, though empty", g.Ref)
			views = append(views, p.view(g))
			sum(stats, &g)
			for _, at := range []core.Millis{g.CheckAt, g.ClaimDue()} {
				if at != 0 {
					due[g.Ref] = append(due[g.Ref], at)
				}
			}
		}
	}
	same(p.t, stats, p.stats(), "stats against records")
	p.sameDue(due)
	return views
}

func (p *probe) view(g core.NamedGroup) view {
	p.t.Helper()
	v := view{Ref: g.Ref, Pending: g.Pending(), PendingBytes: g.PendingBytes(),
		FirstAt: g.FirstAt, LastAt: g.LastAt, CheckAt: g.CheckAt, Closed: g.Closed, Hold: g.Hold}
	if g.Ceiling > 0 {
		v.Room = g.Ceiling - g.Head
	}
	v.Events = events(p.all(g.Ref, g.Head+1, g.Tail, 64))
	require.Len(p.t, v.Events, int(v.Pending), "pending items of %v", g.Ref)
	if v.Pending > 0 {
		page := p.items(g.Ref, core.Span{From: g.Head + 1, To: g.Tail})
		require.Equal(p.t, g.TailBytes, page.Through, "payload of %v", g.Ref)
		require.Equal(p.t, g.HeadBytes+page.Items[0].Size(), page.Offsets[0], "payload before %v's head", g.Ref)
	}
	for _, c := range g.Claims {
		items := slices.DeleteFunc(p.all(g.Ref, c.From, c.To, 64), func(it core.Item) bool { return !c.Has(it.Seq) })
		require.Len(p.t, items, int(c.To-c.From+1)-c.Done.Len(), "members of claim %s", c.ID)
		cv := claimView{ID: relativeID(&g.Group, c.ID), From: g.Head - c.From, To: g.Head - c.To, Events: events(items), Claim: c}
		cv.Claim.ID, cv.Claim.From, cv.Claim.To, cv.Claim.Mark = "", 0, 0, 0
		v.Claims = append(v.Claims, cv)
	}
	return v
}

// relativeID is a claim's id with the number in it counted back from the head.
func relativeID(g *core.Group, id string) string {
	number, residue, _ := strings.Cut(strings.TrimPrefix(id, g.Life+"-"), ".")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return "not of this life: " + id
	}
	return fmt.Sprintf("head-%d.%s", g.Head-n, residue)
}

func sum(stats map[string]core.BufferStats, g *core.NamedGroup) {
	b := stats[g.Ref.Buffer]
	b.Buffer = g.Ref.Buffer
	b.Groups++
	b.Pending += int64(g.Pending())
	b.Bytes += g.PendingBytes()
	b.Held += int64(g.HeldItems())
	for _, c := range g.Claims {
		b.Claimed += int64(c.To-c.From+1) - int64(c.Done.Len())
	}
	if g.FirstAt != 0 && (b.Oldest == 0 || g.FirstAt < b.Oldest) {
		b.Oldest = g.FirstAt
	}
	stats[g.Ref.Buffer] = b
}

// sameDue checks Due against the times in the records, before and at each.
func (p *probe) sameDue(all map[core.Ref][]core.Millis) {
	p.t.Helper()
	times := []core.Millis{}
	for _, at := range all {
		times = append(times, at...)
	}
	slices.Sort(times)
	for _, before := range append(slices.Compact(times), start+1_000_000*second) {
		want := map[core.Ref]bool{}
		for ref, at := range all {
			want[ref] = slices.Min(at) <= before
		}
		got := p.due(before)
		for ref, wanted := range want {
			require.Equal(p.t, wanted, len(got[ref]) > 0, "%v due before %v; its times are %v", ref, before, all[ref])
			for _, at := range got[ref] {
				require.Contains(p.t, all[ref], at, "%v due before %v", ref, before)
			}
		}
		for ref := range got {
			require.Contains(p.t, want, ref, "due, but not there")
		}
	}
}

// abandon is what the crash of a store that ends every lease does to views.
func abandon(views []view) {
	for i := range views {
		for j := range views[i].Claims {
			if c := &views[i].Claims[j]; c.Held() {
				c.Due = 1
			}
		}
	}
}

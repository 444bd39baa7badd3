package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// units sends an event of each unit, with its number as the body.
func (r *rig) units(units ...string) {
	events := make([]core.Event, len(units))
	for i, unit := range units {
		events[i] = core.Event{Unit: unit, Body: fmt.Appendf(nil, `{"k":"key","i":%d}`, i)}
	}
	_, err := r.ingester.Ingest(context.Background(), "in", events)
	require.NoError(r.t, err)
}

func TestASourcesUnitIsTheGroup(t *testing.T) {
	t.Parallel()
	for groupBy, want := range map[string]map[string]int{
		"":             {"u1": 2, "u2": 1, "": 1},
		"{{ .json.k}}": {"key": 4},
	} {
		t.Run(groupBy, func(t *testing.T) {
			run(t, config(ordered, buf(func(b *core.Buffer) { b.GroupBy = groupBy })), func(r *rig) {
				r.units("u1", "u2", "u1", "")
				r.at(time.Minute)
				got := map[string]int{}
				for _, s := range r.sends() {
					got[s.Group] += len(s.Items)
				}
				require.Equal(t, want, got)
			})
		})
	}
}

func TestAUnitThatIsRetriedHoldsBackItselfAlone(t *testing.T) {
	run(t, config(at1, ordered, buf(func(b *core.Buffer) { b.GroupBy = "" })), func(r *rig) {
		r.replies(func(_ string, b *core.Batch) core.Response {
			if b.Group == "u1" && b.Attempt < 3 {
				return core.Response{Status: 500}
			}
			return core.Response{Status: 200}
		})
		r.units("u1", "u2", "u1", "u2")
		r.at(time.Minute)
		var u1 []string
		for _, s := range r.sends() {
			if s.Group == "u2" {
				require.Zero(t, s.at)
			} else {
				u1 = append(u1, bodies(s.Items)...)
			}
		}
		first, second := `{"k":"key","i":0}`, `{"k":"key","i":2}`
		require.Equal(t, []string{first, first, first, second, second, second}, u1)
	})
}

func TestOrderOfAKeyOverShards(t *testing.T) {
	run(t, config(at1, ordered, buf(func(b *core.Buffer) { b.Shards, b.OrderKey = 4, "{{ .json.customer }}" })), func(r *rig) {
		r.replies(attempt(2, 200, 500)) // each is sent twice
		want := map[string][]string{}
		for i := range 100 {
			customer := fmt.Sprint(i % 10)
			body := fmt.Sprintf(`{"k":"all","customer":%q,"i":%d}`, customer, i)
			want[customer] = append(want[customer], body)
			r.post(body)
		}
		r.at(time.Hour)
		got, groups := map[string][]string{}, map[string]bool{}
		for _, s := range r.sends() {
			require.Equal(t, "all", s.Group, "shards are nobody's business")
			body := string(s.Items[0].Body)
			customer := body[len(`{"k":"all","customer":"`)]
			groups[s.ID] = true
			if s.Attempt == 2 {
				got[string(customer)] = append(got[string(customer)], body)
			}
		}
		require.Equal(t, want, got)
		require.Len(t, groups, 100)
	})
}

func TestAKeyKeepsToItsShard(t *testing.T) {
	t.Parallel()
	catalog, err := core.NewCatalog(config(ordered, buf(func(b *core.Buffer) { b.Shards, b.OrderKey = 8, "{{ .json.c }}" })), nil)
	require.NoError(t, err)
	s := catalog.Buffer("b")
	used := map[int]bool{}
	for i := range 100 {
		body := fmt.Appendf(nil, `{"k":"k","c":"%d"}`, i)
		ref, _, err := s.Place(&core.Event{ID: "1", Body: body}, noon)
		require.NoError(t, err)
		again, _, err := s.Place(&core.Event{ID: "2", Body: body}, noon.Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, ref, again, "whatever its id")
		used[ref.Shard] = true
	}
	require.Len(t, used, 8)
	_, _, err = s.Place(&core.Event{ID: "1", Body: []byte(`{"k":"k","c":{}}`)}, noon)
	require.NoError(t, err)
	bad, err := core.NewCatalog(config(ordered, buf(func(b *core.Buffer) { b.Shards, b.OrderKey = 8, "{{ .json.c.d }}" })), nil)
	require.NoError(t, err)
	_, _, err = bad.Buffer("b").Place(&core.Event{ID: "1", Body: []byte(`{"k":"k","c":7}`)}, noon)
	if err != nil {
		require.Equal(t, core.Invalid, core.CodeOf(err))
	}
}

// A unit is not stored, so a window takes no notice of it: its one row stays one,
// in one shard.
func TestAUnitIsNoRowOfAWindow(t *testing.T) {
	t.Parallel()
	c := config(buf(func(b *core.Buffer) {
		b.GroupBy, b.Shards = "", 8
		b.Window = &core.WindowConfig{Every: time.Minute}
		b.Fold = []core.FoldColumn{{Name: "n", Expr: "count"}}
	}))
	catalog, err := core.NewCatalog(c, nil)
	require.NoError(t, err)
	s := catalog.Buffer("b")
	used := map[core.Ref]bool{}
	for i := range 100 {
		ref, _, err := s.Place(&core.Event{ID: fmt.Sprint(i), Unit: fmt.Sprint("u", i), Body: []byte(`{}`), ReceivedAt: noon}, noon)
		require.NoError(t, err)
		used[ref] = true
	}
	require.Len(t, used, 1)
}

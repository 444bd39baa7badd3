package core_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

// aggregates are columns that do not depend on the order of events.
func aggregates() []core.FoldColumn {
	return []core.FoldColumn{
		{Name: "count", Expr: "count"}, {Name: "valued", Expr: "count .json.v"}, {Name: "total", Expr: "sum .json.v"},
		{Name: "low", Expr: "min .json.v"}, {Name: "high", Expr: "max .json.v"},
	}
}

// Whatever happens, a window leaves as just the rows that its events fold into,
// each in one batch.
func TestFoldedWindows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := voyageConfig(t)
		c.Buffers[0].Fold = aggregates()
		v := newVoyage(t, c)
		t.Repeat(v.actions())
		v.arrive(t)
		for start, events := range v.accepted {
			var rows []string
			for _, m := range v.left[start] {
				require.True(t, v.taken[m], "a row was never taken")
				rows = append(rows, readRow(t, start, m[len(start.String())+1:]))
			}
			require.ElementsMatch(t, naiveRows(events, "k"), rows, "the window of %s", start)
		}
		for _, start := range v.shippedWindows() {
			require.Contains(t, v.accepted, start, "a window of nothing")
		}
	})
}

// Under settings that change while windows leave, each leaves whole by some of
// them at least, and a batch id never stands for two things.
func TestFoldedWindowsUnderOtherSettings(t *testing.T) {
	t.Parallel()
	settings := []func(*core.Buffer){
		func(b *core.Buffer) { b.Fold, b.GroupBy = aggregates(), "{{ .json.k }}" },
		func(b *core.Buffer) { b.Fold, b.GroupBy = aggregates(), "" },
		func(b *core.Buffer) { b.Fold, b.GroupBy = aggregates()[:4], "{{ .json.k }}" },
		func(b *core.Buffer) { b.Fold, b.GroupBy = nil, "{{ .json.k }}" },
	}
	rapid.Check(t, func(t *rapid.T) {
		c := voyageConfig(t)
		c.Buffers[0].Shards = 1
		settings[0](&c.Buffers[0])
		v := newVoyage(t, c)
		actions := v.actions()
		actions["configure"] = func(t *rapid.T) {
			next := *v.c
			next.Buffers = append([]core.Buffer(nil), v.c.Buffers...)
			rapid.SampledFrom(settings).Draw(t, "settings")(&next.Buffers[0])
			next.Buffers[0].Batch.MaxItems = rapid.IntRange(1, 4).Draw(t, "maxItems")
			v.c = &next
			v.ships = []*ship{v.d.process(v.c), v.d.process(v.c)}
		}
		t.Repeat(actions)
		v.arrive(t)
		for start, events := range v.accepted {
			events = slices.DeleteFunc(slices.Clone(events), func(e passenger) bool {
				m := start.String() + " " + e.body
				require.True(t, !v.plain[m] || v.taken[m], "an event was never taken")
				return v.plain[m]
			})
			taken := map[string]bool{}
			for m := range v.taken {
				if at := start.String(); m[:len(at)] == at {
					taken[readRow(t, start, m[len(at)+1:])] = true
				}
			}
			ways := [][]string{naiveRows(events, "k"), naiveRows(events, ""), withoutHigh(naiveRows(events, "k")), items(events)}
			require.True(t, anyIn(ways, taken), "the window of %s left as %v", start, taken)
		}
	})
}

// anyIn reports whether a set has all of any list.
func anyIn(lists [][]string, set map[string]bool) bool {
	for _, list := range lists {
		all := true
		for _, s := range list {
			all = all && set[s]
		}
		if all {
			return true
		}
	}
	return false
}

func items(events []passenger) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.body)
	}
	return all
}

// tally is a row as it ought to be.
type tally struct {
	count, valued int
	total         *big.Rat
	low, high     *big.Rat
}

// naiveRows folds events by key, or all into one row.
func naiveRows(events []passenger, by string) []string {
	rows := map[string]*tally{}
	for _, e := range events {
		key := ""
		if by != "" {
			key = e.key
		}
		r := rows[key]
		if r == nil {
			r = &tally{total: new(big.Rat)}
			rows[key] = r
		}
		r.count++
		x, ok := new(big.Rat).SetString(e.value)
		if !ok {
			continue
		}
		r.valued++
		r.total.Add(r.total, x)
		if r.low == nil || x.Cmp(r.low) < 0 {
			r.low = x
		}
		if r.high == nil || x.Cmp(r.high) > 0 {
			r.high = x
		}
	}
	var all []string
	for key, r := range rows {
		all = append(all, fmt.Sprintf("%s: %d, %d, %s, %s high %s", key, r.count, r.valued, r.total.RatString(), ratio(r.low), ratio(r.high)))
	}
	return all
}

// withoutHigh are rows of which the last column was taken out.
func withoutHigh(rows []string) []string {
	for i := range rows {
		for n := range rows[i] {
			if rows[i][n:min(n+6, len(rows[i]))] == " high " {
				rows[i] = rows[i][:n] + " high none"
				break
			}
		}
	}
	return rows
}

func ratio(x *big.Rat) string {
	if x == nil {
		return "none"
	}
	return x.RatString()
}

// readRow reads a row as naiveRows writes it; an item stays as it is.
func readRow(t *rapid.T, start core.Millis, body string) string {
	var row struct {
		ID, Key                string
		WindowStart, WindowEnd string
		Count                  *int
		Valued                 int
		Total, Low, High       json.Number
	}
	require.NoError(t, json.Unmarshal([]byte(body), &row), "%s", body)
	if row.Count == nil {
		return body
	}
	require.Len(t, row.ID, 32)
	require.Equal(t, start.String(), row.WindowStart)
	require.Equal(t, start.Add(windowEvery).String(), row.WindowEnd)
	number := func(n json.Number) string {
		x, ok := new(big.Rat).SetString(string(n))
		if !ok {
			return "none"
		}
		return x.RatString()
	}
	return fmt.Sprintf("%s: %d, %d, %s, %s high %s", row.Key, *row.Count, row.Valued, number(row.Total), number(row.Low), number(row.High))
}

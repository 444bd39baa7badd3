package fold_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core/fold"
)

// naive is a row of a fold that keeps everything.
type naive struct {
	events int
	values []string // of .json.a, where it is there
}

func (n *naive) rats() []*big.Rat {
	rats := make([]*big.Rat, len(n.values))
	for i, v := range n.values {
		rats[i], _ = new(big.Rat).SetString(v)
	}
	return rats
}

func (n *naive) sum() *big.Rat {
	total := new(big.Rat)
	for _, r := range n.rats() {
		total.Add(total, r)
	}
	return total
}

// most is the first of the values of which none is further in a direction.
func (n *naive) most(sign int) any {
	if len(n.values) == 0 {
		return nil
	}
	rats, at := n.rats(), 0
	for i := range rats {
		if rats[i].Cmp(rats[at])*sign > 0 {
			at = i
		}
	}
	return json.Number(n.values[at])
}

func (n *naive) end(last bool) any {
	switch {
	case len(n.values) == 0:
		return nil
	case last:
		return json.Number(n.values[len(n.values)-1])
	}
	return json.Number(n.values[0])
}

type event struct{ key, value string }

func (e event) input() input {
	if e.value == "" {
		return input{body: `{}`}
	}
	return input{body: `{"a":` + e.value + `}`}
}

// numbers are JSON numbers of all kinds that can be folded.
func numbers() *rapid.Generator[string] {
	integer := rapid.Custom(func(t *rapid.T) string { return strconv.FormatInt(rapid.Int64().Draw(t, "int"), 10) })
	float := rapid.Custom(func(t *rapid.T) string {
		return strconv.FormatFloat(rapid.Float64Range(-1e9, 1e9).Draw(t, "float"), 'g', -1, 64)
	})
	return rapid.OneOf(
		integer, float,
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,3})?`),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,2})?`),
		rapid.StringMatching(`-?[1-9](\.[0-9]{1,20})?[eE][-+]?3[0-9]{2}`),
	)
}

// TestAgainstNaive holds a table to a fold that keeps all values, as fractions.
func TestAgainstNaive(t *testing.T) {
	t.Parallel()
	f := compile(t, "count", "count .json.a", "sum .json.a", "min .json.a", "max .json.a", "avg .json.a", "first .json.a", "last .json.a")
	value := rapid.OneOf(numbers(), rapid.Just(""), rapid.Just("null"))
	one := rapid.Custom(func(t *rapid.T) event {
		return event{rapid.StringN(0, 1, -1).Draw(t, "key"), value.Draw(t, "value")}
	})
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(one, 0, 30).Draw(t, "events")
		var keys []string
		want := map[string]*naive{}
		table := f.Table(window)
		for _, e := range events {
			require.NoError(t, f.Check(e.input()), e.value)
			require.True(t, table.Add(e.key, e.input(), 1))
			n := want[e.key]
			if n == nil {
				n = &naive{}
				want[e.key], keys = n, append(keys, e.key)
			}
			n.events++
			if e.value != "" && e.value != "null" {
				n.values = append(n.values, e.value)
			}
		}
		rows := table.Rows()
		require.Len(t, rows, len(keys))
		for i, r := range rows {
			require.Equal(t, keys[i], r.Key)
			requireRow(t, r, want[r.Key])
		}
		requireAnyOrder(t, f, rows, rapid.Permutation(events).Draw(t, "order"))
	})
}

func requireRow(t require.TestingT, r fold.Row, n *naive) {
	got := decode(t, r)
	require.EqualValues(t, n.events, r.Events)
	require.Equal(t, json.Number(strconv.Itoa(n.events)), got["c0"])
	require.Equal(t, json.Number(strconv.Itoa(len(n.values))), got["c1"])
	requireExact(t, n.sum(), string(got["c2"].(json.Number)))
	require.Equal(t, n.most(-1), got["c3"])
	require.Equal(t, n.most(1), got["c4"])
	requireMean(t, n, got["c5"])
	require.Equal(t, n.end(false), got["c6"])
	require.Equal(t, n.end(true), got["c7"])
}

func decode(t require.TestingT, r fold.Row) map[string]any {
	dec := json.NewDecoder(bytes.NewReader(r.Body))
	dec.UseNumber()
	var got map[string]any
	require.NoError(t, dec.Decode(&got), "%s", r.Body)
	require.Equal(t, r.ID, got["id"])
	require.Equal(t, r.Key, got["key"])
	return got
}

func requireExact(t require.TestingT, want *big.Rat, text string) {
	got, ok := new(big.Rat).SetString(text)
	require.True(t, ok, text)
	require.Zero(t, got.Cmp(want), "%s is not %s", text, want)
	require.NotEqual(t, "-0", text)
	require.NotRegexp(t, `\.[0-9]*0(e|$)`, text)
}

func requireMean(t require.TestingT, n *naive, got any) {
	if len(n.values) == 0 {
		require.Nil(t, got)
		return
	}
	mean := n.sum()
	mean.Quo(mean, big.NewRat(int64(len(n.values)), 1))
	want, _ := mean.Float64()
	if size := math.Abs(want); mean.Sign() == 0 || size >= 0x1p-1022 && size <= math.MaxFloat64 {
		f, err := got.(json.Number).Float64()
		require.NoError(t, err)
		require.InDelta(t, want, f, 0)
		return
	}
	near, ok := new(big.Rat).SetString(string(got.(json.Number)))
	require.True(t, ok)
	off := new(big.Rat).Quo(new(big.Rat).Sub(near, mean), mean)
	require.LessOrEqual(t, off.Abs(off).Cmp(big.NewRat(1, 1e16)), 0, "%s is not %s", got, mean)
}

// requireAnyOrder shows that what is no first and last, and not how an equal
// number is written, does not depend on the order of events.
func requireAnyOrder(t require.TestingT, f *fold.Fold, rows []fold.Row, events []event) {
	table := f.Table(window)
	for _, e := range events {
		table.Add(e.key, e.input(), 1)
	}
	byKey := map[string]fold.Row{}
	for _, r := range table.Rows() {
		byKey[r.Key] = r
	}
	require.Len(t, byKey, len(rows))
	for _, r := range rows {
		a, b := decode(t, r), decode(t, byKey[r.Key])
		for _, c := range []string{"id", "c0", "c1", "c2", "c5"} {
			require.Equal(t, a[c], b[c], "%s", c)
		}
		for _, c := range []string{"c3", "c4"} {
			x, _ := a[c].(json.Number)
			y, _ := b[c].(json.Number)
			require.Equal(t, x == "", y == "")
			if x != "" {
				requireSame(t, string(x), string(y))
			}
		}
	}
}

func requireSame(t require.TestingT, x, y string) {
	a, _ := new(big.Rat).SetString(x)
	b, _ := new(big.Rat).SetString(y)
	require.Zero(t, a.Cmp(b), "%s and %s", x, y)
}

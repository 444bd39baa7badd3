package jq_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core/render"
	"sluice/infra/jq"
)

// kept is an event whose decoded payload is kept.
type kept struct {
	event

	decodings int
	value     any
	err       error
}

func (k *kept) Decoded(decode func() (any, error)) (any, error) {
	if k.decodings == 0 {
		k.decodings++
		k.value, k.err = decode()
	}
	return k.value, k.err
}

// changers are programs that change what they are given, or a copy of it.
var changers = []string{
	`.`, `.a = 1`, `.a |= [.]`, `.a += 1`, `.[0] = 7`, `.[5] = 7`, `.[-1] |= null`, `.[1:] = ["x"]`, `.[:1] |= map(.)`,
	`del(.a)`, `del(.[0])`, `del(.[0], .[1])`, `del(..)`, `del(.. | select(. == 1))`, `delpaths([["a"], [0]])`, `delpaths([["a", "b"], [1, 0]])`,
	`setpath(["a", "b"]; 1)`, `map(.)`, `map_values(empty)`, `map_values([.])`, `walk(.)`, `walk(if type == "array" then sort else . end)`,
	`with_entries(.value |= [.])`, `to_entries`, `from_entries`, `sort`, `sort_by(.)`, `unique`, `group_by(.)`, `reverse`, `flatten`,
	`add`, `. + .`, `. + [1]`, `. + {a: 1}`, `. * {a: {b: 1}}`, `. - [1]`, `[.[]?] + [1] + [2]`, `transpose`, `paths`, `[paths]`, `tojson`, `tostring`, `[limit(2; .[]?)]`,
	`reduce .[]? as $x (.; . + [$x])`, `reduce range(3) as $i (.; .[$i] = $i)`, `reduce range(3) as $i (.a; .[$i] = $i)`, `foreach .[]? as $x (.; .a = $x; .)`,
	`.. |= .`, `(.. | numbers) |= . + 1`, `(.. | strings) += "x"`, `.[] += 1`, `.[]? |= empty`, `(.[]?, .a?) = 1`, `.a[1:] = [0]`, `.a as $x | .b = $x | .b[0] = 9`,
	`to_entries | map(.value = 1) | from_entries`, `first(.[]?) = 3`, `.a //= {b: 1}`, `try error(.) catch .`, `[., .] | .[0].a = 1`, `{x: ., y: .} | .x[0]? = 5`,
	`pick(.a)`, `min, max`, `tostream`, `[tostream]`, `getpath(["a", 0])`, `any, all`, `ascii_downcase?`, `@json`, `implode?`, `splits("a")?`, `.a[0] |= (.b = 1)`,
}

// Programs that run on one decoded payload, one after the other, each put out
// what they do on one of their own, and leave it as it was.
func TestProgramsShareAPayload(t *testing.T) {
	t.Parallel()
	programs := make([]*jq.Program, len(changers))
	for i, text := range changers {
		var err error
		programs[i], err = jq.Compile(text)
		require.NoError(t, err, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		body := event(value(3).Draw(t, "body"))
		shared := &kept{event: body}
		var before string
		for n, i := range rapid.SliceOfN(rapid.IntRange(0, len(programs)-1), 2, 60).Draw(t, "programs") {
			want := outcome(t, programs[i], body)
			require.Equal(t, want, outcome(t, programs[i], shared), "%s on %s", changers[i], body)
			now := fmt.Sprintf("%#v", shared.value)
			require.True(t, n == 0 || now == before, "%s has changed %s:\n%s\n%s", changers[i], body, before, now)
			before = now
		}
		require.Equal(t, 1, shared.decodings)
		own := &kept{event: body}
		outcome(t, programs[0], own)
		require.Equal(t, own.value, shared.value)
	})
}

func outcome(t require.TestingT, p *jq.Program, in render.Input) string {
	out, ok, err := p.Run(context.Background(), in)
	if err != nil && !strings.Contains(err.Error(), "context") {
		return "error: " + err.Error()
	}
	require.NoError(t, err)
	return fmt.Sprint(ok, " ", string(out))
}

// value is JSON, numbers of odd forms included.
func value(depth int) *rapid.Generator[string] {
	leaf := rapid.SampledFrom([]string{`null`, `true`, `false`, `0`, `1`, `-1`, `1.50`, `1e2`, `12345678901234567890`, `""`, `"a"`, `"x\u0000y"`, `[]`, `{}`})
	if depth == 0 {
		return leaf
	}
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return "[" + strings.Join(rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "members"), ",") + "]"
		case 1:
			var members []string
			for _, k := range rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "key", "value", "name"}), 0, 4).Draw(t, "keys") {
				name, _ := json.Marshal(k)
				members = append(members, string(name)+":"+value(depth-1).Draw(t, "member"))
			}
			return "{" + strings.Join(members, ",") + "}"
		}
		return leaf.Draw(t, "leaf")
	})
}

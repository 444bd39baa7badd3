package jq_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrorsShowNoPayload runs into each error of gojq with a payload, a key and a
// header that must not get into logs.
func TestErrorsShowNoPayload(t *testing.T) {
	t.Parallel()
	const body = `{"s":"payload","o":{"payload":"payload"},"a":["payload"],"n":271828,"big":2718281828459045235360287471352662497757,"b":true}`
	for _, program := range []string{
		`.s.x`, `.a.x`, `.n.payload`, `.o[0]`, `.o[.a:]`, `.s[.s:]`, `.a[.s:]`, `.a[.s]`, `.s[.o]`, `.n[]`, `.s[]`, `.b[]`, `.big[]`,
		`.a[-271828] = 1`, `.a[.n] = 1`, `{(.n|tostring|tonumber): 1}`, `{(.o): 1}`, `.a | .[{a: "payload"}]`, `.a | .[{start: "payload"}] = 1`,
		`.s + .n`, `.o - .s`, `.s * .o`, `.n / (.n - .n)`, `.n % (.n - .n)`, `-.s`, `-.o`, `.s / .a`, `.n % .s`,
		`.s | tonumber`, `.s | fromjson`, `.n | fromjson`, `.a | implode`, `.n | explode`, `.a | flatten(-271828)`,
		`.s | keys`, `.s | has(0)`, `.o | has(0)`, `[.o] | join("payload")`,
		`.s | strptime("%Y")`, `.s | mktime`, `.a | mktime`, `.n * 1e300 | todate`, `.s | todate`, `.o | strftime("payload")`,
		`.n | ltrimstr("x")`, `.o | startswith("payload")`, `.n | split("payload")`, `.n | test("payload")`, `.s | test("payload(")`,
		`.s | test("x"; "payload")`, `.s | @csv`, `[.o] | @csv`, `.a | [.] | @tsv`, `.s | format(.)`, `.s | error`, `.o | error`, `error(.s)`,
		`error("it is \(.s)")`, `.s | halt_error`, `.a | from_entries`, `.s | sort`, `.o | sort_by(.)`, `.n | group_by(.)`,
		`.s | min_by(.)`, `.n | unique`, `.n | add`, `.s | any`, `.n | range(.; "payload")`, `.s | getpath(["x", "payload"])`, `.o | getpath([0])`,
		`setpath(["s", "payload"]; 1)`, `setpath("payload"; 1)`, `delpaths([["s", "payload"]])`, `delpaths("payload")`, `del(.s[0])`, `path(.s | ascii_downcase | .x)`,
		`.n | ascii_downcase`, `.s | floor`, `.s | pow(.; 2)`, `.s | splits(1)`, `.s | sub(1; "payload")`, `.n | trim`,
		`$headers | .[]  | .x`, `$headers | error`, `.s | limit(.; 1, 2)`, `.a | nth(.; 1, 2)`, `.a | first | .[]`,
		`.a | @base64d`, `.s | @base64d | fromjson`, `.s | @uri | fromjson`, `.n | indices("payload")`, `.s | indices(271828)`, `.s | contains(1)`,
		`.o | inside("payload")`, `.a | transpose`, `.s | transpose`, `.n | walk(.x)`, `.s | splits("payload("; null)`, `.o | tojson | ltrimstr("{") | fromjson`,
		`.s | bsearch(1)`, `.n | to_entries`, `.n | with_entries(.)`, `(.s, .a) |= error`, `.s | @json | fromjson | .[]`,
	} {
		_, err := run(t, program, body)
		require.Error(t, err, program)
		for _, value := range []string{"payload", "271828", "big"} {
			require.NotContains(t, err.Error(), value, program)
		}
		require.NotEqual(t, "the program fails", err.Error(), "%s: an error that is not known", program)
	}
}

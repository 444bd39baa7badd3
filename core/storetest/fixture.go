package storetest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

// event is an event of an id, received at a time, with so many bytes of body.
func event(id string, at core.Millis, size int) core.Event {
	return core.Event{
		ID: id, Source: "orders", ContentType: "text/plain", ReceivedAt: at,
		Headers: []core.Header{{Name: "x-id", Value: id}},
		Body:    bytes.Repeat([]byte{'x'}, size),
	}
}

// part is n events of size bytes for a group, with ids <key>-<from>, ...
func part(ref core.Ref, policy *core.Policy, at core.Millis, from, n, size int) core.Part {
	p := core.Part{Ref: ref, Life: lifeOf(ref), Policy: policy}
	for i := range n {
		p.Events = append(p.Events, event(fmt.Sprintf("%s-%d", ref.Key, from+i), at, size))
	}
	return p
}

// lifeOf is a life that no other group has.
func lifeOf(ref core.Ref) string {
	return fmt.Sprintf("life%x", sha256.Sum224([]byte(ref.Buffer+"/"+ref.Key)))
}

// weirdKeys are group keys that careless encodings merge, misplace or refuse,
// in the order of their bytes.
func weirdKeys() []string {
	return []string{
		"", "\x00", "\x00\x00", " ", "%2F", ".", "..", "/", "1", "A", "[object]", "a", "a ", "a b",
		"a#b", "a%2Fb", "a/b", "a/b/", "a:b", "aa", "b", strings.Repeat("long/", 2048/5) + "end", "null",
		"true", "ä", "🙂", "\xff",
	}
}

// equal takes empty slices for nil, and bodies as a whole: byte by byte they
// would take minutes.
var equal = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal)),
}

// sameRecord compares records but for Rev, which only has to grow.
func sameRecord(t rapid.TB, want, got core.Group, what string) {
	t.Helper()
	want.Rev = got.Rev
	same(t, want, got, what)
}

// same compares anything, taking empty slices for nil.
func same(t rapid.TB, want, got any, what string) {
	t.Helper()
	if reflect.DeepEqual(want, got) {
		return // the common case, and a hundred times faster
	}
	if d := cmp.Diff(want, got, equal); d != "" {
		require.Fail(t, what+" (-want +got):\n"+d)
	}
}

// ids are the ids of items, in order.
func ids(items []core.Item) []string {
	out := make([]string, len(items))
	for i := range items {
		out[i] = items[i].ID
	}
	return out
}

package storetest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var appendTests = []test{
	{"append numbers items from 1 as the group's record does", appendNumbers},
	{"append opens a group once", appendOpens},
	{"append says once that a group is full", appendReached},
	{"append keeps every byte of an event", appendKeepsBytes},
	{"append to several groups answers part by part", appendSeveral},
	{"append to one group twice in a request", appendTwice},
	{"append keeps copies", appendCopies},
	{"append keeps weird keys apart", appendWeirdKeys},
}

func appendNumbers(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	var want core.Group
	next := 1
	for i, n := range []int{2, 1, 3, 50} {
		now := start + core.Millis(i)*500
		part := part(ref, policy, now, next, n, i)
		answer, err := want.Append(n, int64(n*i), part.Life, policy, now)
		require.NoError(t, err)
		require.Equal(t, []core.Appended{answer}, p.append(now, part))
		sameRecord(t, want, p.group(ref), "record")
		next += n
	}
	items := p.all(ref, 1, want.Tail, 0)
	require.Len(t, items, next-1)
	for i, item := range items {
		require.Equal(t, uint64(i+1), item.Seq)
		require.Equal(t, fmt.Sprintf("k-%d", i+1), item.ID)
	}
}

func appendOpens(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	opening := part(ref, policy, start, 1, 1, 10)
	next := part(ref, policy, start, 2, 1, 10)
	next.Life = "another"

	a := p.append(start, opening)[0]
	require.Equal(t, core.Appended{First: 1, Armed: true, CheckAt: start + 3*second, Life: opening.Life}, a)
	a = p.append(start+second, next)[0]
	require.Equal(t, core.Appended{First: 2, CheckAt: start + 3*second, Life: opening.Life}, a,
		"the group keeps its life and its check")
}

func appendReached(t *testing.T, p *probe) {
	policy := calm()
	policy.MaxItems, policy.MaxBytes = 5, 1000
	for _, c := range []struct {
		name    string
		sizes   [][2]int // items, bytes of each
		reached []bool
	}{
		{"items", [][2]int{{4, 1}, {1, 1}, {1, 1}}, []bool{false, true, false}},
		{"all at once", [][2]int{{12, 1}, {12, 1}}, []bool{true, false}},
		{"bytes", [][2]int{{1, 999}, {1, 1}, {1, 1}}, []bool{false, true, false}},
	} {
		for i, size := range c.sizes {
			ref := core.Ref{Buffer: "b", Key: c.name}
			a := p.append(start, part(ref, policy, start, 1, size[0], size[1]))
			require.Equal(t, c.reached[i], a[0].Reached, "%s, append %d", c.name, i)
		}
	}
}

// awkward are events that a careless encoding changes.
func awkward() []core.Event {
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	headers := []core.Header{{Name: "z", Value: "1"}, {Name: "a", Value: ""}, {Name: "z", Value: "2"},
		{Name: "x-bytes", Value: "\xff\x00 \t é"}, {Name: "", Value: "no name"}}
	return []core.Event{
		{ID: "empty", Source: "s", ReceivedAt: start},
		{ID: "no id of a sane kind /#\n\x00 é 🙂", Source: "s", ReceivedAt: start, Body: []byte("x")},
		{ID: "binary", Source: "s", ContentType: "application/octet-stream", ReceivedAt: start, Body: everyByte},
		{ID: "headers", Source: "a/b", ContentType: `text/plain; charset="utf-8"`, Headers: headers, ReceivedAt: start, Body: []byte("{}")},
		{ID: "old", Source: "s", ReceivedAt: start - 3_600_000, Body: []byte("\n\n")},
		{ID: "ahead", Source: "s", ReceivedAt: start + 3_600_000, Body: []byte(" ")},
		{ID: "large", Source: "s", ReceivedAt: start, Body: bytes.Repeat(everyByte, 350<<10/256)},
		{ID: "zeros", Source: "s", ReceivedAt: start, Body: make([]byte, 70_000)},
	}
}

func appendKeepsBytes(t *testing.T, p *probe) {
	var parts []core.Part
	for i, e := range awkward() {
		parts = append(parts, core.Part{Ref: core.Ref{Buffer: "alone", Key: fmt.Sprint(i)}, Life: fmt.Sprint("l", i),
			Policy: calm(), Events: []core.Event{e}})
	}
	p.append(start, parts...)
	together := core.Part{Ref: core.Ref{Buffer: "together"}, Life: "l", Policy: calm(), Events: awkward()}
	p.append(start, together)

	check := func() {
		for i, e := range awkward() {
			page := p.items(parts[i].Ref, core.Span{From: 1, To: 1})
			same(t, []core.Item{{Event: e, Seq: 1}}, page.Items, e.ID)
			require.Equal(t, []int64{e.Size()}, page.Offsets)
			items := p.all(together.Ref, uint64(i+1), uint64(i+1), 0)
			same(t, []core.Item{{Event: e, Seq: uint64(i + 1)}}, items, e.ID+" among others")
		}
		same(t, awkward(), events(p.all(together.Ref, 1, uint64(len(parts)), 100_000)), "in pages")
	}
	check()
	p.reopen()
	check()
}

func appendSeveral(t *testing.T, p *probe) {
	policy := calm()
	a, b := core.Ref{Buffer: "one", Key: "k"}, core.Ref{Buffer: "two", Key: "k"}
	c := core.Ref{Buffer: "one", Key: "other"}
	p.append(start, part(b, policy, start, 1, 3, 5))

	answers := p.append(start+1, part(a, policy, start+1, 1, 2, 5), part(b, policy, start+1, 4, 1, 5), part(c, policy, start+1, 1, 1, 5))
	require.Equal(t, []core.Appended{
		{First: 1, Armed: true, CheckAt: start + 1 + 3*second, Life: lifeOf(a)},
		{First: 4, CheckAt: start + 3*second, Life: lifeOf(b)},
		{First: 1, Armed: true, CheckAt: start + 1 + 3*second, Life: lifeOf(c)},
	}, answers)
	require.Equal(t, []string{"k-1", "k-2"}, ids(p.all(a, 1, 2, 0)))
	require.Equal(t, []string{"k-1", "k-2", "k-3", "k-4"}, ids(p.all(b, 1, 4, 0)))
	require.Equal(t, []string{"other-1"}, ids(p.all(c, 1, 1, 0)))
}

func appendTwice(t *testing.T, p *probe) {
	ref, other, policy := core.Ref{Buffer: "b", Key: "k"}, core.Ref{Buffer: "b", Key: "o"}, calm()
	policy.MaxItems = 3
	answers := p.append(start,
		part(ref, policy, start, 1, 2, 7), part(other, policy, start, 1, 1, 7), part(ref, policy, start, 3, 3, 7))
	require.Equal(t, []core.Appended{
		{First: 1, Armed: true, CheckAt: start + 3*second, Life: lifeOf(ref)},
		{First: 1, Armed: true, CheckAt: start + 3*second, Life: lifeOf(other)},
		{First: 3, CheckAt: start + 3*second, Life: lifeOf(ref), Reached: true},
	}, answers)
	g := p.group(ref)
	require.Equal(t, uint64(5), g.Tail)
	require.Equal(t, int64(35), g.TailBytes)
	require.Equal(t, []string{"k-1", "k-2", "k-3", "k-4", "k-5"}, ids(p.all(ref, 1, 5, 0)))
}

func appendCopies(t *testing.T, p *probe) {
	ref := core.Ref{Buffer: "b", Key: "k"}
	mine := part(ref, calm(), start, 1, 1, 100)
	p.append(start, mine)
	spoil(&mine.Events[0])
	got := p.all(ref, 1, 1, 0)
	same(t, event("k-1", start, 100), got[0].Event, "after the caller used its event again")
	spoil(&got[0].Event)
	same(t, event("k-1", start, 100), p.all(ref, 1, 1, 0)[0].Event, "after a reader wrote to what it got")
}

// spoil writes over all that an event points to.
func spoil(e *core.Event) {
	for i := range e.Body {
		e.Body[i] = '!'
	}
	for i := range e.Headers {
		e.Headers[i] = core.Header{Name: "spoilt"}
	}
}

func appendWeirdKeys(t *testing.T, p *probe) {
	policy, keys := calm(), weirdKeys()
	for i, key := range keys {
		p.append(start, part(core.Ref{Buffer: "b", Key: key}, policy, start, i, 1, i))
	}
	check := func() {
		for i, key := range keys {
			ref := core.Ref{Buffer: "b", Key: key}
			require.Equal(t, uint64(1), p.group(ref).Tail, "%q", key)
			require.Equal(t, []string{fmt.Sprintf("%s-%d", key, i)}, ids(p.all(ref, 1, 1, 0)), "%q", key)
		}
		var listed []string
		for _, g := range p.groups("b", 4) {
			listed = append(listed, g.Ref.Key)
		}
		require.Equal(t, keys, listed, "listed in the order of their bytes")
	}
	check()
	p.reopen()
	check()
}

// events are what items hold.
func events(items []core.Item) []core.Event {
	out := make([]core.Event, len(items))
	for i := range items {
		out[i] = items[i].Event
	}
	return out
}

package flushtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// stateTests are every state with every set of options.
func stateTests() []test {
	var tests []test
	for _, s := range states() {
		final := s.final
		for _, o := range []struct {
			name  string
			with  core.FlushOptions
			line  string
			alone string // on a store of one process
		}{
			{"plain", core.FlushOptions{}, s.plain, ""},
			{"force", core.FlushOptions{Force: true}, s.force, ""},
			{"final", core.FlushOptions{Final: true}, final, s.finalHere},
			{"final, force", core.FlushOptions{Final: true, Force: true}, s.both, ""},
			{"only this", core.FlushOptions{Only: []string{"nosuch", s.buffer, "nosuch"}}, s.plain, ""},
			{"only this, strict", core.FlushOptions{Only: []string{s.buffer}, Strict: true}, s.plain, ""},
			{"strict", core.FlushOptions{Strict: true}, s.plain, ""},
		} {
			tests = append(tests, test{s.name + "/" + o.name, s.shared, func(t *testing.T, p *probe) {
				s.arrange(p)
				p.taken()
				line := o.line
				if p.turns == nil && o.alone != "" {
					line = o.alone
				}
				p.isLine(t, line, p.house(s.buffer, o.with), s.buffer)
			}})
		}
		tests = append(tests, s.restricted()...)
	}
	return tests
}

// restricted are the options under which a flush is not, or not all, of the buffer.
func (s *state) restricted() []test {
	untouched := func(t *testing.T, p *probe, flush func()) {
		s.arrange(p)
		p.taken()
		here := p.here.wait(s.buffer)
		var turn string
		if p.turns != nil {
			turn = p.turn(s.buffer)
		}
		flush()
		require.Empty(t, p.taken())
		require.Equal(t, here, p.here.wait(s.buffer))
		if p.turns != nil {
			require.Equal(t, turn, p.turn(s.buffer))
		}
	}
	return []test{
		{s.name + "/only another", s.shared, func(t *testing.T, p *probe) {
			untouched(t, p, func() {
				r := p.house(s.buffer, core.FlushOptions{Force: true, Final: true, Only: []string{}})
				require.Equal(t, core.BufferFlush{Buffer: s.buffer, Skipped: true, Reason: core.SkippedNotSelected}, r)
			})
		}},
		{s.name + "/only a stranger, strict", s.shared, func(t *testing.T, p *probe) {
			untouched(t, p, func() {
				_, err := p.here.flusher.Flush(t.Context(), core.FlushOptions{Force: true, Only: []string{s.buffer, "bb", "b b"}, Strict: true})
				require.Equal(t, core.Invalid, core.CodeOf(err))
				require.EqualError(t, err, `only names "bb", "b b", which is no buffer; there are b, c, w, f`)
			})
		}},
		{s.name + "/groups", s.shared, func(t *testing.T, p *probe) {
			s.arrange(p)
			p.taken()
			groups := []string{"nobody", "k2", "k1", "k1"}
			for _, m := range []core.Millis{-3, -2, -1, 0} {
				from := start + m*core.Millis(time.Minute.Milliseconds())
				groups = append(groups, from.String()+"/"+from.Add(time.Minute).String())
			}
			p.isLine(t, s.plain, p.here.flush(s.buffer, core.FlushOptions{Groups: groups}), s.buffer)
		}},
	}
}

// house flushes everything, and returns what came of one buffer.
func (p *probe) house(buffer string, o core.FlushOptions) core.BufferFlush {
	p.t.Helper()
	r, err := p.here.flusher.Flush(p.t.Context(), o)
	require.NoError(p.t, err)
	require.Len(p.t, r.Buffers, 4)
	require.True(p.t, r.OK())
	require.NoError(p.t, r.Err())
	var unmatched []string
	if slices.Contains(o.Only, "nosuch") {
		unmatched = []string{"nosuch"}
	}
	require.Equal(p.t, unmatched, r.Unmatched)
	var found core.BufferFlush
	for i, name := range []string{"b", "c", "w", "f"} {
		b := r.Buffers[i]
		require.Equal(p.t, name, b.Buffer)
		if name == buffer {
			found = b
			continue
		}
		if o.Only != nil {
			require.Equal(p.t, core.BufferFlush{Buffer: name, Skipped: true, Reason: core.SkippedNotSelected}, b)
		} else {
			require.Equal(p.t, core.BufferFlush{Buffer: name}, b)
		}
	}
	return found
}

// isLine holds what has happened against a line.
func (p *probe) isLine(t *testing.T, want string, r core.BufferFlush, buffer string) {
	t.Helper()
	got := p.sends() + " | " + p.report(&r) + " | here " + p.here.wait(buffer).String()
	if p.turns == nil {
		want, _, _ = strings.Cut(want, " | there")
	} else {
		got += " | there " + p.there.wait(buffer).String() + p.record(buffer)
	}
	require.Equal(t, want, got)
}

// sends is what was sent, in the order of groups.
func (p *probe) sends() string {
	var sent []string
	for _, b := range p.taken() {
		require.Equal(p.t, core.ReasonFlush, b.Reason)
		group := b.Group
		if b.Window != nil {
			group = b.Window.Start.Time().Format("15:04")
		}
		sent = append(sent, fmt.Sprintf("%s×%d#%d", group, len(b.Items), b.Attempt))
	}
	slices.SortFunc(sent, func(a, b string) int {
		ka, na, _ := strings.Cut(a, "×")
		kb, nb, _ := strings.Cut(b, "×")
		if ka != kb {
			return strings.Compare(ka, kb)
		}
		if x, y := na[:1], nb[:1]; x != y {
			return strings.Compare(y, x) // the fuller first
		}
		return strings.Compare(na, nb)
	})
	return strings.Join(sent, " ")
}

// report is every field of a report that says something.
func (p *probe) report(r *core.BufferFlush) string {
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	if r.Skipped {
		say("skipped %s %s", r.Reason, r.NextEligibleIn)
	}
	if r.Rows > 0 {
		say("rows %d", r.Rows)
	}
	if r.Buckets > 0 {
		say("buckets %d", r.Buckets)
	}
	if r.Recovered != nil {
		say("recovered %d of %d", r.Recovered.Claims, r.Recovered.Rows)
	}
	require.Nil(p.t, r.Written)
	for _, err := range []error{r.Err, r.ReleaseErr, r.AckErr, r.RecoverErr} {
		require.NoError(p.t, err)
	}
	return strings.Join(said, ", ")
}

// record is what a turn record says, in times from now on.
func (p *probe) record(buffer string) string {
	text := p.turn(buffer)
	if text == "" {
		return ""
	}
	var r core.Turn
	require.NoError(p.t, json.Unmarshal([]byte(text), &r))
	var said string
	if r.Last != 0 {
		said += ", last " + r.Last.Sub(p.clock.Now()).String()
	}
	if r.Holder != "" {
		said += ", held"
		require.Equal(p.t, r.Begin.Add(turnLease), r.Until)
	}
	return said
}

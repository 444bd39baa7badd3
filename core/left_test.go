package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// What is held or in an open window is not stuck; what only was, is.
func TestWhatIsLeft(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change     func(*core.Buffer)
		buffer     string
		open, held int64
		until      core.Millis
	}{
		"at once":          {func(b *core.Buffer) {}, "b", 0, 0, 0},
		"in a window":      {windowed, "b", 2, 0, noon.Add(40 * time.Second)},
		"held":             {func(b *core.Buffer) { b.DeliverAfter = time.Minute }, "b~held", 0, 2, noon.Add(time.Minute)},
		"held, in a shard": {func(b *core.Buffer) { b.DeliverAfter, b.Shards = time.Minute, 8 }, "b~held", 0, 2, noon.Add(time.Minute)},
		"held in order":    {func(b *core.Buffer) { b.DeliverAfter, b.Ordered = time.Minute, true }, "b", 0, 2, noon.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDock(t)
			p := d.process(docked(tt.change))
			left := func() []core.Left {
				l, err := p.catalog.Left(context.Background(), d.memory, d.clock())
				require.NoError(t, err)
				return l
			}
			require.Empty(t, left())
			p.keys("k", "k")
			if tt.until != 0 {
				p.flush(core.FlushOptions{Final: true, Force: true})
			}
			got := left()
			require.Len(t, got, 1)
			require.Equal(t, core.Left{Buffer: tt.buffer, Groups: got[0].Groups, Items: 2, Open: tt.open, Held: tt.held, Until: tt.until}, got[0])
			require.Equal(t, 2-tt.open-tt.held, got[0].Stuck())
			d.pass(2 * time.Minute)
			require.Equal(t, core.Left{Buffer: tt.buffer, Groups: got[0].Groups, Items: 2}, left()[0])
			c := docked()
			c.Buffers[0].Name = "other"
			other, err := core.NewCatalog(c, toy)
			require.NoError(t, err)
			l, err := other.Left(context.Background(), d.memory, noon)
			require.NoError(t, err)
			require.Equal(t, int64(2), l[0].Stuck(), "its buffer is not configured any more")
		})
	}
}

// listing notes whose groups are listed.
type listing struct {
	core.Store

	of []string
}

func (l *listing) Groups(ctx context.Context, buffer string, after *string, limit int) ([]core.NamedGroup, error) {
	l.of = append(l.of, buffer)
	return l.Store.Groups(ctx, buffer, after, limit)
}

// Where nothing can be held or in a window no group is read, however many there are.
func TestWhatIsLeftReadsNoMoreThanItMust(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*core.Buffer)
		of     []string
	}{
		"at once":             {func(*core.Buffer) {}, nil},
		"in a window":         {windowed, []string{"b"}},
		"held":                {func(b *core.Buffer) { b.DeliverAfter = time.Minute }, []string{"b~held"}},
		"held in order":       {func(b *core.Buffer) { b.DeliverAfter, b.Ordered = time.Minute, true }, []string{"b"}},
		"never held in order": {func(b *core.Buffer) { b.DeliverAt, b.Ordered = "{{ .json.ts }}", true }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDock(t)
			p := d.process(docked(tt.change))
			p.keys("k")
			d.answer = func(*core.Batch) core.Response { return core.Response{Status: 500} }
			p.put(`{"k":"l","ts":""}`)
			p.flush(core.FlushOptions{Final: true})
			l := &listing{Store: d.memory}
			left, err := p.catalog.Left(context.Background(), l, d.clock())
			require.NoError(t, err)
			require.NotEmpty(t, left)
			require.Equal(t, tt.of, l.of)
		})
	}
}

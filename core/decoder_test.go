package core_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/render"
	"sluice/infra/memory"
)

// decoding is a program that decodes what it runs on, and puts it out as it is.
type decoding struct {
	t *testing.T
	n *atomic.Int64 // of all that are of one language
}

func (d decoding) Run(_ context.Context, in render.Input) ([]byte, bool, error) {
	v, err := in.(core.Decoder).Decoded(func() (any, error) {
		d.n.Add(1)
		return bytes.Clone(in.Body()), nil
	})
	require.Equal(d.t, in.Body(), v, "it is this event's")
	return v.([]byte), true, err
}

func TestAnEventIsDecodedOnceForAllPrograms(t *testing.T) {
	t.Parallel()
	both := func(b *core.Buffer) { b.Filter, b.Transform = ".", "." }
	for name, tt := range map[string]struct {
		change  []func(*core.Config)
		events  int
		decoded int64
	}{
		"none":                   {nil, 3, 0},
		"one":                    {[]func(*core.Config){buf(both)}, 1, 1},
		"two buffers":            {[]func(*core.Config){buf(both), beside("second")}, 1, 1},
		"a copy":                 {[]func(*core.Config){buf(both), copied()}, 1, 1},
		"a copy alone":           {[]func(*core.Config){copied(both)}, 1, 1},
		"many":                   {[]func(*core.Config){buf(both), beside("second")}, 5, 5},
		"many, and their copies": {[]func(*core.Config){buf(both), copied()}, 5, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			catalog, err := core.NewCatalog(config(tt.change...), func(string) (core.Program, error) { return decoding{t, &n}, nil })
			require.NoError(t, err)
			in := core.NewIngester(catalog, core.Ports{
				Store: memory.New(), Timer: silent{}, Queue: mute{},
				Clock: core.ClockFunc(func() core.Millis { return core.At(time.Unix(1_800_000_000, 0)) }),
				IDs:   core.IDsFunc(func() string { return strings.Repeat("I", 8) }),
			})
			events := make([]core.Event, tt.events)
			for i := range events {
				events[i] = core.Event{Body: fmt.Appendf(nil, `{"k":%d}`, i)}
			}
			receipt, err := in.Ingest(t.Context(), "in", events)
			require.NoError(t, err)
			require.Equal(t, tt.events, receipt.Accepted)
			require.Equal(t, tt.decoded, n.Load())
		})
	}
}

package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

func TestParseSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0B": 0, "1B": 1, "1KB": 1024, "1KiB": 1024, "4MiB": 4 << 20, "4MB": 4 << 20, "2GiB": 2 << 30, "1GB": 1 << 30,
		"8589934591GiB": 8589934591 << 30, // the largest that fits
		"8589934592GiB": -1, "99999999999999999999B": -1,
		"": -1, "MiB": -1, "4": -1, "4 MiB": -1, "4mib": -1, "4M": -1, "-4MiB": -1, "+4MiB": -1, "1.5MiB": -1, "4MiBMiB": -1, "4iB": -1, "0x4B": -1,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got, ok := parseSize(text)
			require.Equal(t, want >= 0, ok)
			if ok {
				require.Equal(t, want, got)
			}
		})
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0s": 0, "100ms": 100 * time.Millisecond, "1.5s": 1500 * time.Millisecond, "15s": 15 * time.Second,
		"1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour, "2m2ms": 2*time.Minute + 2*time.Millisecond,
		"106751d": 106751 * 24 * time.Hour, "106752d": -1, "100000d100000d": -1, "99999999999999999999s": -1,
		"": -1, "15": -1, "s": -1, "-1s": -1, "+1s": -1, "1 s": -1, "1.s": -1, ".5s": -1, "1S": -1, "1w": -1, "5us": -1, "1h30": -1,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got, ok := parseDuration(text)
			require.Equal(t, want >= 0, ok)
			if ok {
				require.Equal(t, want, got)
			}
		})
	}
}

// TestUnitsRoundTrip holds that what a fault or a default shows can be written.
func TestUnitsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(0, 1<<40).Draw(t, "ms")
		want := time.Duration(ms) * time.Millisecond
		got, ok := parseDuration(core.UnitDuration.Format(int64(want)))
		require.True(t, ok)
		require.Equal(t, want, got)
		n := rapid.Int64Range(1, 1<<20).Draw(t, "n") * rapid.SampledFrom([]int64{core.KiB, core.MiB}).Draw(t, "unit")
		size, ok := parseSize(core.UnitBytes.Format(n))
		require.True(t, ok)
		require.Equal(t, n, size)
	})
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"maxItems", "maxBytes", "idleTimeoutMs", "to", "from"}
	for name, want := range map[string]string{
		"maxItem": "maxItems", "max_items": "maxItems", "MAXBYTES": "maxBytes", "idleTimeout": "idleTimeoutMs",
		"form": "from", "OT": "", "frm": "from", "filter": "", "t": "", "": "", "too": "to",
		"maxItemsmaxItemsmaxItemsmaxItemsmaxItemsmaxItems": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, want, nearest(name, known))
		})
	}
}

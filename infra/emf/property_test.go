package emf_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
	"sluice/infra/emf"
)

// names are names of every kind, most of which no configuration can hold.
func names() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", " ", "a", "b", "other", "none", "\x00", "a\nb", `"`, `\`, ":x", "_aws", "ä", "\xff\xfe", "</script>", "sluice_groups"}),
		rapid.String(),
		rapid.StringN(200, 400, -1),
	)
}

// TestWhateverIsReported shows that every line is by the rules, and that
// nothing is lost or counted twice, whatever the names are.
func TestWhateverIsReported(t *testing.T) {
	t.Parallel()
	rules := schema(t)
	rapid.Check(t, func(t *rapid.T) {
		m := emf.New(names().Draw(t, "environment"), newClock())
		o := m.Observer()
		sums, counts := map[string]float64{}, map[string]int{}
		var out bytes.Buffer
		for range rapid.IntRange(0, 25).Draw(t, "reports") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				n := rapid.IntRange(1, 1000).Draw(t, "events")
				o.Events(names().Draw(t, "source"), names().Draw(t, "outcome"), n)
				sums["sluice_events_total"] += float64(n)
			case 1:
				repeat := rapid.IntRange(1, 120).Draw(t, "repeat")
				a := core.Attempt{
					Buffer: names().Draw(t, "buffer"), Destination: names().Draw(t, "destination"),
					Reason: core.Reason(names().Draw(t, "reason")), Number: 1, Items: 3,
					Outcome: rapid.SampledFrom([]core.Outcome{core.Delivered, core.Retry, core.Permanent}).Draw(t, "outcome"),
					Took:    time.Duration(rapid.Int64Range(0, 300_000).Draw(t, "ms")) * time.Millisecond,
				}
				for range repeat {
					o.Attempt(&a)
				}
				sums["sluice_batches_total"] += float64(repeat)
				counts["sluice_delivery_seconds"] += repeat
			case 2:
				o.DeadLetters(&core.DeadLetter{Buffer: names().Draw(t, "buffer"), Reason: names().Draw(t, "reason")}, 2)
				sums["sluice_dead_letters_total"] += 2
			case 3:
				o.Failed(names().Draw(t, "op"), nil)
				sums["sluice_failures_total"]++
			case 4:
				m.Lost(5)
				sums["sluice_lost_items_total"] += 5
			case 5:
				require.NoError(t, m.Flush(&out))
			}
		}
		require.NoError(t, m.Flush(&out))
		for _, l := range read(t, rules, out.Bytes()) {
			for _, d := range l.meta.CloudWatchMetrics {
				for _, metric := range d.Metrics {
					values := l.values(t, metric.Name)
					counts[metric.Name] -= len(values)
					for _, v := range values {
						sums[metric.Name] -= v
					}
				}
			}
		}
		for _, name := range []string{
			"sluice_events_total", "sluice_batches_total", "sluice_dead_letters_total", "sluice_failures_total", "sluice_lost_items_total",
		} {
			require.InDeltaf(t, 0, sums[name], 0, "the sum of %s", name)
		}
		require.Zero(t, counts["sluice_delivery_seconds"])
	})
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{"", "web", "\x00", "ä", `"\`, " a b "} {
		f.Add(s, s)
	}
	rules := schema(f)
	f.Fuzz(func(t *testing.T, environment, source string) {
		m := emf.New(environment, newClock())
		m.Observer().Events(source, core.EventsAccepted, 1)
		var out bytes.Buffer
		require.NoError(t, m.Flush(&out))
		lines := read(t, rules, out.Bytes())
		require.Len(t, lines, 1)
		odd := func(r rune) bool { return r <= ' ' || r > '~' }
		if source != "" && len(source) < 255 && strings.IndexFunc(source, odd) < 0 {
			require.Equal(t, source, lines[0].dimension(t, "source"), "a plain name stays as it is")
		}
	})
}

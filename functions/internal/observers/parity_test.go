package observers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/observers"
	"sluice/infra/emf"
	"sluice/infra/observe"
)

const now core.Millis = 1_700_000_000_000

// onlyEMF are the metrics that a function has and the local binary does not.
var onlyEMF = []string{"sluice_failures_total", "sluice_lost_items_total"}

// TestBothKindsOfMetricsSayTheSame shows that a dashboard for the local binary
// and one for AWS can be made of the same names, and count the same things.
func TestBothKindsOfMetricsSayTheSame(t *testing.T) {
	t.Parallel()
	stats := []core.BufferStats{
		{Buffer: "orders", Groups: 2, Pending: 3, Bytes: 900, Claimed: 6, Oldest: now - 1500},
		{Buffer: "hooks", Groups: 1, Pending: 8, Bytes: 80, Held: 5, Oldest: now - 10},
		{Buffer: "orders~held", Groups: 2, Pending: 4, Bytes: 40, Claimed: 1, Oldest: now - 60_000},
	}
	clock := core.ClockFunc(func() core.Millis { return now })
	local := observe.NewMetrics(func(context.Context) ([]core.BufferStats, error) { return stats, nil }, clock)
	cloud := emf.New("dev", clock)
	cloud.Gauges(stats)
	o := observers.Join(local.Observer(), cloud.Observer())
	o.Breaker("crm", true)
	for i, outcome := range []core.Outcome{core.Retry, core.Partial, core.Delivered, core.Permanent, core.Interrupted} {
		for _, reason := range []core.Reason{core.ReasonItems, core.ReasonBytes, core.ReasonWait, core.ReasonIdle, core.ReasonWindow, core.ReasonFlush, core.ReasonReplay} {
			o.Events("web", core.EventsAccepted, 1+i)
			o.Events("web", core.EventsFiltered, 2+i)
			o.Events("web", core.EventsDoubled, 3+i)
			o.Late("orders", 2+i)
			o.Shadow("copy", core.ShadowDelivered, 1+i)
			o.Shadow("copy", core.ShadowFailed, 2+i)
			o.Shadow("copy", core.ShadowDropped, 3+i)
			o.Attempt(&core.Attempt{
				Buffer: "orders", Group: "k", Batch: "x", Destination: "crm", Items: 1 + i, Bytes: int64(100 * i), Reason: reason,
				Number: 1 + i%2, Outcome: outcome, Took: 40 * time.Millisecond, Lateness: time.Duration(i) * time.Millisecond,
			})
			o.DeadLetters(&core.DeadLetter{Buffer: "orders", Reason: core.DeadPermanent}, 1)
			o.Failed("arm a check", errors.New("throttled"))
		}
	}
	require.Empty(t, cmp.Diff(scraped(t, local), flushed(t, cloud), cmpopts.EquateApprox(0, 1e-9)))
}

// scraped is every series of a scrape that is Sluice's own, without buckets.
func scraped(t *testing.T, m *observe.Metrics) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	all := map[string]float64{}
	for _, match := range regexp.MustCompile(`(?m)^(sluice_\w+)\{(.*)\} (\S+)$`).FindAllStringSubmatch(w.Body.String(), -1) {
		if strings.HasSuffix(match[1], "_bucket") {
			continue
		}
		value, err := strconv.ParseFloat(match[3], 64)
		require.NoError(t, err)
		all[match[1]+"{"+match[2]+"}"] = value
	}
	require.NotEmpty(t, all)
	return all
}

// flushed is what a flush writes, in the same form.
func flushed(t *testing.T, m *emf.Metrics) map[string]float64 {
	t.Helper()
	labels := map[string][]string{}
	for _, d := range emf.Definitions() {
		labels[d.Name] = d.Labels
	}
	var out bytes.Buffer
	require.NoError(t, m.Flush(&out))
	all := map[string]float64{}
	for line := range bytes.Lines(out.Bytes()) {
		root := map[string]any{}
		require.NoError(t, json.Unmarshal(line, &root))
		for name := range maps.Keys(root) {
			of, ok := labels[name]
			if !ok || slices.Contains(onlyEMF, name) {
				continue
			}
			var pairs []string
			for _, l := range of {
				pairs = append(pairs, fmt.Sprintf("%s=%q", l, root[l]))
			}
			slices.Sort(pairs)
			series := "{" + strings.Join(pairs, ",") + "}"
			values, ok := root[name].([]any)
			if !ok {
				all[name+series] += root[name].(float64)
				continue
			}
			for _, v := range values {
				all[name+"_sum"+series] += v.(float64)
				all[name+"_count"+series]++
			}
		}
	}
	return all
}

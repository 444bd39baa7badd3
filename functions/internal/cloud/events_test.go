package cloud

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/functions/internal/lambdatest"
)

var update = flag.Bool("update", false, "write the golden answers of events/")

// folder has the events that functions are given by hand, each beside its
// golden answer, and the configuration that they go by.
const folder = "../../../events"

// start makes a function by its name, on an empty store.
func start(t *testing.T, name string) lambdatest.Handler {
	t.Helper()
	vars := variables(t, "")
	vars["SLUICE_CONFIG"] = filepath.Join(folder, "sluice.yaml")
	vars["SLUICE_DELIVER_QUEUE_URL"] = "https://sqs.eu-central-1.amazonaws.com/123456789012/sluice-dev-DeliverQueue-1A2B3C4D5E6F"
	vars["ORDERS_TOKEN"], vars["SLUICE_CONTROL_TOKEN"] = "orders-token", "control-token"
	r := setUpWith(t, vars)
	switch name {
	case "ingest":
		h, err := r.ingest(r.outside)
		require.NoError(t, err)
		return lambdatest.Handle(h)
	case "receive":
		h, err := r.receive(r.outside)
		require.NoError(t, err)
		return lambdatest.Handle(h)
	case "check":
		return lambdatest.Handle(r.checking())
	case "deliver":
		return lambdatest.Handle(r.deliver(r.outside, r.sender))
	case "flush":
		return lambdatest.Handle(r.flushing(r.outside, r.sender, new(upkeep)))
	case "control":
		h, err := r.control(r.outside, r.sender)
		require.NoError(t, err)
		return lambdatest.Handle(h)
	}
	require.FailNow(t, "an event of no function", name)
	return nil
}

// Every function answers the events of events/ as the golden files say.
func TestEvents(t *testing.T) {
	t.Parallel()
	good, err := filepath.Glob(filepath.Join(folder, "*-*.json"))
	require.NoError(t, err)
	bad, err := filepath.Glob(filepath.Join(folder, "bad", "*-*.json"))
	require.NoError(t, err)
	ran := map[string]int{}
	for _, path := range append(good, bad...) {
		name := strings.TrimSuffix(path, ".json")
		if strings.HasSuffix(name, ".golden") {
			continue
		}
		function, _, _ := strings.Cut(filepath.Base(name), "-")
		ran[function]++
		t.Run(strings.TrimPrefix(name, folder+"/"), func(t *testing.T) {
			t.Parallel()
			event, err := os.ReadFile(path)
			require.NoError(t, err)
			got := start(t, function).Answer(t, event)
			golden := name + ".golden.json"
			if *update {
				require.NoError(t, os.WriteFile(golden, got, 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		})
	}
	for _, function := range []string{"ingest", "receive", "check", "deliver", "flush", "control"} {
		require.NotZero(t, ran[function], "no event of %s has run", function)
	}
}

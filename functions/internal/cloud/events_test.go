package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden answers of events/")

// folder has the events that functions are given by hand, each beside its
// golden answer, and the configuration that they go by.
const folder = "../../../events"

// raw is a function as Lambda calls it.
type raw func(ctx context.Context, event []byte) (any, error)

func rawly[In, Out any](h func(context.Context, In) (Out, error)) raw {
	return func(ctx context.Context, event []byte) (any, error) {
		var in In
		if err := json.Unmarshal(event, &in); err != nil {
			return nil, err
		}
		return h(ctx, in)
	}
}

// start makes a function by its name, on an empty store.
func start(t *testing.T, name string) raw {
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
		return rawly(h)
	case "check":
		return rawly(r.checking())
	case "deliver":
		return rawly(r.deliver(r.outside, r.sender))
	case "flush":
		return rawly(r.flushing(r.outside, new(upkeep)))
	case "control":
		h, err := r.control(r.outside, r.sender)
		require.NoError(t, err)
		return rawly(h)
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
			got := answer(t, start(t, function), event)
			golden := name + ".golden.json"
			if *update {
				require.NoError(t, os.WriteFile(golden, got, 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		})
	}
	for _, function := range []string{"ingest", "check", "deliver", "flush", "control"} {
		require.NotZero(t, ran[function], "no event of %s has run", function)
	}
}

// answer is what a function answers, or its error as Lambda tells of it,
// without what is not set.
func answer(t *testing.T, call raw, event []byte) []byte {
	t.Helper()
	out, err := call(t.Context(), event)
	if err != nil {
		out = map[string]string{"errorMessage": err.Error(), "errorType": reflect.Indirect(reflect.ValueOf(err)).Type().Name()}
	}
	text, err := json.Marshal(out)
	require.NoError(t, err)
	var members map[string]any
	require.NoError(t, json.Unmarshal(text, &members))
	for name, v := range members {
		if v == nil {
			delete(members, name)
		}
	}
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(members))
	return got.Bytes()
}

package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/stretchr/testify/require"

	"sluice/core"
)

// bare is a function that does what a test says, and counts an event first.
func bare(out *output, do func(*function) error) func(context.Context, int) (int, error) {
	f := newFunction(Env{Environment: "dev"}, clock, out)
	return invocations(f, func(_ context.Context, n int) (int, error) {
		f.observer.Events("orders", core.EventsAccepted, n)
		return n, do(f)
	})
}

func named(ctx context.Context, id string) context.Context {
	return lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: id})
}

// Each invocation writes what it has measured, and no more.
func TestInvocations(t *testing.T) {
	t.Parallel()
	out := new(output)
	h := bare(out, func(f *function) error {
		f.log.Info("at work")
		f.log.Warn("in doubt")
		return nil
	})
	for n, id := range []string{"first", "second"} {
		got, err := h(named(t.Context(), id), n+1)
		require.NoError(t, err)
		require.Equal(t, n+1, got)
	}
	var counted []float64
	for line := range strings.Lines(out.String()) {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		if n, ok := m["sluice_events_total"].(float64); ok {
			counted = append(counted, n)
			require.Equal(t, "dev", m["environment"])
		}
		if m["msg"] == "at work" {
			require.NotContains(t, m, "requestId")
		}
	}
	require.Equal(t, []float64{1, 2}, counted)
	require.Equal(t, 1, strings.Count(out.String(), `"msg":"in doubt","requestId":"first"`))
	require.Equal(t, 1, strings.Count(out.String(), `"msg":"in doubt","requestId":"second"`))
}

func TestInvocationThatFails(t *testing.T) {
	t.Parallel()
	out := new(output)
	h := bare(out, func(*function) error {
		return core.Wrap(core.Unavailable, errors.New("no route"), "the table does not answer")
	})
	_, err := h(named(t.Context(), "id-1"), 1)
	require.Equal(t, core.Unavailable, core.CodeOf(err))
	line := out.line(t, "the invocation failed")
	require.Equal(t, "ERROR", line["level"])
	require.Equal(t, "id-1", line["requestId"])
	require.Equal(t, "unavailable", line["code"])
	require.Equal(t, "the table does not answer: no route", line["error"])
	require.EqualValues(t, 1, out.line(t, "sluice_events_total\":1")["sluice_events_total"])
}

// A panic goes on to the runtime, which ends the process: what was measured is
// written before.
func TestInvocationThatPanics(t *testing.T) {
	t.Parallel()
	out := new(output)
	h := bare(out, func(*function) error { panic("oh no") })
	require.PanicsWithValue(t, "oh no", func() { _, _ = h(named(t.Context(), "id-2"), 3) })
	require.Equal(t, "id-2", out.line(t, "the invocation panics")["requestId"])
	require.EqualValues(t, 3, out.line(t, "sluice_events_total\":3")["sluice_events_total"])
}

// Lambda ends an invocation that takes too long without a word, so the word is
// said just before.
func TestInvocationThatTakesTooLong(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		out := new(output)
		written := func() bool { return strings.Contains(out.String(), "sluice_events_total") }
		h := bare(out, func(*function) error {
			<-time.After(10*time.Second - flushMargin - time.Millisecond)
			synctest.Wait()
			require.False(t, written())
			<-time.After(time.Millisecond)
			synctest.Wait()
			require.True(t, written())
			return nil
		})
		_, err := h(ctx, 4)
		require.NoError(t, err)
		out.line(t, "about to run out of time")
		out.line(t, "sluice_events_total\":4")
	})
}

// One that ends in time says nothing of it, also later.
func TestInvocationThatIsInTime(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		out := new(output)
		_, err := bare(out, func(*function) error { return nil })(ctx, 1)
		require.NoError(t, err)
		<-ctx.Done()
		synctest.Wait()
		require.NotContains(t, out.String(), "out of time")
	})
}

func TestLogLevel(t *testing.T) {
	t.Parallel()
	vars := variables(t, yaml)
	vars["SLUICE_LOG_LEVEL"] = "warn"
	out := new(output)
	f, err := setup(t.Context(), Process{Env: lookup(vars), Stdout: out}, noSecrets)
	require.NoError(t, err)
	f.log.With("a", 1).Info("quiet")
	f.log.With("a", 1).WithGroup("g").Warn("loud", "b", 2)
	require.NotContains(t, out.String(), "quiet")
	require.EqualValues(t, 1, out.line(t, "loud")["a"])
}

// The collector knows how much memory there is.
func TestMemoryLimit(t *testing.T) { //nolint:paralleltest // it is the process's
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	settleIn(&Env{})
	require.Equal(t, before, debug.SetMemoryLimit(-1))
	settleIn(&Env{Memory: 1000 << 20})
	require.EqualValues(t, 850<<20, debug.SetMemoryLimit(-1))
}

func TestFail(t *testing.T) {
	t.Parallel()
	out := new(output)
	p := Process{Env: lookup(map[string]string{"AWS_LAMBDA_FUNCTION_NAME": "dev-ingest"}), Stdout: out}
	_, err := Ingest(t.Context(), p)
	require.Equal(t, 1, Fail(p, err))
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	line := out.line(t, "cannot start")
	require.Equal(t, "ERROR", line["level"])
	require.Equal(t, "dev-ingest", line["function"])
	require.Equal(t, "invalid", line["code"])
	require.Contains(t, line["error"], "SLUICE_TABLE is not set")
	require.Contains(t, line["error"], "AWS_REGION is not set")
}

package cloud

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/dynamo"
	far "sluice/infra/scheduler"
	"sluice/infra/sqs"
	"sluice/infra/sqs/sqstest"
)

// counted is EventBridge Scheduler, of which only the calls are counted.
type counted int

func (c *counted) CreateSchedule(context.Context, *scheduler.CreateScheduleInput, ...func(*scheduler.Options)) (*scheduler.CreateScheduleOutput, error) {
	*c++
	return &scheduler.CreateScheduleOutput{}, nil
}

// A deadline goes to Scheduler as soon as that serves it, and until then to
// SQS, without a failure.
func TestLadder(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		var schedules counted
		var messages sqstest.SQS
		out := new(output)
		f := newFunction(Env{Threshold: sqs.MinThreshold}, clock, out)
		ladder := f.ladderOf(sqs.NewTimer(&messages, messages.Queue("checks"), clock), far.New(&schedules, far.Options{Clock: clock}))
		for _, tt := range []struct {
			away time.Duration
			far  int
			near int
		}{
			{59 * time.Second, 0, 1},
			{60 * time.Second, 0, 2},
			{60999 * time.Millisecond, 0, 3},
			{61 * time.Second, 1, 3},
			{10 * time.Minute, 2, 3},
			{40 * 24 * time.Hour, 3, 3},
		} {
			h := core.Hint{Ref: core.Ref{Buffer: "b"}, Life: "L", At: clock.Now().Add(tt.away)}
			require.NoError(t, ladder.Arm(t.Context(), h))
			require.Equal(t, tt.far, int(schedules), tt.away)
			require.Equal(t, tt.near, messages.Calls("SendMessage"), tt.away)
		}
		require.Empty(t, out.String(), "nothing has failed")
	})
}

// What the table has lost is told of, and counted.
func TestLoss(t *testing.T) {
	t.Parallel()
	r := setUp(t, yaml)
	r.lost(dynamo.Loss{Ref: core.Ref{Buffer: "b", Key: strings.Repeat("k", 1000)}, Life: "L", From: 3, To: 7})
	r.flush()
	line := r.log.line(t, "items were lost")
	require.Equal(t, "ERROR", line["level"])
	require.Equal(t, "b", line["buffer"])
	require.LessOrEqual(t, len(line["group"].(string)), 256)
	require.EqualValues(t, 5, r.log.line(t, `"sluice_lost_items_total":`)["sluice_lost_items_total"])
}

// A function that cannot start says why in one line, and ends.
func TestMainThatCannotStart(t *testing.T) {
	t.Parallel()
	bootstrap := filepath.Join(t.TempDir(), "bootstrap")
	said, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-o", bootstrap, "sluice/functions/flush").CombinedOutput()
	require.NoError(t, err, string(said))
	run := exec.CommandContext(t.Context(), bootstrap)
	run.Env = []string{"AWS_LAMBDA_FUNCTION_NAME=dev-flush", "AWS_LAMBDA_RUNTIME_API=127.0.0.1:1"}
	out, err := run.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Equal(t, 1, strings.Count(string(out), "\n"), string(out))
	var line map[string]any
	require.NoError(t, json.Unmarshal(out, &line))
	require.Equal(t, "dev-flush", line["function"])
	require.Contains(t, line["error"], "SLUICE_TABLE is not set")
}

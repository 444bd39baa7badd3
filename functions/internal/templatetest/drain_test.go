package templatetest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/functions/internal/cloud"
	"sluice/functions/internal/report"
)

// fakeAWS is the AWS CLI before a stack: it answers from files, the flushes one
// after the other and the last again and again, and notes what it is called with.
const fakeAWS = `#!/bin/sh
PATH=/usr/bin:/bin
echo "$*" >>"$FAKE/calls"
case "$1 $2" in
"cloudformation describe-stacks") cat "$FAKE/stacks" ;;
"lambda put-function-concurrency") echo '{}' ;;
"sqs get-queue-attributes")
	n=$(cat "$FAKE/${4##*/}" 2>/dev/null || echo 0)
	echo "{\"Attributes\": {\"ApproximateNumberOfMessages\": \"$n\", \"ApproximateNumberOfMessagesNotVisible\": \"0\", \"ApproximateNumberOfMessagesDelayed\": \"0\"}}" ;;
"lambda invoke")
	n=$(($(cat "$FAKE/n" 2>/dev/null || echo 0) + 1))
	test -f "$FAKE/answer-$n" || n=$((n - 1))
	echo "$n" >"$FAKE/n"
	for last; do case "$last" in /*) cat "$FAKE/answer-$n" >"$last" ;; esac; done
	cat "$FAKE/said" 2>/dev/null || echo '{"StatusCode": 200}' ;;
*) echo "what is $*?" >&2; exit 255 ;;
esac
`

// drained is a final flush that ships so many rows, and what it leaves.
func drained(rows int, left ...cloud.Left) any {
	return cloud.FlushReport{
		House: report.House{OK: true, Buffers: report.Buffers{{Name: "orders", Rows: rows}}, Unmatched: []string{}},
		Left:  append([]cloud.Left{}, left...),
	}
}

// TestDrain: a stack counts as empty when that is proven, and as nothing else.
func TestDrain(t *testing.T) {
	t.Parallel()
	// What is in PATH may be a script that looks for the interpreter.
	python, err := exec.CommandContext(t.Context(), "python3", "-c", "import sys; print(sys.executable, end='')").Output()
	if err != nil {
		t.Skip("there is no python3")
	}
	failed := cloud.FlushReport{House: report.House{Buffers: report.Buffers{{Name: "orders", Error: "status 503"}}}, Left: []cloud.Left{}}
	open := cloud.Left{Buffer: "orders", Groups: 1, Items: 2, OpenItems: 2, OpenUntil: "2026-01-01T13:00:00.000Z"}
	for _, tc := range []struct {
		name    string
		answers []any
		files   map[string]string
		env     string
		exit    int
		flushes int
		says    []string
	}{
		{name: "it runs empty", answers: []any{drained(5, cloud.Left{Buffer: "orders", Items: 1}), drained(1), drained(0), drained(0)}, flushes: 4, says: []string{"stack sluice-dev is empty"}},
		{name: "events still arrive", answers: []any{drained(0), drained(5), drained(0)}, flushes: 4, says: []string{"events still arrive", "is empty"}},
		{name: "open windows", answers: []any{drained(3, open), drained(0, open)}, exit: 1, flushes: 2, says: []string{"not proven empty", "orders  2 items  in open time windows, or held, until 2026-01-01T13:00:00.000Z"}},
		{name: "dead letters", answers: []any{drained(0)}, files: map[string]string{"dead": "3"}, exit: 1, flushes: 1, says: []string{"DeadLetterQueue  3 messages  dead letters: replay them"}},
		{name: "retries, until the time is over", answers: []any{drained(0, cloud.Left{Buffer: "orders", Items: 7})}, env: "WAIT=0.01", exit: 1, says: []string{"orders  7 items  waits for its retry"}},
		{name: "hints", answers: []any{drained(0)}, files: map[string]string{"checks": "1"}, env: "WAIT=0.01", exit: 1, says: []string{"CheckQueue  1 messages  hints, which hold no events"}},
		{name: "a destination that fails", answers: []any{failed}, env: "WAIT=0.01", exit: 1, says: []string{"orders  an error  status 503"}},
		{name: "the function fails", answers: []any{"out of time"}, files: map[string]string{"said": `{"FunctionError": "Unhandled"}`}, exit: 1, flushes: 1, says: []string{"the flush function failed", "out of time"}},
		{name: "an older version", answers: []any{map[string]any{"handedOver": 0}}, exit: 1, flushes: 1, says: []string{"deploy this version first"}},
		{name: "no such stack", files: map[string]string{"stacks": `{"Stacks": [{}]}`}, exit: 1, says: []string{"stack sluice-dev has no output FlushFunctionName"}},
		{name: "ingest is stopped", answers: []any{drained(0)}, env: "STOP=1", flushes: 2, says: []string{"ingest is stopped", "delete-function-concurrency --function-name ingest-1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			fake := t.TempDir()
			write(t, fake, "stacks", stacks(t))
			for i, answer := range tc.answers {
				text, err := json.Marshal(answer)
				require.NoError(t, err)
				write(t, fake, fmt.Sprintf("answer-%d", i+1), string(text))
			}
			for name, text := range tc.files {
				write(t, fake, name, text)
			}
			write(t, fake, "aws", fakeAWS)
			require.NoError(t, os.Chmod(filepath.Join(fake, "aws"), 0o700))
			c := exec.CommandContext(t.Context(), filepath.Join(root, ".ci", "drain"), "sluice-dev")
			// Nothing else is in reach: the command of the same name would stop a real stack.
			require.NoError(t, os.Symlink(string(python), filepath.Join(fake, "python3")))
			c.Env = []string{"PATH=" + fake, "FAKE=" + fake, "PAUSE=0", "SETTLE=0", tc.env}
			out, _ := c.CombinedOutput()
			require.Equal(t, tc.exit, c.ProcessState.ExitCode(), "%s", out)
			for _, words := range tc.says {
				require.Contains(t, string(out), words)
			}
			calls, err := os.ReadFile(filepath.Join(fake, "calls"))
			require.NoError(t, err)
			if tc.flushes > 0 {
				require.Equal(t, tc.flushes, strings.Count(string(calls), `--payload {"flush": {"final": true, "force": true}}`), "%s", out)
			}
			require.Equal(t, tc.env == "STOP=1", strings.Contains(string(calls), "put-function-concurrency --function-name ingest-1 --reserved-concurrent-executions 0"))
		})
	}
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
}

// stacks is what describe-stacks says: the outputs that there are.
func stacks(t *testing.T) string {
	t.Helper()
	values := map[string]string{
		"FlushFunctionName": "flush-1", "IngestFunctionName": "ingest-1", "DeadLetterQueueUrl": "https://sqs.test/1/dead",
		"ReplayQueueUrl": "https://sqs.test/1/replays", "DeliverQueueUrl": "https://sqs.test/1/deliveries", "CheckQueueUrl": "https://sqs.test/1/checks",
	}
	var outputs []map[string]string
	for name := range within[object](t, load(t), "Outputs") {
		outputs = append(outputs, map[string]string{"OutputKey": name, "OutputValue": values[name]})
	}
	text, err := json.Marshal(map[string]any{"Stacks": []any{map[string]any{"Outputs": outputs}}})
	require.NoError(t, err)
	return string(text)
}

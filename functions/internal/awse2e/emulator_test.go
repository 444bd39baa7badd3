package awse2e

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/functions/internal/scenario"
)

// emulator is AWS's own runtime interface emulator, which `make e2e` builds.
const emulator = "../../../.ci/bin/aws-lambda-rie"

// maxInit is the longest that a cold start of ingest and check may take. The
// emulator starts a function with its first call, so that what is measured, the
// whole of that call, is more than the initialisation. It is held to where measuring is called
// for, as a busy machine says nothing of it, and then by the best of several.
const (
	maxInit = 60 * time.Millisecond
	measure = "SLUICE_E2E_MEASURE"
)

// Every bootstrap starts under AWS's emulator, and answers an event as it does
// everywhere.
func TestE2EEmulator(t *testing.T) {
	if _, err := os.Stat(emulator); err != nil {
		t.Skip("the emulator is not built: run `make e2e`")
	}
	config, err := os.ReadFile("../../../events/sluice.yaml")
	require.NoError(t, err)
	s := deploy(t, string(config))
	tests := []struct {
		function, event string
		starts          int
	}{
		{"ingest", "ingest-empty", 7},
		{"receive", "receive-standard", 1},
		{"check", "check-hint", 7},
		{"deliver", "deliver-group", 1},
		{"flush", "flush-schedule", 1},
		{"control", "control-deadletters", 1},
	}
	for _, tt := range tests {
		t.Run(tt.function, func(t *testing.T) {
			var calls []time.Duration
			for range tt.starts {
				answer, took := s.emulate(t, tt.function, fixture(t, tt.event))
				require.Equal(t, fields(t, fixture(t, tt.event+".golden")), fields(t, answer))
				calls = append(calls, took)
			}
			slices.Sort(calls)
			t.Logf("cold start and first answer of %s: %v at best, %v at the median of %d", tt.function, calls[0], calls[len(calls)/2], len(calls))
			if os.Getenv(measure) != "" && tt.starts > 1 {
				require.LessOrEqual(t, calls[0], maxInit)
			}
		})
	}
}

// fields are the members of an object that are not null, without how long a
// flush took.
func fields(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal(text, &m), string(text))
	maps.DeleteFunc(m, func(name string, v any) bool { return v == nil || name == "durationMs" })
	return m
}

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../events", name+".json"))
	require.NoError(t, err)
	return text
}

// emulate starts a function under the emulator, and returns its answer to a
// first call, and how long that took.
func (s *stack) emulate(t *testing.T, function string, event []byte) (answer []byte, took time.Duration) {
	t.Helper()
	invoke, api := freeAddress(t), freeAddress(t)
	cmd := exec.Command(emulator, "--runtime-interface-emulator-address", invoke, "--runtime-api-address", api,
		filepath.Join(bootstraps, function))
	cmd.Env = []string{
		"PATH=/usr/bin:/bin", "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_LAMBDA_FUNCTION_NAME=function", "AWS_LAMBDA_FUNCTION_TIMEOUT=60",
		"AWS_ENDPOINT_URL_DYNAMODB=" + s.services["dynamodb"], "AWS_ENDPOINT_URL_SQS=" + s.services["sqs"],
		"AWS_ENDPOINT_URL_SCHEDULER=" + s.services["scheduler"], "ORDERS_TOKEN=orders-token",
	}
	for name, value := range s.variables {
		switch name {
		case scenario.TokenVariable:
			value = "control-token" // as the events have it
		case "SLUICE_DELIVER_QUEUE_URL":
			value = "https://sqs.eu-central-1.amazonaws.com/123456789012/sluice-dev-DeliverQueue-1A2B3C4D5E6F"
		}
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var log output
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	require.Eventually(t, func() bool { // until it listens
		begin := time.Now()
		resp, err := client.Post("http://"+invoke+"/2015-03-31/functions/function/invocations", "application/json", bytes.NewReader(event))
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		answer, err = io.ReadAll(resp.Body)
		took = time.Since(begin)
		return err == nil
	}, scenario.Patience, 5*time.Millisecond, "%s", &log)
	return answer, took
}

// freeAddress is one on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// output keeps what a process writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

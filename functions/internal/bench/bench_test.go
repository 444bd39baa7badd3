package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain lets the test's binary stand in for the two that the bench starts:
// itself, as a reference, and the sluice to measure.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == referenceCommand {
		os.Exit(Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		fmt.Fprintln(os.Stderr, serveFake(os.Args[1:]))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// small are the arguments of a run that takes a moment.
func small(t *testing.T, binary, only string, more ...string) []string {
	t.Helper()
	return append([]string{
		"-binary", binary, "-only", only, "-dir", t.TempDir(), "-rounds", "1", "-keys", "100",
		"-warmup", "0", "-duration", "200ms", "-close", "100ms", "-patience", "20s",
		"-pending", "2000", "-settle", "10ms", "-memory-groups", "200", "-restart-groups", "100",
		"-deadline-rate", "200", "-deadline-unit", "100ms", "-starts", "2", "-kills", "2",
	}, more...)
}

// run runs the bench and returns its report's rows by what they say of sluice.
func run(t *testing.T, args ...string) map[string]Row {
	t.Helper()
	var out, progress bytes.Buffer
	code := Main(t.Context(), append(args, "-json"), &out, &progress)
	require.NotEqual(t, exitFailed, code, progress.String())
	var r Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &r), out.String())
	require.Equal(t, r.Met(), code == exitMet)
	rows := map[string]Row{}
	for _, row := range r.Rows {
		if row.Server == sluice {
			rows[row.Scenario+": "+row.What] = row
		}
	}
	return rows
}

// faulty is a sluice with a fault: a script that starts the fake with it.
func faulty(t *testing.T, fault string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "sluice")
	script := fmt.Sprintf("#!/bin/sh\n%s=%s exec %s \"$@\"\n", faultEnv, fault, self)
	require.NoError(t, os.WriteFile(name, []byte(script), 0o700))
	return name
}

// Bounds of speed depend on the machine, and are not asserted here; those of
// correctness are.
func TestScenarios(t *testing.T) {
	t.Parallel()
	tests := []struct {
		only  string
		exact map[string]float64 // value of each bound that does not depend on the machine
		rows  int                // about sluice, in all
	}{
		{"a", map[string]float64{"a: accepted but not delivered": 0, "a: delivered wrongly": 0}, 3},
		{"b", map[string]float64{"b: accepted but not delivered": 0, "b: delivered wrongly": 0}, 3},
		{"c", map[string]float64{"c: accepted but not delivered": 0, "c: delivered wrongly": 0}, 3},
		{"d", map[string]float64{"d: accepted but not delivered": 0, "d: delivered wrongly": 0, "d: batches before their deadline": 0}, 5},
		{"e", map[string]float64{"e: items not pending (memory)": 0, "e: items not pending (restart)": 0}, 4},
		{"f", nil, 2},
		{"g", map[string]float64{
			"g: accepted but not delivered, 2 kill -9 in a row": 0,
			"g: doubled under another webhook-id":               0, "g: mixed or damaged": 0,
		}, 4},
	}
	for _, tt := range tests {
		t.Run(tt.only, func(t *testing.T) {
			t.Parallel()
			rows := run(t, small(t, faulty(t, "none"), tt.only)...)
			require.Len(t, rows, tt.rows)
			for what, value := range tt.exact {
				require.Contains(t, rows, what)
				require.InDelta(t, value, rows[what].Bound.Value, 0, what)
			}
			for _, row := range rows {
				if row.Bound.AtLeast && tt.only != "d" { // a starved machine has no steady state
					require.Positive(t, row.Bound.Value, row.What)
				}
			}
		})
	}
}

func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	tests := []struct{ fault, only, close, what string }{
		{faultDrops, "a", "100ms", "a: accepted but not delivered"},
		{faultMixes, "a", "100ms", "a: delivered wrongly"},
		{faultEarly, "d", "100ms", "d: batches before their deadline"},
		{faultForgets, "e", "100ms", "e: items not pending (restart)"},
		{faultForgets, "g", "1s", "g: accepted but not delivered, 2 kill -9 in a row"}, // some wait at each kill
	}
	for _, tt := range tests {
		t.Run(tt.fault+" "+tt.only, func(t *testing.T) {
			t.Parallel()
			row, ok := run(t, small(t, faulty(t, tt.fault), tt.only, "-patience", "300ms", "-close", tt.close)...)[tt.what]
			require.True(t, ok)
			require.False(t, row.Bound.Met())
		})
	}
}

func TestCannotMeasure(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no binary", []string{"-binary", filepath.Join(t.TempDir(), "none")}, "no such file"},
		{"ends at once", []string{"-binary", lookPath(t, "false")}, "ended before it was ready"},
		{"refuses everything", []string{"-binary", faulty(t, faultRefuses)}, "not one event was accepted: "},
		{"unknown scenario", []string{"-only", "a,z"}, `no scenario "z"`},
		{"no rounds", []string{"-rounds", "0"}, "at least 1"},
		{"no time", []string{"-duration", "0"}, "above zero"},
		{"a stray word", []string{"now"}, `unexpected argument "now"`},
		{"an unknown reference", nil, `no reference "best"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := []string{referenceCommand, "best", "127.0.0.1:0", "x"}
			if tt.args != nil {
				args = small(t, "unused", "a", tt.args...)
			}
			var out, progress bytes.Buffer
			require.Equal(t, exitFailed, Main(t.Context(), args, &out, &progress))
			require.Contains(t, progress.String(), tt.want)
			require.Empty(t, out.String())
		})
	}
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	p, err := exec.LookPath(name)
	require.NoError(t, err)
	return p
}

func TestHelp(t *testing.T) {
	t.Parallel()
	var help bytes.Buffer
	require.Equal(t, exitMet, Main(t.Context(), []string{"-h"}, io.Discard, &help))
	require.Contains(t, help.String(), "kill -9 under load")
}

func TestTableShowsRatiosOnly(t *testing.T) {
	t.Parallel()
	r := Report{Rows: []Row{
		{Scenario: "a", What: "1 event per POST", Server: "bare server", ToBare: 1},
		{Scenario: "a", What: "1 event per POST", Server: sluice, ToBare: 0.42, Bound: &Bound{Value: 0.42, Limit: 0.35, Unit: "× bare", AtLeast: true}},
		{Scenario: "c", What: "p99", Server: sluice, ToBare: 13.04, Bound: &Bound{Value: 6.25, Limit: 5, Unit: "ms"}},
		{Scenario: "g", What: "lost", Server: sluice, Bound: &Bound{Value: 3, Unit: "events"}},
	}, Notes: []string{"g: a note"}}
	var out strings.Builder
	require.NoError(t, r.WriteTable(&out))
	require.Equal(t, `   what              server       ÷ bare  bound                 measured ÷ bound
a  1 event per POST  bare server  1.00
a  1 event per POST  sluice       0.42    at least 0.35 × bare  1.20              met
c  p99               sluice       13.0    at most 5 ms          1.25              missed
g  lost              sluice               at most 0 events      3                 missed
g: a note
NOT every bound is kept
`, out.String())
}

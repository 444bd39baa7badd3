package report_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/report"
)

// errSecret stands for what only a log may have.
var errSecret = errors.New("token=swordfish")

// TestGolden shows every field as it is written, and that it is read again.
// Golden files are written anew when UPDATE is set in the environment.
func TestGolden(t *testing.T) {
	t.Parallel()
	refused := core.Wrap(core.Unavailable, errSecret, "group \"<7>\": status 503")
	for name, r := range map[string]core.FlushReport{
		"none": {},
		"order": {Took: 1234*time.Millisecond + 999, Buffers: []core.BufferFlush{
			{Buffer: "zebra", Rows: 3}, {Buffer: "ant", Rows: 120, Buckets: 2}, {Buffer: "mouse"},
		}},
		"skipped": {Unmatched: []string{"chekout", "<b>"}, Buffers: []core.BufferFlush{
			{Buffer: "a", Skipped: true, Reason: core.SkippedCadence, NextEligibleIn: 41*time.Second + 200*time.Millisecond},
			{Buffer: "b", Skipped: true, Reason: core.SkippedCadence, NextEligibleIn: 1},
			{Buffer: "c", Skipped: true, Reason: core.SkippedNotSelected},
		}},
		"failed": {Buffers: []core.BufferFlush{
			{Buffer: "at-once", Rows: 5, Err: refused},
			{Buffer: "in-part", Rows: 15, Buckets: 3, Err: refused, Written: &core.Shipped{Buckets: 2, Rows: 10}},
			{Buffer: "no-window", Rows: 15, Err: refused, Written: &core.Shipped{Rows: 10}},
			{Buffer: "and-held", Rows: 5, Err: refused, ReleaseErr: core.Errorf(core.Conflict, "the lease on claim x-1 has passed on")},
		}},
		"not-settled": {Buffers: []core.BufferFlush{
			{Buffer: "ack", Rows: 5, AckErr: core.Wrap(core.Unavailable, errSecret, "the store does not answer")},
		}},
		"recovered": {Buffers: []core.BufferFlush{
			{Buffer: "claims", Rows: 9, Recovered: &core.Released{Claims: 2, Rows: 7}},
			{Buffer: "error", Rows: 2, RecoverErr: core.Wrap(core.Unavailable, errSecret, "its items can't be read yet")},
		}},
		"faults": {Buffers: []core.BufferFlush{
			{Buffer: "no-code", Err: errSecret, AckErr: fmt.Errorf("ack: %w", errSecret)},
			{Buffer: "internal", Err: core.Wrap(core.Internal, errSecret, "a bug with %s", "swordfish")},
			{Buffer: "ended", Err: fmt.Errorf("send: %w", context.Canceled)},
			{Buffer: "late", Err: context.DeadlineExceeded},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			house := report.Of(&r)
			got, err := json.MarshalIndent(house, "", "  ")
			require.NoError(t, err)
			file := filepath.Join("testdata", name+".json")
			if os.Getenv("UPDATE") != "" {
				require.NoError(t, os.WriteFile(file, append(got, '\n'), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got)+"\n")
			require.NotContains(t, string(got), "swordfish")

			var back report.House
			require.NoError(t, json.Unmarshal(got, &back))
			require.Empty(t, cmp.Diff(house, back))
		})
	}
}

func TestOneBuffer(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(report.OfBuffer(&core.BufferFlush{Buffer: "orders", Rows: 7}))
	require.NoError(t, err)
	require.JSONEq(t, `{"buckets":0,"rows":7,"skipped":false}`, string(got))
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, fault string }{
		{"of a newer version", `{"ok":true,"buffers":{"a":{"rows":1,"new":[{}]}},"more":1}`, ""},
		{"without buffers", `{"ok":true}`, ""},
		{"a list", `{"buffers":[]}`, "must be an object by name"},
		{"a number for a buffer", `{"buffers":{"a":1}}`, "cannot unmarshal number"},
		{"a text for rows", `{"buffers":{"a":{"rows":"1"}}}`, "cannot unmarshal string"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var r report.House
			err := json.Unmarshal([]byte(tc.text), &r)
			if tc.fault == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.fault)
			}
		})
	}
}

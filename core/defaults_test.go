package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestUnitFormat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		unit Unit
		n    int64
		want string
	}{
		{UnitCount, 10_000, "10000"},
		{UnitBytes, 0, "0"},
		{UnitBytes, 1000, "1000"},
		{UnitBytes, KiB, "1KiB"},
		{UnitBytes, 1536 * KiB, "1536KiB"},
		{UnitBytes, 10 * MiB, "10MiB"},
		{UnitDuration, 0, "0s"},
		{UnitDuration, int64(100 * time.Millisecond), "100ms"},
		{UnitDuration, int64(15 * time.Second), "15s"},
		{UnitDuration, int64(5 * time.Minute), "5m"},
		{UnitDuration, int64(90 * time.Minute), "1h30m"},
		{UnitDuration, int64(24 * time.Hour), "24h"},
		{UnitMillis, int64(5 * time.Second), "5000"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, tt.unit.Format(tt.n))
		})
	}
}

// TestDefaultsAreInRange holds that what is not given is never a fault.
func TestDefaultsAreInRange(t *testing.T) {
	t.Parallel()
	for _, r := range []Range{
		EventBytesRange, TimeoutRange, SendsRange, AttemptsRange, RetryInitialRange, RetryMaxRange,
		BatchItemsRange, BatchBytesRange, IdleTimeoutRange, MaxWaitRange,
		OverflowBytesRange, OverflowItemsRange, BatchesRange, SizeRange, ShardsRange, RetentionRange,
		WindowEveryRange, WindowGraceRange, WindowAheadRange, FlushEveryRange, ClaimLimitRange, RecoverAfterRange,
		RespondRange, FailuresRange, CooldownRange, RequestsRange, PerRange, DedupeRange, DelayRange,
	} {
		require.True(t, r.Has(r.Default), "%s, default %s", r, r.Unit.Format(r.Default))
	}
}

func TestDefaultMaxBytes(t *testing.T) {
	t.Parallel()
	require.Equal(t, MiB, (&BatchConfig{MaxBytes: KiB}).DefaultMaxBytes())
	require.Equal(t, 3*MiB, (&BatchConfig{MaxBytes: 3 * MiB}).DefaultMaxBytes())
}

func TestDefaultSize(t *testing.T) {
	t.Parallel()
	require.Zero(t, (&Buffer{}).DefaultSize())
	require.Equal(t, int64(256), (&Buffer{Shadow: true}).DefaultSize())
}

func TestSecretSplit(t *testing.T) {
	t.Parallel()
	for ref, want := range map[Secret][2]string{
		"env:CRM_SECRET":               {"env", "CRM_SECRET"},
		"ssm:/prod/crm":                {"ssm", "/prod/crm"},
		"secretsmanager:arn:aws:x:1:y": {"secretsmanager", "arn:aws:x:1:y"},
		"env:":                         {},
		"env:1A":                       {},
		"env:A\n":                      {},
		"vault:x":                      {},
		"hunter2":                      {},
		"":                             {},
	} {
		t.Run(string(ref), func(t *testing.T) {
			t.Parallel()
			scheme, name, ok := ref.Split()
			require.Equal(t, want, [2]string{scheme, name})
			require.Equal(t, want[0] != "", ok)
		})
	}
}

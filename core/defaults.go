package core

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"sluice/core/fold"
	"sluice/core/objectkey"
)

// Sizes in bytes: a KiB is 1,024.
const (
	KiB int64 = 1 << 10
	MiB int64 = 1 << 20
)

// The formats in which a destination takes its batches.
const (
	FormatNDJSON    = "ndjson"     // a line of JSON for each item
	FormatJSONArray = "json_array" // one JSON array
	FormatEnvelope  = "envelope"   // one JSON object about the batch, with its items

	FormatCloudEvents = "cloudevents" // a batch of CloudEvents
)

// Formats lists the formats, the default first.
func Formats() []string {
	return []string{FormatNDJSON, FormatJSONArray, FormatEnvelope, FormatCloudEvents}
}

// How the objects of an s3 destination are compressed.
const (
	CompressNone = "none"
	CompressGzip = "gzip"
	CompressZstd = "zstd"
)

// Compressions lists how objects may be compressed, the default first.
func Compressions() []string { return []string{CompressNone, CompressGzip, CompressZstd} }

// The kinds of sources and destinations.
const (
	TypeHTTP   = "http"
	TypeFile   = "file"
	TypeStdout = "stdout"
	TypeSQS    = "sqs"
	TypeS3     = "s3"
)

// SourceTypes lists the kinds of sources, the default first.
func SourceTypes() []string { return []string{TypeHTTP, TypeSQS} }

// MaxSecrets is how many secrets a destination signs with: one, or two while
// it is rotated.
const MaxSecrets = 2

// MaxColumns is how many columns a fold has at most.
const MaxColumns = fold.MaxColumns

// MaxFallbacks is how many fallbacks a destination has at most.
const MaxFallbacks = 8

// ShadowSize is the size of a shadow buffer that gives none: the copies that
// may wait. Beyond that they are dropped.
const ShadowSize int64 = 256

// Unit says what a number of a configuration counts, and how it is written.
type Unit uint8

// The units.
const (
	UnitCount    Unit = iota // 50
	UnitBytes                // 256KiB
	UnitDuration             // nanoseconds, written 1h30m
	UnitMillis               // nanoseconds, written 5000
)

// Range is what a number of a configuration may be, bounds included, and what
// it is when it is not given.
type Range struct {
	Unit              Unit
	Default, Min, Max int64
}

// What every number of a configuration may be.
var (
	EventBytesRange    = Range{UnitBytes, 256 * KiB, 1, 10 * MiB} // one event of a source
	TimeoutRange       = durations(15*time.Second, 100*time.Millisecond, 5*time.Minute)
	SendsRange         = Range{UnitCount, 16, 1, 1000} // sends of a destination in flight
	AttemptsRange      = Range{UnitCount, 20, 1, 1000}
	RetryInitialRange  = durations(time.Second, time.Millisecond, time.Hour)
	RetryMaxRange      = durations(15*time.Minute, time.Millisecond, 24*time.Hour)
	RetryStatusRange   = Range{UnitCount, 0, 300, 599}
	BatchItemsRange    = Range{UnitCount, 50, 1, 10_000}
	BatchBytesRange    = Range{UnitBytes, 256 * KiB, KiB, 10 * MiB}
	IdleTimeoutRange   = millis(5*time.Second, 100*time.Millisecond, 5*time.Minute)
	MaxWaitRange       = millis(15*time.Second, 100*time.Millisecond, 10*time.Minute)
	OverflowBytesRange = Range{UnitBytes, MiB, KiB, 64 * MiB} // the default is at least the batch's maxBytes
	OverflowItemsRange = Range{UnitCount, 0, 0, 1_000_000_000}
	BatchesRange       = Range{UnitCount, 1, 1, MaxClaims} // batches of one group in flight
	SizeRange          = Range{UnitCount, 0, 0, 1_000_000_000}
	ShardsRange        = Range{UnitCount, 1, 1, 64}
	WindowEveryRange   = durations(time.Minute, time.Second, 24*time.Hour)
	WindowGraceRange   = durations(5*time.Second, 0, time.Hour)
	WindowAheadRange   = durations(time.Hour, 0, 24*time.Hour)
	FlushEveryRange    = durations(5*time.Minute, time.Second, 24*time.Hour)
	ClaimLimitRange    = Range{UnitCount, 0, 0, 10_000} // 0: batch.maxItems
	RecoverAfterRange  = durations(0, 0, time.Hour)     // 0: the destination's timeout and leaseMargin, which are the least
	RespondRange       = durations(10*time.Second, 100*time.Millisecond, 25*time.Second)
	FailuresRange      = Range{UnitCount, 10, 1, 1000}
	CooldownRange      = durations(30*time.Second, 100*time.Millisecond, time.Hour)
	RequestsRange      = Range{UnitCount, 50, 1, 100_000}
	PerRange           = durations(time.Second, 100*time.Millisecond, time.Hour)
	DedupeRange        = durations(10*time.Minute, time.Second, 24*time.Hour)
	DelayRange         = durations(0, 0, 180*24*time.Hour) // twice the most is within the retention's bounds
	RetentionRange     = durations(7*24*time.Hour, 3*time.Hour, 365*24*time.Hour)
)

func durations(def, lo, hi time.Duration) Range {
	return Range{UnitDuration, int64(def), int64(lo), int64(hi)}
}

func millis(def, lo, hi time.Duration) Range {
	return Range{UnitMillis, int64(def), int64(lo), int64(hi)}
}

// Has reports whether n is within the bounds.
func (r Range) Has(n int64) bool { return r.Min <= n && n <= r.Max }

// String is the range as it reads in a fault, such as "1KiB to 10MiB".
func (r Range) String() string { return r.Unit.Format(r.Min) + " to " + r.Unit.Format(r.Max) }

// Format is n as a configuration would have it: the shortest exact form.
func (u Unit) Format(n int64) string {
	switch u {
	case UnitBytes:
		return formatBytes(n)
	case UnitDuration:
		return formatDuration(time.Duration(n))
	case UnitMillis:
		return strconv.FormatInt(n/int64(time.Millisecond), 10)
	default:
		return strconv.FormatInt(n, 10)
	}
}

func formatBytes(n int64) string {
	switch {
	case n != 0 && n%MiB == 0:
		return fmt.Sprintf("%dMiB", n/MiB)
	case n != 0 && n%KiB == 0:
		return fmt.Sprintf("%dKiB", n/KiB)
	}
	return strconv.FormatInt(n, 10)
}

// formatDuration is d without the zeros of its own String: 5m, not 5m0s; days
// from two on.
func formatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= 2*day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// NewConfig is a configuration with nothing in it but defaults.
func NewConfig() *Config {
	return &Config{Store: StoreConfig{Sync: true, Retention: time.Duration(RetentionRange.Default)}}
}

// NewSource is a source with every default.
func NewSource(name string) Source {
	return Source{
		Name: name, Type: TypeHTTP, MaxEventBytes: EventBytesRange.Default,
		RespondTimeout: time.Duration(RespondRange.Default),
	}
}

// NewDestination is a destination with every default.
func NewDestination(name string) Destination {
	return Destination{
		Name: name, Type: TypeHTTP, Format: FormatNDJSON, Key: objectkey.Default, Compression: CompressNone,
		Timeout:     time.Duration(TimeoutRange.Default),
		Concurrency: int(SendsRange.Default),
		Retry: RetryPolicy{
			MaxAttempts: int(AttemptsRange.Default),
			Initial:     time.Duration(RetryInitialRange.Default),
			Max:         time.Duration(RetryMaxRange.Default),
		},
	}
}

// NewBuffer is a buffer with every default.
func NewBuffer(name string) Buffer {
	return Buffer{
		Name: name,
		Batch: BatchConfig{
			MaxItems:    int(BatchItemsRange.Default),
			MaxBytes:    BatchBytesRange.Default,
			IdleTimeout: time.Duration(IdleTimeoutRange.Default),
			MaxWait:     time.Duration(MaxWaitRange.Default),
		},
		Overflow:    OverflowConfig{MaxBytes: OverflowBytesRange.Default},
		Concurrency: int(BatchesRange.Default),
		Shards:      int(ShardsRange.Default),
		Sample:      1,
	}
}

// DefaultMaxBytes is the overflow.maxBytes of a buffer that gives none: room
// for one batch of the size that makes a group due.
func (b *BatchConfig) DefaultMaxBytes() int64 {
	return max(OverflowBytesRange.Default, b.MaxBytes)
}

// DefaultSize is the size of a buffer that gives none.
func (b *Buffer) DefaultSize() int64 {
	if b.Shadow {
		return ShadowSize
	}
	return SizeRange.Default
}

// NewBreaker is a breaker with every default.
func NewBreaker() BreakerConfig {
	return BreakerConfig{Failures: int(FailuresRange.Default), Cooldown: time.Duration(CooldownRange.Default)}
}

// NewRate is a rate limit with every default.
func NewRate() RateConfig {
	return RateConfig{Requests: int(RequestsRange.Default), Per: time.Duration(PerRange.Default)}
}

// NewWindow is a window with every default.
func NewWindow() WindowConfig {
	return WindowConfig{
		Every:    time.Duration(WindowEveryRange.Default),
		Grace:    time.Duration(WindowGraceRange.Default),
		MaxAhead: time.Duration(WindowAheadRange.Default),
	}
}

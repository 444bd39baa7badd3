package core

import (
	"time"

	"sluice/core/fold"
)

// Config is a whole configuration, as sluice.yaml spells it, defaults filled
// in. It holds references to secrets, never their values.
type Config struct {
	Control      Control
	Store        StoreConfig
	Sources      []Source // in the file's order, as are the others
	Destinations []Destination
	Buffers      []Buffer
}

// Secret refers to a secret, such as env:NAME.
type Secret string

// Control says who may make control calls.
type Control struct {
	Tokens []Secret // none: loopback only
}

// StoreConfig is about the store.
type StoreConfig struct {
	Sync bool // fsync before every answer; embedded store
	// Retention is how long items outlive their deadline at most, delivered or
	// not (DynamoDB), and how long a time window is remembered after its end.
	Retention time.Duration
}

// Source is a named way in.
type Source struct {
	Name          string
	Type          string // one of the SourceTypes
	Auth          *Auth  // http; nil: loopback only
	Queue         Secret // sqs: its URL, or a reference to it
	MaxEventBytes int64

	AckDelivered   bool          // written as `ack: delivered`: answer when the outcome is known
	RespondTimeout time.Duration // but no later than this
}

// Auth says who may send to a source: a bearer of one of the tokens, or a
// sender that signs with one of the secrets (Standard Webhooks). With Open,
// anybody.
type Auth struct {
	Bearer  []Secret
	Webhook []Secret
	Open    bool // written as `auth: none`
}

// Destination is a named endpoint.
type Destination struct {
	Name         string
	Type         string // one of the DestinationTypes
	URL          string // http
	Path         string // file
	Queue        string // sqs: its URL, or a reference to that
	Bucket       string // s3: its name, or a reference to that
	Key          string // s3: template of an object's key; see package objectkey
	Compression  string // s3: one of the Compressions
	Region       string // sqs, s3; "": the one that the process is in
	Endpoint     string // s3: address of a store that is compatible; "": AWS's
	Headers      []ConfigHeader
	Format       string // one of the Formats
	Secrets      []Secret
	Timeout      time.Duration
	AllowPrivate bool
	Concurrency  int // sends in flight, per process
	Retry        RetryPolicy
	Breaker      *BreakerConfig // nil: none
	RateLimit    *RateConfig    // nil: none
	Fallbacks    []string       // destinations that are tried in turn when this one has failed for good
	Filter       string         // jq, for this destination alone
	Transform    string         // jq, for this destination alone
}

// BreakerConfig keeps a destination from being called for Cooldown after so many
// failures in a row.
type BreakerConfig struct {
	Failures int
	Cooldown time.Duration
}

// RateConfig allows a destination so many requests in a time.
type RateConfig struct {
	Requests int
	Per      time.Duration
}

// ConfigHeader is a header to send: a literal value, or a reference to a secret.
type ConfigHeader struct {
	Name   string
	Value  string
	Secret Secret // instead of Value
}

// Buffer is a named subscription to sources.
type Buffer struct {
	Name        string
	From        []string
	To          string
	GroupBy     string // template of the group key; "": one group
	Batch       BatchConfig
	Overflow    OverflowConfig
	Concurrency int
	Ordered     bool   // written as `ordering: {}`
	OrderKey    string // template, written as `ordering: {key: …}`: what keeps its order in a sharded group
	Shards      int    // records that each group is spread over; DynamoDB
	Size        int64  // 0: no limit

	Filter    string // jq: false, null or nothing drops the event
	Transform string // jq: what the event's body becomes

	Dedupe       time.Duration // written as `dedupe: {window: 10m}`; 0: none
	DeliverAfter time.Duration // how long after its receipt an event is held
	DeliverAt    string        // template of the time until which it is held; "" when it renders so: DeliverAfter
	Shadow       bool          // a copy on the side
	Sample       float64       // of so many of the events

	Window       *WindowConfig // nil: none
	Fold         []FoldColumn  // in the file's order; nil: items leave as they are
	FlushEvery   time.Duration // written as `flush: {every: 5m}`; 0: no flush is needed for a delivery
	ClaimLimit   int           // the most items that a flush claims of a group at a time; 0: Batch.MaxItems
	RecoverAfter time.Duration // lease of a claim; 0: the destination's timeout and a margin
}

// FoldColumn is a column of the rows that a window folds into.
type FoldColumn = fold.Column

// WindowConfig makes a buffer's groups time windows.
type WindowConfig struct {
	Every    time.Duration // how long a window is; they are aligned to the Unix epoch
	Grace    time.Duration // how long after its end it still takes events
	Time     string        // template of an event's time; "": the time at which it was received
	MaxAhead time.Duration // events further in the future are refused
}

// BatchConfig is a buffer's flush conditions.
type BatchConfig struct {
	MaxItems    int
	MaxBytes    int64
	IdleTimeout time.Duration
	MaxWait     time.Duration
}

// OverflowConfig is a buffer's hard limits.
type OverflowConfig struct {
	MaxBytes int64 // of one batch's payload
	MaxItems int   // pending in one group; 0: no limit
}

// Fault is something wrong with a configuration.
type Fault struct {
	Path    string // such as buffers.crm-orders.batch.maxItems
	Problem string // what is wrong
	Right   string // what would be right
}

// String is the fault in a line.
func (f Fault) String() string { return f.Path + ": " + f.Problem + "; " + f.Right }

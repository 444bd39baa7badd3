package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTargets(t *testing.T) {
	t.Parallel()
	file := NewDestination("log")
	file.Type, file.Path = TypeFile, "out"
	tests := []struct {
		name   string
		target Target
		change func(*Config)
		unfit  []string // paths
		idle   []string
	}{
		{"what runs anywhere, on one machine", TargetLocal, func(*Config) {}, nil, nil},
		{"what runs anywhere, on AWS", TargetAWS, func(*Config) {}, nil, nil},
		{"secrets of AWS on one machine", TargetLocal, func(c *Config) {
			c.Control.Tokens = []Secret{"ssm:/t", "env:T"}
			c.Destinations[0].Secrets = []Secret{"secretsmanager:s"}
		}, []string{"control.tokens[0]", "destinations.crm.secrets[0]"}, nil},
		{"secrets of AWS on AWS", TargetAWS, func(c *Config) { c.Control.Tokens = []Secret{"ssm:/t"} }, nil, nil},
		{"shards and retention on one machine", TargetLocal, func(c *Config) { c.Buffers[0].Shards, c.Store.Retention = 2, 3*time.Hour },
			nil, []string{"buffers.crm-orders.shards", "store.retention"}},
		{"shards and retention on AWS", TargetAWS, func(c *Config) { c.Buffers[0].Shards, c.Store.Retention = 2, 3*time.Hour }, nil, nil},
		{"retention of windows on one machine", TargetLocal, window(func(c *Config) { c.Store.Retention = 3 * time.Hour }), nil, nil},
		{"flushes of seconds on AWS", TargetAWS, flushed(time.Minute - 1), nil, []string{"buffers.crm-orders.flush.every"}},
		{"flushes of a minute on AWS", TargetAWS, flushed(time.Minute), nil, nil},
		{"flushes of seconds on one machine", TargetLocal, flushed(time.Second), nil, nil},
		{"a file on one machine", TargetLocal, func(c *Config) { c.Destinations[0] = file }, nil, nil},
		{"a file on AWS", TargetAWS, func(c *Config) { c.Destinations[0] = file }, []string{"destinations.log.type"}, nil},
		{"queues and buckets on AWS", TargetAWS, func(c *Config) { c.Destinations = queueAndBucket("ssm:/q", "archive") }, nil, nil},
		{"queues and buckets on one machine", TargetLocal, func(c *Config) { c.Destinations = queueAndBucket("env:Q", "env:B") }, nil, nil},
		{"names in parameters on one machine", TargetLocal, func(c *Config) { c.Destinations = queueAndBucket("ssm:/q", "ssm:/b") },
			[]string{"destinations.q.queue", "destinations.b.bucket"}, nil},
		{"the largest event on AWS", TargetAWS, func(c *Config) { c.Sources[0].MaxEventBytes = 350 * KiB }, nil, nil},
		{"a larger one on AWS", TargetAWS, func(c *Config) { c.Sources[0].MaxEventBytes = 350*KiB + 1 }, []string{"sources.orders.maxEventBytes"}, nil},
		{"a larger one on one machine", TargetLocal, func(c *Config) { c.Sources[0].MaxEventBytes = 10 * MiB }, nil, nil},
		{"loopback alone on AWS", TargetAWS, func(c *Config) { c.Control.Tokens, c.Sources[0].Auth, c.Store.Sync = nil, nil, false },
			nil, []string{"store.sync", "control.tokens", "sources.orders.auth"}},
		{"loopback alone on one machine", TargetLocal, func(c *Config) { c.Control.Tokens, c.Sources[0].Auth, c.Store.Sync = nil, nil, false }, nil, nil},
		{"a queue that is read on one machine", TargetLocal, fromQueue("env:Q"), nil, nil},
		{"a queue that is read on AWS", TargetAWS, fromQueue("ssm:/q"), nil, nil},
		{"a queue in a parameter on one machine", TargetLocal, fromQueue("ssm:/q"), []string{"sources.orders.queue"}, nil},
		{"retention of a long delay on one machine", TargetLocal, func(c *Config) { c.Buffers[0].DeliverAfter, c.Store.Retention = 96*time.Hour, 192*time.Hour }, nil, nil},
		{"retention of a short delay on one machine", TargetLocal, func(c *Config) { c.Buffers[0].DeliverAfter, c.Store.Retention = time.Hour, 192*time.Hour }, nil, []string{"store.retention"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := validConfig()
			tt.change(c)
			require.Equal(t, tt.unfit, paths(c.Unfit(tt.target)))
			require.Equal(t, tt.idle, paths(c.Idle(tt.target)))
		})
	}
}

// Nothing that is needed by name alone is in a function's environment.
func TestNeeds(t *testing.T) {
	t.Parallel()
	c := validConfig()
	c.Control.Tokens = []Secret{"ssm:/t", "env:T", "secretsmanager:t"}
	c.Sources[0].Auth = &Auth{Bearer: []Secret{"env:B"}}
	c.Destinations[0].Headers = []ConfigHeader{{Name: "x-key", Secret: "env:K"}}
	c.Destinations[0].Secrets = []Secret{"env:S"}
	require.Equal(t, []string{"control.tokens[1]", "sources.orders.auth.bearer[0]", "destinations.crm.headers.x-key", "destinations.crm.secrets[0]"},
		paths(c.Needs(TargetAWS)))
	require.Equal(t, Fault{Path: "control.tokens[1]",
		Problem: "names the environment variable T, which template.yaml gives to no function: none that needs it starts",
		Right:   "use ssm:PATH or secretsmanager:ID"}, c.Needs(TargetAWS)[0])
	require.Empty(t, c.Needs(TargetLocal))
	require.Empty(t, c.Needs("any"))

	c = validConfig()
	c.Control.Tokens = nil
	fromQueue("https://sqs.eu-west-1.amazonaws.com/1/q")(c)
	require.Empty(t, c.Needs(TargetAWS), "a parameter, which no file can say, is all that it takes")
	other := c.Sources[0]
	other.Name = "other"
	c.Sources = append(c.Sources, other)
	require.Equal(t, []Fault{{Path: "sources.other.type",
		Problem: "is sqs, as is that of orders: template.yaml makes one queue an event source, the one of SourceQueueArn, and on AWS nobody polls another",
		Right:   "give it a stack of its own"}}, c.Needs(TargetAWS))
	require.Empty(t, c.Needs(TargetLocal))
}

// fromQueue makes the source one that is a queue.
func fromQueue(queue Secret) func(*Config) {
	return func(c *Config) {
		s := &c.Sources[0]
		s.Type, s.Queue, s.Auth = TypeSQS, queue, nil
	}
}

func paths(faults []Fault) []string {
	var p []string
	for _, f := range faults {
		p = append(p, f.Path)
	}
	return p
}

// queueAndBucket are destinations whose names are given, or referred to.
func queueAndBucket(queue, bucket string) []Destination {
	q, b := NewDestination("q"), NewDestination("b")
	q.Type, q.Queue = TypeSQS, queue
	b.Type, b.Bucket = TypeS3, bucket
	return []Destination{q, b}
}

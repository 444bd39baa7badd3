package core

import (
	"fmt"
	"slices"
	"time"
)

// Target is where a configuration is to run.
type Target string

// The targets. What a configuration may say is the same for both; what it
// needs of where it runs is not.
const (
	TargetLocal Target = "local" // one machine, on the embedded store
	TargetAWS   Target = "aws"   // Lambda functions on DynamoDB
)

// MaxEventBytesAWS is the most that an event may have on DynamoDB, whose items
// are at most 400 KB.
const MaxEventBytesAWS = 350 * KiB

// RightSecretAWS is what a reference to a secret should be on AWS.
const RightSecretAWS = "use ssm:PATH or secretsmanager:ID"

// QueueParameterAWS is the parameter of template.yaml that makes a queue an
// event source of the function that takes events.
const QueueParameterAWS = "SourceQueueArn"

// flushEveryAWS is how often the flush function runs on AWS.
const flushEveryAWS = time.Minute

// Unfit is what of a valid configuration does not work on a target.
func (c *Config) Unfit(t Target) []Fault {
	var v validation
	switch t {
	case TargetLocal:
		for path, s := range c.Secrets() {
			if scheme, _, _ := s.Split(); scheme != "env" {
				v.add(path, "is one of "+scheme+":, which is for AWS", "must be env:NAME on one machine")
			}
		}
	case TargetAWS:
		for i := range c.Sources {
			if s := &c.Sources[i]; s.MaxEventBytes > MaxEventBytesAWS {
				v.add(FieldPath("sources", s.Name)+".maxEventBytes", "is "+formatBytes(s.MaxEventBytes)+", more than an item of DynamoDB holds",
					"must be at most "+formatBytes(MaxEventBytesAWS)+" on AWS")
			}
		}
		for i := range c.Destinations {
			v.unfitOnAWS(&c.Destinations[i])
		}
	}
	return v.faults
}

// Needs is what of a valid configuration works on a target only once somebody
// sees to something there by hand.
func (c *Config) Needs(t Target) []Fault {
	var v validation
	if t != TargetAWS {
		return nil // who starts a process gives it its environment
	}
	for path, s := range c.Secrets() {
		if scheme, name, _ := s.Split(); scheme == "env" {
			v.add(path, "names the environment variable "+name+", which template.yaml gives to no function: none that needs it starts", RightSecretAWS)
		}
	}
	v.polled(c)
	return v.faults
}

// polled warns of queues that nobody polls: template.yaml makes one an event source.
func (v *validation) polled(c *Config) {
	first := ""
	for i := range c.Sources {
		switch s := &c.Sources[i]; {
		case s.Type != TypeSQS:
		case first == "":
			first = s.Name
		default:
			v.add(FieldPath("sources", s.Name)+".type", "is sqs, as is that of "+first+": template.yaml makes one queue an event source, the one of "+QueueParameterAWS+", and on AWS nobody polls another",
				"give it a stack of its own")
		}
	}
}

// Idle is what of a valid configuration has no effect on a target, or lets
// nobody in there.
func (c *Config) Idle(t Target) []Fault {
	var v validation
	switch t {
	case TargetLocal:
		for i := range c.Buffers {
			if b := &c.Buffers[i]; b.Shards > 1 {
				v.add(FieldPath("buffers", b.Name)+".shards", fmt.Sprintf("is %d, which is about the store on AWS", b.Shards), "leave it out on one machine")
			}
		}
		counts := slices.ContainsFunc(c.Buffers, func(b Buffer) bool {
			return b.Window != nil || 2*int64(b.DeliverAfter) > RetentionRange.Default // which Validate asks for
		})
		if int64(c.Store.Retention) != RetentionRange.Default && !counts {
			v.add("store.retention", "is about the store on AWS, and about time windows, which no buffer has",
				"leave it out on one machine, where items are kept until they are delivered")
		}
	case TargetAWS:
		v.idleOnAWS(c)
	}
	return v.faults
}

func (v *validation) idleOnAWS(c *Config) {
	const alone = ", and on AWS no caller is on the same machine: "
	if !c.Store.Sync {
		v.add("store.sync", "is about the store of one machine", "leave it out on AWS, where every write is durable")
	}
	if len(c.Control.Tokens) == 0 {
		v.add("control.tokens", "has no token"+alone+"control calls let nobody in", "give it one")
	}
	for i := range c.Sources {
		if s := &c.Sources[i]; s.Auth == nil && s.Type != TypeSQS {
			v.add(FieldPath("sources", s.Name)+".auth", "is absent"+alone+"the source lets nobody in", "say bearer, webhook or none")
		}
	}
	for i := range c.Buffers {
		if b := &c.Buffers[i]; b.FlushEvery != 0 && b.FlushEvery < flushEveryAWS {
			v.add(FieldPath("buffers", b.Name)+".flush.every", "is "+formatDuration(b.FlushEvery)+", but on AWS buffers are flushed every "+formatDuration(flushEveryAWS),
				"must be at least "+formatDuration(flushEveryAWS)+" to count")
		}
	}
}

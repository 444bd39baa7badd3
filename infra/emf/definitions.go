package emf

import "slices"

// Namespace is the CloudWatch namespace of every metric.
const Namespace = "Sluice"

// Environment is the dimension that tells the stacks of an account apart.
const Environment = "environment"

// The units of CloudWatch that are used here.
const (
	unitCount   = "Count"
	unitBytes   = "Bytes"
	unitSeconds = "Seconds"
)

// Definition is what there is to know of a metric to ask CloudWatch for it.
type Definition struct {
	Name   string
	Unit   string
	Labels []string // its dimensions beside the environment
	Rollup bool     // it also exists with no dimension but the environment
	kind   kind
}

type kind uint8

const (
	counter      kind = iota // the sum over an invocation
	gauge                    // the last value of an invocation
	distribution             // every value
)

// metric is the index of a definition.
type metric uint8

const (
	events metric = iota
	lateEvents
	shadow
	breakerOpen
	batches
	batchItems
	batchBytes
	deliverySeconds
	latenessSeconds
	retries
	deadLetters
	failures
	lostItems
	pendingItems
	pendingBytes
	groups
	delayedItems
	oldestSeconds
)

var definitions = [...]Definition{
	events:          {"sluice_events_total", unitCount, []string{"source", "outcome"}, false, counter},
	lateEvents:      {"sluice_late_events_total", unitCount, []string{"buffer"}, false, counter},
	shadow:          {"sluice_shadow_total", unitCount, []string{"buffer", "outcome"}, false, counter},
	breakerOpen:     {"sluice_breaker_open", unitCount, []string{"destination"}, false, gauge},
	batches:         {"sluice_batches_total", unitCount, []string{"buffer", "destination", "reason", "outcome"}, false, counter},
	batchItems:      {"sluice_batch_items", unitCount, []string{"buffer"}, false, distribution},
	batchBytes:      {"sluice_batch_bytes", unitBytes, []string{"buffer"}, false, distribution},
	deliverySeconds: {"sluice_delivery_seconds", unitSeconds, []string{"destination"}, false, distribution},
	latenessSeconds: {"sluice_lateness_seconds", unitSeconds, []string{"buffer"}, true, distribution},
	retries:         {"sluice_retries_total", unitCount, []string{"buffer", "destination"}, false, counter},
	deadLetters:     {"sluice_dead_letters_total", unitCount, []string{"buffer", "reason"}, true, counter},
	failures:        {"sluice_failures_total", unitCount, []string{"op"}, true, counter},
	lostItems:       {"sluice_lost_items_total", unitCount, nil, true, counter},
	pendingItems:    {"sluice_pending_items", unitCount, []string{"buffer"}, false, gauge},
	pendingBytes:    {"sluice_pending_bytes", unitBytes, []string{"buffer"}, false, gauge},
	groups:          {"sluice_groups", unitCount, []string{"buffer"}, false, gauge},
	delayedItems:    {"sluice_delayed_items", unitCount, []string{"buffer"}, false, gauge},
	oldestSeconds:   {"sluice_oldest_seconds", unitSeconds, []string{"buffer"}, true, gauge},
}

// Definitions lists every metric, so that what asks for them can be held
// against it.
func Definitions() []Definition {
	all := slices.Clone(definitions[:])
	for i := range all {
		all[i].Labels = slices.Clone(all[i].Labels)
	}
	return all
}

// dimensions are the metric's dimension sets; a set names what to find at the
// root of a line. The environment is missing where it has no name.
func (d *Definition) dimensions(environment bool) [][]string {
	whole := []string{} // an empty set is one, null is none
	if environment {
		whole = []string{Environment}
	}
	sets := [][]string{whole}
	if len(d.Labels) > 0 {
		sets[0] = slices.Concat(whole, d.Labels)
		if d.Rollup {
			sets = append(sets, whole)
		}
	}
	return sets
}

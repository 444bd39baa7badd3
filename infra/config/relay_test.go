package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/core"
)

// changed is a thing of the name with every default, and then a change.
func changed[T any](fresh func(string) T, name string, change func(*T)) T {
	t := fresh(name)
	change(&t)
	return t
}

// relayConfig is what testdata/valid/relay.yaml says.
func relayConfig() *core.Config {
	c := core.NewConfig()
	c.Sources = []core.Source{
		changed(core.NewSource, "api", func(s *core.Source) {
			s.Auth, s.AckDelivered, s.RespondTimeout = &core.Auth{Bearer: []core.Secret{"env:T"}}, true, 2*time.Second
		}),
		changed(core.NewSource, "jobs", func(s *core.Source) { s.Type, s.Queue = "sqs", "env:QUEUE_URL" }),
		changed(core.NewSource, "legacy", func(s *core.Source) {
			s.Type, s.Queue, s.MaxEventBytes = "sqs", "http://127.0.0.1:4566/000000000000/legacy", 1<<20
		}),
	}
	c.Destinations = []core.Destination{
		changed(core.NewDestination, "crm", func(d *core.Destination) {
			d.URL, d.Fallbacks, d.Filter, d.Transform = "https://crm.example.com/events", []string{"spare", "log"}, ".ok", "{id, total}"
			d.Breaker, d.RateLimit = &core.BreakerConfig{Failures: 3, Cooldown: time.Minute}, &core.RateConfig{Requests: 5, Per: time.Minute}
		}),
		changed(core.NewDestination, "spare", func(d *core.Destination) {
			d.URL = "https://spare.example.com/events"
			d.Breaker, d.RateLimit = &core.BreakerConfig{Failures: 10, Cooldown: 30 * time.Second}, &core.RateConfig{Requests: 50, Per: time.Second}
		}),
		changed(core.NewDestination, "log", func(d *core.Destination) { d.Type, d.Path = "file", "out.ndjson" }),
	}
	buffer := func(name, to string, from []string, change func(*core.Buffer)) core.Buffer {
		return changed(core.NewBuffer, name, func(b *core.Buffer) {
			b.From, b.To = from, to
			change(b)
		})
	}
	c.Buffers = []core.Buffer{
		buffer("orders", "crm", []string{"api", "jobs", "legacy"}, func(b *core.Buffer) {
			b.Filter, b.Transform, b.GroupBy = `.type == "order"`, ".order", "{{ .json.shop }}"
			b.Ordered, b.OrderKey, b.Shards, b.Dedupe = true, "{{ .json.customer_id }}", 4, time.Hour
		}),
		buffer("copies", "spare", []string{"api"}, func(b *core.Buffer) { b.Shadow, b.Sample, b.Size = true, 0.05, 256 }),
		buffer("all-copies", "spare", []string{"jobs"}, func(b *core.Buffer) { b.Shadow, b.Size = true, 1000 }),
		buffer("reminders", "log", []string{"jobs"}, func(b *core.Buffer) {
			b.DeliverAfter, b.DeliverAt, b.Dedupe = 90*time.Minute, "{{ .json.send_at }}", 10*time.Minute
		}),
	}
	return c
}

func TestLoadRelay(t *testing.T) {
	t.Parallel()
	c, err := Load("testdata/valid/relay.yaml")
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(relayConfig(), c))
}

// TestQueueReference holds that a source's queue is resolved as secrets are,
// and that one that is written out is not.
func TestQueueReference(t *testing.T) {
	t.Parallel()
	values, faults := NewSecrets(func(name string) (string, bool) { return "value of " + name, name != "T" }).ResolveAll(relayConfig())
	require.Equal(t, map[core.Secret]string{"env:QUEUE_URL": "value of QUEUE_URL"}, values)
	require.Len(t, faults, 1)
	require.Equal(t, "sources.api.auth.bearer[0]", faults[0].Path)

	c := relayConfig()
	c.Sources[1].Queue = "ssm:/prod/queue"
	_, faults = NewSecrets(env).ResolveAll(c)
	require.Equal(t, "sources.jobs.queue", faults[1].Path)
}

func TestSample(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"1": 1, "1.0": 1, "0.05": 0.05, "0.5": 0.5, "0.000001": 0.000001,
		"0": 0, "-0.5": 0, "1.01": 0, "1e-2": 0, ".5": 0, "0x1": 0, ".nan": 0, ".inf": 0, "0.0": 0, "1_0": 0, "true": 0, "'1'": 0, "[1]": 0,
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			r := Parse("sluice.yaml", []byte("{sources: {a: {}}, destinations: {d: {type: stdout}}, buffers: {b: {from: [a], to: d}, s: {from: [a], to: d, shadow: true, sample: "+text+"}}}"))
			if want == 0 {
				require.Len(t, r.Faults, 1)
				require.Contains(t, r.Faults[0].String(), "buffers.s.sample: is ")
				require.Contains(t, r.Faults[0].String(), core.SampleRight)
				return
			}
			require.NoError(t, r.Err())
			require.InDelta(t, want, r.Config.Buffers[1].Sample, 0)
		})
	}
}

// TestShadowsAlone holds that nothing is said of shadows that only seem alone,
// as another buffer could not be read.
func TestShadowsAlone(t *testing.T) {
	t.Parallel()
	const only = "buffers.s.shadow: is set in every buffer that reads a, and a shadow may drop events; must be false in one of them at least"
	for other, want := range map[string]bool{
		"":                                 true,
		"b: {from: [z], to: d}":            true,
		"b: {from: a, to: d}":              false,
		"b: []":                            false,
		"b: {from: [a], to: d, shadow: 1}": false,
	} {
		t.Run(other, func(t *testing.T) {
			t.Parallel()
			err := Parse("sluice.yaml", []byte("{sources: {a: {}}, destinations: {d: {type: stdout}}, buffers: {s: {from: [a], to: d, shadow: true}, "+other+"}}")).Err()
			require.Equal(t, want, strings.Contains(err.Error(), only), "%v", err)
		})
	}
}

// What a check of the caller's finds has its place among all else, unless it only
// follows from what could not be read.
func TestChecks(t *testing.T) {
	t.Parallel()
	more := func(c *core.Config) []core.Fault {
		var faults []core.Fault
		for i := range c.Buffers {
			faults = append(faults, core.Fault{Path: "buffers." + c.Buffers[i].Name + ".filter", Problem: "is odd", Right: "must be even"})
		}
		return faults
	}
	const text = `sources: {in: {}}
destinations: {out: {type: stdout, timeout: 1h}}
buffers:
  a: {from: [in], filter: ".x", to: out, batch: {maxItems: 0}}
  b: {from: [in], filter: [], to: out}
`
	var got []string
	for _, f := range Parse("c.yaml", []byte(text), more).Faults {
		got = append(got, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Path))
	}
	require.Equal(t, []string{"2:45 destinations.out.timeout", "4:27 buffers.a.filter", "4:60 buffers.a.batch.maxItems", "5:19 buffers.b.filter"}, got)
}

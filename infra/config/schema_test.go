package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

func TestSchemaGolden(t *testing.T) {
	t.Parallel()
	golden(t, "testdata/schema.json", Schema())
}

// TestSchemaAgrees holds the schema to the decoder: on values at the edges they
// say the same, and what the decoder takes the schema takes (FuzzLoad, too).
func TestSchemaAgrees(t *testing.T) {
	t.Parallel()
	s := compiled(t)
	files, err := filepath.Glob("testdata/valid/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			value, ok := untyped(data)
			require.True(t, ok)
			require.NoError(t, s.Validate(value))
		})
	}
	for text, good := range schemaCases() {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			value, ok := untyped([]byte(text))
			require.True(t, ok)
			require.Equal(t, good, s.Validate(value) == nil, "the schema: %v", s.Validate(value))
			err := Parse("sluice.yaml", []byte(text)).Err()
			require.Equal(t, good, err == nil, "the decoder: %v", err)
		})
	}
}

// schemaCases are files that both the schema and the decoder take or refuse.
func schemaCases() map[string]bool {
	cases := map[string]bool{
		"{}":                         false,
		"sources: {}":                false,
		"sources: {a: {}}":           true,
		"sources: {A: {}}":           false,
		"sources: {a: null}":         false,
		"sources: {a: {}, b: []}":    false,
		"{sources: {a: {}}, x: 1}":   false,
		"{sources: {a: {}}, $x: {}}": false,
	}
	for field, good := range map[string]bool{
		"type: http": true, "type: kafka": false, "type: 1": false,
		"type: sqs, queue: env:Q": true, "type: sqs, queue: 5": false,
		"ack: accepted": true, "ack: delivered": true, "ack: 1": false, "ack: maybe": false, "respondTimeout: 10": false,
		"auth: none": true, "auth: all": false, "auth: {}": false, "auth: {bearer: []}": false, "auth: {bearer: [env:A]}": true,
		"auth: {bearer: [A]}": false, "auth: {webhook: {secrets: [env:A]}}": true, "auth: {webhook: {}}": false,
		"auth: {webhook: {secrets: []}}": false, "auth: {bearer: [env:A], webhook: {}}": false,
		"maxEventBytes: 1": true, "maxEventBytes: 0": false, "maxEventBytes: 10485760": true, "maxEventBytes: 10485761": false,
		"maxEventBytes: 10MiB": true, "maxEventBytes: 10Mib": false, "maxEventBytes: 1.5": false, "maxEventBytes: '1'": false,
	} {
		cases["sources: {a: {"+field+"}}"] = good
	}
	for field, good := range map[string]bool{
		"timeout: 5m": true, "timeout: 1h30": false, "timeout: 5": false, "allowPrivate: true": true, "allowPrivate: 'true'": false,
		"concurrency: 1": true, "concurrency: 0": false, "concurrency: 1000": true, "concurrency: 1001": false,
		"retry: {on: [300, 599]}": true, "retry: {on: [299]}": false, "retry: {on: 404}": false, "retry: {maxAttempts: 0}": false,
		"secrets: []": true, "secrets: [env:A, ssm:/b]": true, "secrets: [env:A, env:B, env:C]": false,
		"headers: {x-a: b, y: env:C}": true, "headers: {x-a: 1}": false, "headers: [a]": false,
		"format: json_array": true, "format: csv": false,
		"breaker: {}": true, "breaker: null": false, "breaker: {failures: 1, cooldown: 1h}": true, "breaker: {failures: 0}": false,
		"breaker: {cooldown: 5}": false, "breaker: {after: 1}": false, "rateLimit: {}": true, "rateLimit: 5": false,
		"rateLimit: {requests: 100000, per: 1h}": true, "rateLimit: {requests: 100001}": false, "rateLimit: {per: 1}": false,
		"fallbacks: []": true, "fallbacks: d": false, "fallbacks: [1]": false, "fallbacks: [a, b, c, d, e, f, g, h, i]": false,
		"filter: .a": true, "filter: {}": false, "transform: '{a: .b}'": true, "transform: {a: b}": false,
	} {
		cases["{sources: {a: {}}, destinations: {d: {url: 'https://example.com', "+field+"}}}"] = good
	}
	for field, good := range map[string]bool{
		"": true, "ordering: {}": true, "ordering: {key: x}": true, "ordering: {keys: x}": false, "ordering: true": false, "ordering: {key: 1}": false, "size: 0": true, "size: -1": false,
		"batch: {maxItems: 10000}": true, "batch: {maxItems: 10001}": false, "batch: {maxBytes: 1024}": true, "batch: {maxBytes: 1023}": false,
		"batch: {idleTimeoutMs: 100}": true, "batch: {idleTimeoutMs: 99}": false, "batch: {idleTimeoutMs: 300001}": false,
		"batch: {maxWaitFromFirstMs: 600000}": true, "batch: {maxWaitFromFirstMs: 600001}": false,
		"overflow: {maxItems: 0}": true, "overflow: {maxItems: -1}": false, "concurrency: 8": true, "concurrency: 9": false,
		"window: {}": true, "window: 1m": false, "window: null": false, "window: {evry: 1m}": false, "window: {every: 60}": false,
		"window: {every: 1s, grace: 0s, time: '{{ .json.ts }}', maxAhead: 0s}": true, "window: {time: 5}": false,
		"window: {}, fold: {count: count, A_1: avg .json.x}": true, "window: {}, fold: {}": false, "window: {}, fold: [count]": false,
		"window: {}, fold: {1a: count}": false, "window: {}, fold: {a-b: count}": false, "window: {}, fold: {a: 1}": false,
		"window: {}, fold: {" + columns(32) + "}": true, "window: {}, fold: {" + columns(33) + "}": false,
		"flush: {every: 5m}": true, "flush: {}": false, "flush: 5m": false, "flush: null": false, "flush: {every: 5}": false,
		"filter: .a": true, "filter: 1": false, "transform: .a": true, "transform: null": false,
		"dedupe: {}": true, "dedupe: 5m": false, "dedupe: {window: 1s}": true, "dedupe: {window: 5}": false, "dedupe: {for: 5m}": false,
		"deliverAfter: 0s": true, "deliverAfter: 0": false, "deliverAt: '{{ .json.at }}'": true, "deliverAt: 5": false,
		"shadow: false": true, "shadow: 'true'": false, "sample: 1": true, "sample: 1.0": true, "sample: 0": false, "sample: 1.1": false,
		"sample: -0.5": false, "sample: '1'": false, "sample: 0.0": false,
		"claimLimit: 0": true, "claimLimit: -1": false, "claimLimit: 10001": false, "recoverAfter: 0s": true, "recoverAfter: 5": false,
	} {
		cases["{sources: {a: {}}, destinations: {d: {type: stdout}}, buffers: {b: {from: [a], to: d, "+field+"}}}"] = good
	}
	for field, good := range map[string]bool{
		"": true, "sample: 0.05": true, "sample: 2": false, "sample: true": false,
	} {
		cases["{sources: {a: {}}, destinations: {d: {type: stdout}}, buffers: {b: {from: [a], to: d}, s: {from: [a], to: d, shadow: true, "+field+"}}}"] = good
	}
	cases["{sources: {a: {}}, destinations: {d: {type: stdout}}, buffers: {b: {to: d}}}"] = false
	cases["{sources: {a: {}}, destinations: {d: {type: stdout}}, buffers: {b: {from: [], to: d}}}"] = false
	cases["{sources: {a: {}}, destinations: {d: {type: stdout}}, buffers: {b: {from: [a]}}}"] = false
	return cases
}

// columns are so many columns of a fold.
func columns(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "c%d: count, ", i)
	}
	return b.String()
}

// TestSchemaDescribesAll holds that every field says what it is.
func TestSchemaDescribesAll(t *testing.T) {
	t.Parallel()
	var walk func(path string, s *schema)
	walk = func(path string, s *schema) {
		for _, p := range s.Properties {
			require.NotEmpty(t, p.schema.Description, "%s.%s", path, p.name)
			walk(path+"."+p.name, &p.schema)
		}
		for i := range s.OneOf {
			walk(path, &s.OneOf[i])
		}
		if below, ok := s.AdditionalProperties.(*schema); ok {
			walk(path+".*", below)
		}
	}
	root := file().schema
	walk("", &root)
}

// compiled is the schema, as a validator that knows the draft understands it.
func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("sluice.json", doc))
	s, err := c.Compile("sluice.json")
	require.NoError(t, err)
	return s
}

// untyped is a YAML document as JSON has it, every key a string.
func untyped(data []byte) (any, bool) {
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil || len(doc.Content) != 1 {
		return nil, false
	}
	value, ok := jsonValue(doc.Content[0])
	if !ok {
		return nil, false
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, false
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	return out, err == nil
}

func jsonValue(n *yaml.Node) (any, bool) {
	switch n.Kind {
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			value, ok := jsonValue(n.Content[i+1])
			if !ok {
				return nil, false
			}
			m[n.Content[i].Value] = value
		}
		return m, true
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			var ok bool
			if list[i], ok = jsonValue(c); !ok {
				return nil, false
			}
		}
		return list, true
	default:
		var v any
		err := n.Decode(&v)
		return v, err == nil
	}
}

package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/objectkey"
)

// fullConfig is what testdata/valid/full.yaml says.
func fullConfig() *core.Config {
	return &core.Config{
		Store:   core.StoreConfig{Retention: 72 * time.Hour},
		Control: core.Control{Tokens: []core.Secret{"env:SLUICE_CONTROL_TOKEN", "ssm:/prod/control"}},
		Sources: []core.Source{
			{Name: "orders", Type: "http", Auth: &core.Auth{Bearer: []core.Secret{"env:T", "env:T_OLD"}}, MaxEventBytes: 300 << 10, RespondTimeout: 10 * time.Second},
			{Name: "hooks", Type: "http", Auth: &core.Auth{Webhook: []core.Secret{"env:S"}}, MaxEventBytes: 256 << 10, RespondTimeout: 10 * time.Second},
			{Name: "public", Type: "http", Auth: &core.Auth{Open: true}, MaxEventBytes: 256 << 10, RespondTimeout: 10 * time.Second},
			{Name: "local", Type: "http", MaxEventBytes: 256 << 10, RespondTimeout: 10 * time.Second},
		},
		Destinations: []core.Destination{
			{
				Key: objectkey.Default, Compression: "none",
				Name: "crm", Type: "http", URL: "https://crm.example.com/events",
				Headers: []core.ConfigHeader{{Name: "x-team", Value: "billing"}, {Name: "authorization", Secret: "env:CRM_AUTH"}},
				Format:  "envelope", Secrets: []core.Secret{"env:CRM_SECRET", "secretsmanager:crm"},
				Timeout: 90 * time.Second, AllowPrivate: true, Concurrency: 4,
				Retry: core.RetryPolicy{MaxAttempts: 5, Initial: 500 * time.Millisecond, Max: time.Hour, On: []int{404, 409}},
			},
			{
				Key: objectkey.Default, Compression: "none",
				Name: "log", Type: "file", Path: "./out.ndjson", Format: "ndjson", Timeout: 15 * time.Second, Concurrency: 16,
				Retry: core.RetryPolicy{MaxAttempts: 20, Initial: time.Second, Max: 15 * time.Minute},
			},
			{
				Key: objectkey.Default, Compression: "none",
				Name: "out", Type: "stdout", Format: "json_array", Timeout: 15 * time.Second, Concurrency: 16,
				Retry: core.RetryPolicy{MaxAttempts: 20, Initial: time.Second, Max: 15 * time.Minute},
			},
		},
		Buffers: []core.Buffer{
			{
				Name: "crm-orders", From: []string{"orders", "hooks"}, To: "crm", GroupBy: "{{ .json.customer_id }}",
				Batch:    core.BatchConfig{MaxItems: 20, MaxBytes: 2 << 20, IdleTimeout: time.Second, MaxWait: 2 * time.Second},
				Overflow: core.OverflowConfig{MaxBytes: 4 << 20, MaxItems: 1000}, Concurrency: 2, Size: 100_000, Shards: 4, Sample: 1,
			},
			{
				Name: "ordered", From: []string{"hooks"}, To: "log",
				Batch:    core.BatchConfig{MaxItems: 50, MaxBytes: 3 << 20, IdleTimeout: 5 * time.Second, MaxWait: 15 * time.Second},
				Overflow: core.OverflowConfig{MaxBytes: 3 << 20}, Concurrency: 1, Ordered: true, Shards: 1, Sample: 1,
			},
			{
				Name: "rest", From: []string{"public", "local"}, To: "out",
				Batch:    core.BatchConfig{MaxItems: 50, MaxBytes: 256 << 10, IdleTimeout: 5 * time.Second, MaxWait: 15 * time.Second},
				Overflow: core.OverflowConfig{MaxBytes: 1 << 20}, Concurrency: 1, Shards: 1, Sample: 1,
			},
			{
				Name: "totals", From: []string{"orders"}, To: "crm", GroupBy: "{{ .json.customer_id }}",
				Batch:    core.BatchConfig{MaxItems: 50, MaxBytes: 256 << 10, IdleTimeout: 5 * time.Second, MaxWait: 15 * time.Second},
				Overflow: core.OverflowConfig{MaxBytes: 1 << 20}, Concurrency: 1, Shards: 1, Sample: 1,
				Window:     &core.WindowConfig{Every: time.Hour, Grace: 30 * time.Second, Time: "{{ .json.ts }}", MaxAhead: 10 * time.Minute},
				Fold:       []core.FoldColumn{{Name: "count", Expr: "count"}, {Name: "total", Expr: "sum .json.amount"}, {Name: "Peak_2", Expr: "max .json.ms"}},
				FlushEvery: 2 * time.Hour, RecoverAfter: 4 * time.Minute,
			},
			{
				Name: "nightly", From: []string{"orders"}, To: "log",
				Batch:    core.BatchConfig{MaxItems: 50, MaxBytes: 256 << 10, IdleTimeout: 5 * time.Second, MaxWait: 15 * time.Second},
				Overflow: core.OverflowConfig{MaxBytes: 1 << 20}, Concurrency: 1, Shards: 1, Sample: 1,
				Window:     &core.WindowConfig{Every: time.Minute, Grace: 5 * time.Second, MaxAhead: time.Hour},
				ClaimLimit: 10,
			},
		},
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	c, err := Load("testdata/valid/full.yaml")
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(fullConfig(), c))
}

func TestLoadRefusesFaults(t *testing.T) {
	t.Parallel()
	const path = "testdata/faults/duplicates.yaml"
	c, err := Load(path)
	require.Nil(t, c)
	require.Equal(t, core.Invalid, core.CodeOf(err))
	lines := strings.Split(core.DetailOf(err), "\n")
	require.Len(t, lines, 4)
	require.Contains(t, lines[0], path+":4:3: sources.orders: is there twice")
}

func TestLoadWithoutAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := Load(filepath.Join(dir, "none.yaml"))
	require.Equal(t, core.NotFound, core.CodeOf(err))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Load(dir) // a folder opens, but does not read
	require.Equal(t, core.Unavailable, core.CodeOf(err))
	var pathErr *fs.PathError
	require.ErrorAs(t, err, &pathErr)
}

func TestReadStopsAtTheBound(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "large.yaml")
	require.NoError(t, os.WriteFile(path, []byte("#"+strings.Repeat("x", MaxBytes)), 0o600))
	r, err := Read(path)
	require.NoError(t, err)
	require.Len(t, r.Faults, 1)
	require.Contains(t, r.Faults[0].String(), "is larger than 1MiB")
}

// TestHostile holds that files made to break a parser are refused, or read, as
// any other.
func TestHostile(t *testing.T) {
	t.Parallel()
	bomb := "a0: &a0 [x, x]\n"
	for i := 1; i < 40; i++ {
		was := "*a" + strconv.Itoa(i-1)
		bomb += "a" + strconv.Itoa(i) + ": &a" + strconv.Itoa(i) + " [" + was + ", " + was + ", " + was + "]\n"
	}
	fill := func(unit string) string { return strings.Repeat(unit, MaxBytes/len(unit)) }
	many := func(unit string) string { return strings.Repeat(unit, MaxBytes/64/len(unit)) }
	tests := []struct {
		name, text, want string // the first fault holds want
	}{
		{"aliases of aliases", bomb, "is not a known field"},
		{"5,000 lists in lists", "sources: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "is a list"},
		{"a megabyte of open lists", fill("["), "is not YAML"},
		{"a megabyte of open mappings", fill("{a: "), "is not YAML"},
		{"a megabyte of entries in entries", fill("- "), "is not YAML"},
		{"a megabyte of keys", fill("? "), "is not YAML"},
		{"one field many times", many("a: b\n"), "is not a known field"},
		{"a megabyte of one word", fill("x"), "is text"},
		{"a megabyte of spaces", fill(" "), "is empty"},
		{"many elements", "sources: {a: {}}\ncontrol: {tokens: [" + many("a,") + "]}", "is not a reference"},
		{"one source many times", "sources: {" + many("a: {}, ") + "}", "is there twice"},
		{"a zero byte", "sources:\n  a\x00: {}", "is not text"},
		{"UTF-16", "\xff\xfes\x00o\x00", "is not text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := Parse("sluice.yaml", []byte(tt.text))
			require.Nil(t, r.Config)
			require.NotEmpty(t, r.Faults)
			require.Contains(t, r.Faults[0].String(), tt.want)
		})
	}
}

// TestManyBuffers holds that large configurations are read, and in order.
func TestManyBuffers(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("sources: {orders: {}}\ndestinations: {out: {type: stdout}}\nbuffers:\n")
	const n = 500
	for i := range n {
		b.WriteString("  b" + strconv.Itoa(i) + ":\n    from: [orders]\n    to: out\n    groupBy: \"{{ .json.customer_id }}\"\n    batch: {maxItems: 20, maxBytes: 2MiB}\n")
	}
	r := Parse("sluice.yaml", []byte(b.String()))
	require.NoError(t, r.Err())
	require.Len(t, r.Config.Buffers, n)
	require.Equal(t, "b499", r.Config.Buffers[n-1].Name)
}

func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	r := Parse("sluice.yaml", []byte("\ufeffsources: {orders: {}}\r\ncontrol: {}\r\n"))
	require.NoError(t, r.Err())
}

// TestSecretsAreNotShown writes a secret wherever a file has room for one.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	const secret = "whsec_hunter2"
	texts := []string{
		"control: {tokens: [" + secret + "]}",
		"control: {tokens: " + secret + "}",
		"control: {tokens: {" + "a: " + secret + "}}",
		"control: " + secret,
		"sources: {a: {auth: " + secret + "}}",
		"sources: {a: {ack: " + secret + "}}",
		"sources: {a: {type: sqs, queue: " + secret + "}}",
		"sources: {a: {type: sqs, queue: \"env:" + secret + "!\"}}",
		"sources: {a: {type: sqs, queue: 'https://x:" + secret + "@example.com/q'}}",
		"sources: {a: {type: sqs, queue: 'https://example.com/q?token=" + secret + "'}}",
		"sources: {a: {auth: {bearer: " + secret + "}}}",
		"sources: {a: {auth: {webhook: " + secret + "}}}",
		"sources: {a: {auth: {webhook: {secrets: [" + secret + "]}}}}",
		"sources: {a: {auth: {webhook: {secrets: [env: " + secret + "]}}}}",
		"destinations: {a: {secrets: [" + secret + "]}}",
		"destinations: {a: {secrets: [\"env:" + secret + "!\"]}}",
		"destinations: {a: {headers: {authorization: [" + secret + "]}}}",
		"destinations: {a: {headers: {authorization: \"" + secret + "\\u0001\"}}}",
		"destinations: {a: {headers: " + secret + "}}",
		"destinations: {a: {url: 'https://x:" + secret + "@example.com'}}",
		"destinations: {a: {url: '" + secret + ":'}}",
		"destinations: {a: {format: " + secret + "}}",
		"buffers: {a: {fold: {n: " + secret + "}}}",
		"buffers: {a: {fold: {n: sum " + secret + "}}}",
		"buffers: {a: {fold: " + secret + "}}",
		"buffers: {a: {window: " + secret + "}}",
		"buffers: {a: {flush: " + secret + "}}",
		"control: {tokens: [\"" + secret,
	}
	for _, text := range texts {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			r := Parse("sluice.yaml", []byte(text))
			require.Error(t, r.Err())
			require.NotContains(t, r.Err().Error(), "hunter2")
		})
	}
}

func TestPlace(t *testing.T) {
	t.Parallel()
	r := Parse("sluice.yaml", []byte("sources: {orders: {auth: {bearer: [env:A, env:B]}}}\n\ncontrol:\n  tokens:\n    - env:C\n"))
	require.NoError(t, r.Err())
	_, faults := NewSecrets(func(string) (string, bool) { return "", false }).ResolveAll(r.Config)
	var got []string
	for _, f := range r.Place(faults) {
		got = append(got, f.String())
	}
	require.Empty(t, cmp.Diff([]string{
		"sluice.yaml:1:36: sources.orders.auth.bearer[0]: names the environment variable A, which is not set; set it before the start",
		"sluice.yaml:1:43: sources.orders.auth.bearer[1]: names the environment variable B, which is not set; set it before the start",
		"sluice.yaml:5:7: control.tokens[0]: names the environment variable C, which is not set; set it before the start",
	}, got))
}

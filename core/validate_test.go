package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// validConfig is a configuration with one of each, without faults.
func validConfig() *Config {
	c := NewConfig()
	c.Control.Tokens = []Secret{"env:CONTROL"}
	orders := NewSource("orders")
	orders.Auth = &Auth{Bearer: []Secret{"env:T"}}
	c.Sources = []Source{orders}
	crm := NewDestination("crm")
	crm.URL = "https://crm.example.com/events"
	c.Destinations = []Destination{crm}
	b := NewBuffer("crm-orders")
	b.From, b.To, b.GroupBy = []string{"orders"}, "crm", "{{ .json.customer_id }}"
	c.Buffers = []Buffer{b}
	return c
}

func TestValidConfigHasNoFaults(t *testing.T) {
	t.Parallel()
	require.Empty(t, validConfig().Validate())
	require.Empty(t, validConfig().Lint())
}

func TestValidate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*Config)
		want   []string // "path: problem"
	}{
		{"no source", func(c *Config) { c.Sources = nil },
			[]string{"sources: is missing", `buffers.crm-orders.from[0]: names the source "orders", which does not exist`}},
		{"a bad name", func(c *Config) { c.Buffers[0].Name = "CRM orders" }, []string{`buffers."CRM orders": is not a name`}},
		{"an empty name", func(c *Config) { c.Buffers[0].Name = "" }, []string{`buffers."": is not a name`}},
		{"a name of 64", func(c *Config) { c.Buffers[0].Name = strings.Repeat("a", 64) },
			[]string{"buffers." + strings.Repeat("a", 64) + ": is not a name"}},
		{"one name twice", func(c *Config) { c.Buffers = append(c.Buffers, c.Buffers[0]) },
			[]string{"buffers.crm-orders: is there twice"}},
		{"an unknown source type", func(c *Config) { c.Sources[0].Type = "kafka" }, []string{`sources.orders.type: is "kafka"`}},
		{"auth for nobody", func(c *Config) { c.Sources[0].Auth = &Auth{} }, []string{"sources.orders.auth: lets nobody in"}},
		{"auth without a token", func(c *Config) { c.Sources[0].Auth = &Auth{Bearer: []Secret{}} },
			[]string{"sources.orders.auth.bearer: is empty"}},
		{"auth without a webhook secret", func(c *Config) { c.Sources[0].Auth = &Auth{Webhook: []Secret{}} },
			[]string{"sources.orders.auth.webhook.secrets: is empty"}},
		{"a secret written out", func(c *Config) { c.Control.Tokens = []Secret{"hunter2"} },
			[]string{"control.tokens[0]: is not a reference to a secret"}},
		{"a reference to no name", func(c *Config) { c.Sources[0].Auth.Bearer[0] = "env:A B" },
			[]string{"sources.orders.auth.bearer[0]: is not a reference to a secret"}},
		{"a retention of a minute", func(c *Config) { c.Store.Retention = time.Minute }, []string{"store.retention: is 1m"}},
		{"a retention shorter than two waits", func(c *Config) { c.Store.Retention, c.Destinations[0].Retry.Max = 23*time.Hour, 12*time.Hour },
			[]string{"store.retention: is 23h, less than twice the retry.max of destination crm, 12h"}},
		{"65 shards", func(c *Config) { c.Buffers[0].Shards = 65 }, []string{"buffers.crm-orders.shards: is 65"}},
		{"no shard", func(c *Config) { c.Buffers[0].Shards = 0 }, []string{"buffers.crm-orders.shards: is 0"}},
		{"no url", func(c *Config) { c.Destinations[0].URL = "" }, []string{"destinations.crm.url: is missing"}},
		{"a file without a path", func(c *Config) { c.Destinations[0].Type, c.Destinations[0].URL = TypeFile, "" },
			[]string{"destinations.crm.path: is missing"}},
		{"a path with a zero byte", func(c *Config) {
			c.Destinations[0].Type, c.Destinations[0].URL, c.Destinations[0].Path = TypeFile, "", "a\x00b"
		}, []string{"destinations.crm.path: has a zero byte"}},
		{"fields of another type", func(c *Config) {
			d := &c.Destinations[0]
			d.Type, d.Path, d.AllowPrivate, d.Secrets = TypeStdout, "/x", true, []Secret{"env:S"}
			d.Headers = []ConfigHeader{{Name: "x-a", Value: "b"}}
		}, []string{
			"destinations.crm.url: has no meaning here", "destinations.crm.path: has no meaning here",
			"destinations.crm.headers: has no meaning here", "destinations.crm.secrets: has no meaning here",
			"destinations.crm.allowPrivate: has no meaning here",
		}},
		{"an unknown destination type", func(c *Config) { c.Destinations[0].Type = "https" }, []string{`destinations.crm.type: is "https"`}},
		{"an unknown format", func(c *Config) { c.Destinations[0].Format = "csv" }, []string{`destinations.crm.format: is "csv"`}},
		{"three secrets", func(c *Config) { c.Destinations[0].Secrets = []Secret{"env:A", "env:B", "env:C"} },
			[]string{"destinations.crm.secrets: has 3 secrets"}},
		{"headers", func(c *Config) {
			c.Destinations[0].Headers = []ConfigHeader{
				{Name: "x team"}, {Name: "X-A"}, {Name: "x-a"}, {Name: "Sluice-Group"}, {Name: "webhook-id"},
				{Name: "x-b", Value: "1\r\nx-c: 2"}, {Name: "x-d", Secret: "env:"},
			}
		}, []string{
			"destinations.crm.headers.x-d: is not a reference to a secret",
			`destinations.crm.headers."x team": is not a header's name`, "destinations.crm.headers.x-a: is there twice",
			"destinations.crm.headers.Sluice-Group: is a header that Sluice sets itself",
			"destinations.crm.headers.webhook-id: is a header that Sluice sets itself",
			"destinations.crm.headers.x-b: has a control character in its value",
		}},
		{"retry", func(c *Config) {
			c.Destinations[0].Retry = RetryPolicy{MaxAttempts: 0, Initial: time.Hour, Max: time.Minute, On: []int{404, 200}}
		}, []string{
			"destinations.crm.retry.maxAttempts: is 0", "destinations.crm.retry.initial: is 1h, above retry.max, 1m",
			"destinations.crm.retry.on[1]: is 200",
		}},
		{"a buffer of nothing", func(c *Config) { c.Buffers[0].From, c.Buffers[0].To = nil, "" },
			[]string{"buffers.crm-orders.from: is missing", "buffers.crm-orders.to: is missing"}},
		{"dangling names", func(c *Config) { c.Buffers[0].From, c.Buffers[0].To = []string{"orders", "order", "orders"}, "crn" },
			[]string{
				`buffers.crm-orders.from[1]: names the source "order", which does not exist`,
				`buffers.crm-orders.from[2]: names "orders" again`,
				`buffers.crm-orders.to: names the destination "crn", which does not exist`,
			}},
		{"overflow below the batch", func(c *Config) { c.Buffers[0].Batch.MaxBytes = 2 * MiB },
			[]string{"buffers.crm-orders.overflow.maxBytes: is 1MiB, below batch.maxBytes, 2MiB"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := validConfig()
			tt.change(c)
			require.Empty(t, cmp.Diff(tt.want, problems(c.Validate())))
		})
	}
}

// problems are the faults without what would be right, which every fault has.
func problems(faults []Fault) []string {
	var out []string
	for _, f := range faults {
		if f.Right == "" {
			out = append(out, f.Path+" does not say what would be right")
		}
		out = append(out, f.Path+": "+f.Problem)
	}
	return out
}

func TestValidateTemplate(t *testing.T) {
	t.Parallel()
	c := validConfig()
	c.Buffers[0].GroupBy = "{{ .jsn.x }}"
	faults := c.Validate()
	require.Len(t, faults, 1)
	require.Equal(t, "buffers.crm-orders.groupBy", faults[0].Path)
	require.Contains(t, faults[0].Problem, ".jsn")
}

func TestValidateURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://example.com":              "",
		"http://127.0.0.1:8080/a?b=c":      "",
		"http://[::1]:80/":                 "",
		"/events":                          "has no scheme",
		"example.com/events":               "has no scheme",
		"ftp://example.com":                `has the scheme "ftp"`,
		"mailto:me@example.com":            `has the scheme "mailto"`,
		"https://":                         "has no host",
		"https://user:hunter2@example.com": "has a user or password in it",
		"https://exa mple.com":             "is not a URL",
		"https://example.com:port/hunter2": "is not a URL",
		"https://example.com:65535":        "",
		"https://example.com:65536":        `has the port "65536", which is none`,
		"https://example.com:0":            `has the port "0", which is none`,
	} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, want, urlProblem(url))
		})
	}
}

// TestValidateBounds holds every number to its range: the bounds themselves
// are right, one beyond is named with its path and its range.
func TestValidateBounds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		path string
		r    Range
		set  func(*Config, int64)
	}{
		{"sources.orders.maxEventBytes", EventBytesRange, func(c *Config, n int64) { c.Sources[0].MaxEventBytes = n }},
		{"destinations.crm.timeout", TimeoutRange, func(c *Config, n int64) { c.Destinations[0].Timeout = time.Duration(n) }},
		{"destinations.crm.concurrency", SendsRange, func(c *Config, n int64) { c.Destinations[0].Concurrency = int(n) }},
		{"destinations.crm.retry.maxAttempts", AttemptsRange, func(c *Config, n int64) { c.Destinations[0].Retry.MaxAttempts = int(n) }},
		{"destinations.crm.retry.initial", RetryInitialRange, func(c *Config, n int64) {
			c.Destinations[0].Retry.Initial, c.Destinations[0].Retry.Max = time.Duration(n), 24*time.Hour
		}},
		{"destinations.crm.retry.max", RetryMaxRange, func(c *Config, n int64) {
			c.Destinations[0].Retry.Initial, c.Destinations[0].Retry.Max = time.Millisecond, time.Duration(n)
		}},
		{"destinations.crm.retry.on[0]", RetryStatusRange, func(c *Config, n int64) { c.Destinations[0].Retry.On = []int{int(n)} }},
		{"buffers.crm-orders.batch.maxItems", BatchItemsRange, func(c *Config, n int64) { c.Buffers[0].Batch.MaxItems = int(n) }},
		{"buffers.crm-orders.batch.maxBytes", BatchBytesRange, func(c *Config, n int64) {
			c.Buffers[0].Batch.MaxBytes, c.Buffers[0].Overflow.MaxBytes = n, OverflowBytesRange.Max
		}},
		{"buffers.crm-orders.batch.idleTimeoutMs", IdleTimeoutRange, func(c *Config, n int64) { c.Buffers[0].Batch.IdleTimeout = time.Duration(n) }},
		{"buffers.crm-orders.batch.maxWaitFromFirstMs", MaxWaitRange, func(c *Config, n int64) { c.Buffers[0].Batch.MaxWait = time.Duration(n) }},
		{"buffers.crm-orders.overflow.maxBytes", OverflowBytesRange, func(c *Config, n int64) {
			c.Buffers[0].Batch.MaxBytes, c.Buffers[0].Overflow.MaxBytes = KiB, n
		}},
		{"buffers.crm-orders.overflow.maxItems", OverflowItemsRange, func(c *Config, n int64) { c.Buffers[0].Overflow.MaxItems = int(n) }},
		{"buffers.crm-orders.concurrency", BatchesRange, func(c *Config, n int64) { c.Buffers[0].Concurrency = int(n) }},
		{"buffers.crm-orders.window.every", WindowEveryRange, windowed(func(w *WindowConfig, n int64) { w.Every = time.Duration(n) })},
		{"buffers.crm-orders.window.grace", WindowGraceRange, windowed(func(w *WindowConfig, n int64) { w.Grace = time.Duration(n) })},
		{"buffers.crm-orders.window.maxAhead", WindowAheadRange, windowed(func(w *WindowConfig, n int64) { w.MaxAhead = time.Duration(n) })},
		{"buffers.crm-orders.flush.every", FlushEveryRange, func(c *Config, n int64) { c.Buffers[0].FlushEvery = time.Duration(n) }},
		{"buffers.crm-orders.claimLimit", ClaimLimitRange, func(c *Config, n int64) {
			c.Buffers[0].Batch.MaxItems, c.Buffers[0].ClaimLimit = int(BatchItemsRange.Max), int(n)
		}},
		{"buffers.crm-orders.recoverAfter", RecoverAfterRange, func(c *Config, n int64) { c.Buffers[0].RecoverAfter = time.Duration(n) }},
		{"sources.orders.respondTimeout", RespondRange, func(c *Config, n int64) {
			c.Sources[0].AckDelivered, c.Sources[0].RespondTimeout = true, time.Duration(n)
		}},
		{"destinations.crm.breaker.failures", FailuresRange, func(c *Config, n int64) {
			c.Destinations[0].Breaker = &BreakerConfig{Failures: int(n), Cooldown: time.Second}
		}},
		{"destinations.crm.breaker.cooldown", CooldownRange, func(c *Config, n int64) {
			c.Destinations[0].Breaker = &BreakerConfig{Failures: 1, Cooldown: time.Duration(n)}
		}},
		{"destinations.crm.rateLimit.requests", RequestsRange, func(c *Config, n int64) {
			c.Destinations[0].RateLimit = &RateConfig{Requests: int(n), Per: time.Second}
		}},
		{"destinations.crm.rateLimit.per", PerRange, func(c *Config, n int64) {
			c.Destinations[0].RateLimit = &RateConfig{Requests: 1, Per: time.Duration(n)}
		}},
		{"buffers.crm-orders.dedupe.window", DedupeRange, func(c *Config, n int64) { c.Buffers[0].Dedupe = time.Duration(n) }},
		{"buffers.crm-orders.deliverAfter", DelayRange, func(c *Config, n int64) {
			c.Store.Retention, c.Buffers[0].DeliverAfter = time.Duration(RetentionRange.Max), time.Duration(n)
		}},
		{"buffers.crm-orders.size", SizeRange, func(c *Config, n int64) { c.Buffers[0].Size = n }},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			for n, ok := range map[int64]bool{tt.r.Min: true, tt.r.Max: true, tt.r.Min - 1: false, tt.r.Max + 1: false} {
				c := validConfig()
				tt.set(c, n)
				var want []Fault
				if !ok {
					want = []Fault{{Path: tt.path, Problem: "is " + tt.r.Unit.Format(n), Right: "must be " + tt.r.String()}}
				}
				require.Empty(t, cmp.Diff(want, c.Validate()), "%d", n)
			}
		})
	}
}

// windowed changes the window that it gives a buffer.
func windowed(set func(*WindowConfig, int64)) func(*Config, int64) {
	return func(c *Config, n int64) {
		w := NewWindow()
		set(&w, n)
		c.Buffers[0].Window = &w
	}
}

func TestFaultsKeepSecrets(t *testing.T) {
	t.Parallel()
	const secret = "whsec_hunter2"
	c := validConfig()
	c.Control.Tokens = []Secret{secret}
	c.Sources[0].Type = secret
	c.Sources[0].Auth = &Auth{Bearer: []Secret{secret}, Webhook: []Secret{"env:" + secret + "-"}}
	c.Destinations[0].URL = "https://" + secret + ":" + secret + "@example.com"
	c.Destinations[0].Format = secret
	c.Destinations[0].Secrets = []Secret{secret, "hunter2"}
	c.Destinations[0].Headers = []ConfigHeader{{Name: "authorization", Value: secret + "\n"}, {Name: "x", Secret: "env:hunter2!"}}
	w := NewWindow()
	c.Buffers[0].Window, c.Buffers[0].Fold = &w, []FoldColumn{{Name: "a", Expr: secret}, {Name: "b", Expr: "sum " + secret}, {Name: "c", Expr: "sum .json.x " + secret}}
	faults := c.Validate()
	require.Len(t, faults, 13)
	for _, f := range append(faults, c.Lint()...) {
		require.NotContains(t, f.String(), "hunter2")
	}
}

func TestAlternatives(t *testing.T) {
	t.Parallel()
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprintf("n%d", i)
	}
	require.Equal(t, "one that exists (there is none yet)", alternatives(nil))
	require.Equal(t, "n0", alternatives(many[:1]))
	require.Equal(t, "n0, n1 or n2", alternatives(many[:3]))
	require.Equal(t, "n0, n1, n2, n3, n4, n5, n6, n7, n8, n9 or one of 2 more", alternatives(many))
}

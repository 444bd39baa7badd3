package core

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestLint(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*Config)
		want   []string // "path: problem"
	}{
		{"a source that nobody reads", func(c *Config) { c.Sources = append(c.Sources, NewSource("idle")) },
			[]string{"sources.idle: is read by no buffer"}},
		{"an open source", func(c *Config) { c.Sources[0].Auth = &Auth{Open: true} }, []string{"sources.orders.auth: lets anybody in"}},
		{"a source for loopback only", func(c *Config) { c.Sources[0].Auth = nil }, nil},
		{"a destination that nobody uses", func(c *Config) {
			d := NewDestination("out")
			d.Type = TypeStdout
			c.Destinations = append(c.Destinations, d)
		}, []string{"destinations.out: is used by no buffer"}},
		{"a loopback address", func(c *Config) { c.Destinations[0].URL = "http://localhost:9000/" },
			[]string{"destinations.crm.url: is a private or loopback address, which is refused"}},
		{"a private address", func(c *Config) { c.Destinations[0].URL = "http://10.1.2.3/" },
			[]string{"destinations.crm.url: is a private or loopback address, which is refused"}},
		{"a private address that may be", func(c *Config) { c.Destinations[0].URL, c.Destinations[0].AllowPrivate = "http://[::1]/", true }, nil},
		{"secrets written out", func(c *Config) {
			c.Destinations[0].Headers = []ConfigHeader{
				{Name: "Authorization", Value: "hunter2"}, {Name: "x-sig", Value: "whsec_abc"},
				{Name: "x-api-key", Secret: "env:K"}, {Name: "x-team", Value: "billing"},
				{Name: "x-tenant", Value: "550e8400-e29b-41d4-a716-446655440000"},
			}
		}, []string{
			"destinations.crm.headers.Authorization: looks like a secret written out",
			"destinations.crm.headers.x-sig: looks like a secret written out",
		}},
		{"an idle timeout that never counts", func(c *Config) { c.Buffers[0].Batch.IdleTimeout = 20 * time.Second },
			[]string{"buffers.crm-orders.batch.idleTimeoutMs: is 20000, above maxWaitFromFirstMs, 15000, and so never counts"}},
		{"events that do not fit", func(c *Config) { c.Sources[0].MaxEventBytes = 2 * MiB },
			[]string{"buffers.crm-orders.from[0]: brings events of up to 2MiB, above overflow.maxBytes, 1MiB"}},
		{"groups that never fill", func(c *Config) { c.Buffers[0].Overflow.MaxItems = 49 },
			[]string{"buffers.crm-orders.overflow.maxItems: is 49, below batch.maxItems, 50, which a group can then never reach"}},
		{"concurrency of an ordered group", func(c *Config) { c.Buffers[0].Ordered, c.Buffers[0].Concurrency = true, 2 },
			[]string{"buffers.crm-orders.concurrency: is 2, but an ordered group sends one batch at a time"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := validConfig()
			tt.change(c)
			require.Empty(t, c.Validate(), "lint is for valid configurations")
			require.Empty(t, cmp.Diff(tt.want, problems(c.Lint())))
		})
	}
}

func TestUniqueField(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"":                                      "",
		"{{ .id }}":                             ".id",
		"{{.id}}":                               ".id",
		"{{ .source }}/{{ .id }}":               ".id",
		"{{ printf \"%s\" .id }}":               ".id",
		"{{ .json.id }}":                        "",
		"{{ .json.customer.id }}":               "",
		"{{ .identity }}":                       "",
		".id":                                   "",
		"{{ .json.request_id }}":                "",
		`{{ index .headers "x-request-id" }}`:   "x-request-id",
		`{{ index .headers "Idempotency-Key"}}`: "Idempotency-Key",
		"{{ .headers.traceparent }}":            "traceparent",
		"{{ .headers.tenant }}":                 "",
	} {
		t.Run(template, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, want, uniqueField(template))
		})
	}
}

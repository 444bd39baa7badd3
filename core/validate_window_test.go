package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// window gives a buffer a window, after which changes are made.
func window(changes ...func(*Config)) func(*Config) {
	return func(c *Config) {
		w := NewWindow()
		c.Buffers[0].Window = &w
		for _, change := range changes {
			change(c)
		}
	}
}

// folded gives a buffer columns: names and expressions in turns.
func folded(columns ...string) func(*Config) {
	return func(c *Config) {
		c.Buffers[0].Fold = []FoldColumn{}
		for i := 0; i < len(columns); i += 2 {
			c.Buffers[0].Fold = append(c.Buffers[0].Fold, FoldColumn{Name: columns[i], Expr: columns[i+1]})
		}
	}
}

// flushed gives a buffer a cadence.
func flushed(every time.Duration) func(*Config) {
	return func(c *Config) { c.Buffers[0].FlushEvery = every }
}

// conditions gives a buffer flush conditions other than the defaults.
func conditions(c *Config) {
	b := &c.Buffers[0].Batch
	b.MaxItems, b.MaxBytes, b.IdleTimeout, b.MaxWait = 20, 128*KiB, time.Second, 0
}

func noMeaning(beside string) []string {
	var want []string
	for _, field := range []string{"maxBytes", "idleTimeoutMs", "maxWaitFromFirstMs"} {
		want = append(want, "buffers.crm-orders.batch."+field+": has no meaning beside "+beside+"; remove it, or remove "+beside)
	}
	return want
}

// TestValidateWindow holds what is said of windows, folds, flushes and claims,
// with what would be right.
func TestValidateWindow(t *testing.T) {
	t.Parallel()
	const b = "buffers.crm-orders."
	tests := []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"a window", window(), nil},
		{"a window that leaves by flushes", window(flushed(5 * time.Minute)), nil},
		{"a fold", window(folded("count", "count", "total", "sum .json.amount")), nil},
		{"a time that is no template", window(func(c *Config) { c.Buffers[0].Window.Time = "{{ .ts }}" }),
			[]string{b + `window.time: is not a template: an event has no field .ts; it has .json, .headers, .id and .source; must be like "{{ .json.ts }}"`}},
		{"conditions of a window", window(conditions), noMeaning("window")},
		{"conditions of a flush", func(c *Config) { conditions(c); flushed(time.Minute)(c) }, noMeaning("flush")},
		{"conditions of both", window(conditions, flushed(time.Minute)), noMeaning("window and flush")},
		{"a batch of a window below the default conditions", window(func(c *Config) { c.Buffers[0].Overflow.MaxBytes = 2 * KiB }), nil},

		{"a fold without a window", folded("count", "count"),
			[]string{b + "fold: needs a window: rows are made of the events of one; add window: {every: 1m}, or remove it"}},
		{"a fold without a column", window(folded()), []string{b + "fold: is empty; name at least one column, such as count: count"}},
		{"a column twice", window(folded("n", "count", "m", "count", "n", "sum .json.n")),
			[]string{b + "fold.n: is there twice; give each column a name of its own"}},
		{"columns", window(folded("1a", "count", "id", "count", "a-b", "total .json.x", "a", "", "b", "sum", "c", "sum .json.a .json.b", "d", "max .id", "e", "last json", "f", "first .body")),
			[]string{
				b + "fold.1a: is not the name of a column; a name is of letters, digits and _, begins with no digit, and has at most 64 characters",
				b + "fold.id: every row has id by itself; choose another name",
				b + "fold.a-b: is not the name of a column; a name is of letters, digits and _, begins with no digit, and has at most 64 characters",
				b + `fold.a-b: there is no function "total"; it is one of count, sum, min, max, avg, first, last`,
				b + `fold.a: it has no function; it is such as "count" or "sum .json.amount"`,
				b + `fold.b: sum needs a path, such as "sum .json.amount"; write one function and one path`,
				b + `fold.c: sum takes one path, such as "sum .json.amount"; write one function and one path`,
				b + "fold.d: max reads numbers, and .id is a text; only .json has numbers",
				b + `fold.e: "json" is no path; one begins with a dot, such as .json.amount`,
				b + "fold.f: an event has no field .body; it has .json, .headers, .id and .source",
			}},
		{"columns for one too many", window(func(c *Config) {
			for i := range MaxColumns + 1 {
				c.Buffers[0].Fold = append(c.Buffers[0].Fold, FoldColumn{Name: fmt.Sprintf("c%d", i), Expr: "count"})
			}
		}), []string{b + "fold: has 33 columns; must have at most 32"}},

		{"claims above a batch", func(c *Config) { c.Buffers[0].ClaimLimit = 51 },
			[]string{b + "claimLimit: is 51, above batch.maxItems, 50; must be at most batch.maxItems; 0 means as many"}},
		{"claims as large as a batch", func(c *Config) { c.Buffers[0].ClaimLimit = 50 }, nil},
		{"claims of a fold", window(folded("n", "count"), func(c *Config) { c.Buffers[0].ClaimLimit = 10 }),
			[]string{b + "claimLimit: has no meaning beside fold: a window is claimed whole; remove it"}},
		{"claims of a window", window(func(c *Config) { c.Buffers[0].ClaimLimit = 10 }), nil},

		{"a short lease", func(c *Config) { c.Buffers[0].RecoverAfter = 30*time.Second - 1 },
			[]string{b + "recoverAfter: is 29.999999999s, too short for the timeout of destination crm, 15s, and 15s to settle; must be at least 30s, or leave it out"}},
		{"a lease that is short for a fallback alone", func(c *Config) {
			fallback("b1", "b2")(c)
			c.Buffers[0].RecoverAfter, c.Destinations[1].Timeout, c.Destinations[2].Timeout = 30*time.Second, 20*time.Second, time.Minute
		}, []string{b + "recoverAfter: is 30s, too short for the timeout of destination b2, 1m, and 15s to settle; must be at least 1m15s, or leave it out"}},
		{"the shortest lease", func(c *Config) { c.Buffers[0].RecoverAfter = 30 * time.Second }, nil},
		{"a lease for nothing", func(c *Config) { c.Buffers[0].RecoverAfter, c.Buffers[0].To = time.Second, "" },
			[]string{b + "to: is missing; name a destination: crm"}},
		{"a lease for a wrong timeout", func(c *Config) { c.Buffers[0].RecoverAfter, c.Destinations[0].Timeout = time.Second, 0 },
			[]string{"destinations.crm.timeout: is 0s; must be 100ms to 5m"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := validConfig()
			tt.change(c)
			require.Empty(t, cmp.Diff(tt.want, lines(c.Validate())))
		})
	}
}

func TestValidateRetention(t *testing.T) {
	t.Parallel()
	const path, hour = "store.retention: ", time.Hour
	tests := []struct {
		name      string
		retention time.Duration
		change    func(*Config)
		want      []string
	}{
		{"two windows", 2 * (24 + 1 + 24) * hour, window(func(c *Config) {
			*c.Buffers[0].Window = WindowConfig{Every: 24 * hour, Grace: hour, MaxAhead: 24 * hour}
		}), nil},
		{"less than two windows", 2*(24+1+24)*hour - 1, window(func(c *Config) {
			*c.Buffers[0].Window = WindowConfig{Every: 24 * hour, Grace: hour, MaxAhead: 24 * hour}
		}),
			[]string{path + "is 97h59m59.999999999s, less than twice the every, grace and maxAhead of the window of buffer crm-orders, 49h; must be at least 98h, so that no window is forgotten before its last events have come"}},
		{"a window that is wrong anyway", 3 * hour, window(func(c *Config) { c.Buffers[0].Window.Every = 25 * hour }),
			[]string{"buffers.crm-orders.window.every: is 25h; must be 1s to 24h"}},
		{"two flushes", 4 * hour, flushed(2 * hour), nil},
		{"less than two flushes", 3 * hour, flushed(2 * hour),
			[]string{path + "is 3h, less than twice the flush.every of buffer crm-orders, 2h; must be at least 4h, so that nothing expires between two flushes"}},
		{"less than two of everything", 3 * hour, window(flushed(3*hour), func(c *Config) {
			c.Buffers[0].Window.MaxAhead, c.Destinations[0].Retry.Max = 2*hour, 4*hour
		}), []string{
			path + "is 3h, less than twice the retry.max of destination crm, 4h; must be at least 8h, so that nothing expires between two attempts",
			path + "is 3h, less than twice the flush.every of buffer crm-orders, 3h; must be at least 6h, so that nothing expires between two flushes",
			path + "is 3h, less than twice the every, grace and maxAhead of the window of buffer crm-orders, 2h1m5s; must be at least 4h2m10s, so that no window is forgotten before its last events have come",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := validConfig()
			c.Store.Retention = tt.retention
			tt.change(c)
			require.Empty(t, cmp.Diff(tt.want, lines(c.Validate())))
		})
	}
}

// TestLongColumn holds that what is quoted of a column is cut.
func TestLongColumn(t *testing.T) {
	t.Parallel()
	c := validConfig()
	long := string(make([]byte, 1<<16))
	window(folded(long, "sum .json."+long))(c)
	faults := c.Validate()
	require.Len(t, faults, 2)
	for _, f := range faults {
		require.Less(t, len(f.String()), 1000)
	}
}

func lines(faults []Fault) []string {
	var out []string
	for _, f := range faults {
		out = append(out, f.String())
	}
	return out
}

func TestLintWindow(t *testing.T) {
	t.Parallel()
	const b = "buffers.crm-orders."
	key := func(template string) func(*Config) {
		return func(c *Config) { c.Buffers[0].GroupBy = template }
	}
	shards := func(c *Config) { c.Buffers[0].Shards = 4 }
	many := func(c *Config) { c.Buffers[0].Concurrency = 4 }
	tests := []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"a fold", window(folded("n", "count")), nil},
		{"a fold of one row", window(folded("n", "count"), key("")), nil},
		{"a fold of single events", window(folded("n", "count"), key("{{ .id }}")),
			[]string{b + "groupBy: groups by .id, which is likely to differ in every event; a row then folds one event; group by something that events share"}},
		{"a window with a key", window(),
			[]string{b + "groupBy: has no effect: a window without fold leaves in the order accepted, and the key only picks one of several shards; " +
				"add fold, which makes a row of each key, or remove it"}},
		{"a window without a key", window(key("")), nil},
		{"a sharded window", window(shards, key("{{ .id }}")), nil},
		{"a sharded window in one shard", window(shards, key("")),
			[]string{b + "shards: is 4, but without groupBy all events of a window go to one shard; group by something that many events differ in, or remove it"}},
		{"a sharded fold", window(shards, folded("n", "count")), nil},
		{"a long grace", window(key(""), func(c *Config) { c.Buffers[0].Window.Grace = time.Hour }), nil},
		{"concurrency of a fold", window(many, folded("n", "count")),
			[]string{b + "concurrency: is 4, but the rows of a window are sent one batch at a time; remove it; windows do not wait for each other"}},
		{"a small cap of a fold", window(folded("n", "count"), func(c *Config) { c.Buffers[0].Overflow.MaxItems = 10 }), nil},
		{"flushes of an ordered group", func(c *Config) { flushed(time.Minute)(c); c.Buffers[0].Ordered = true }, nil},
		{"a long lease", func(c *Config) { c.Buffers[0].RecoverAfter = time.Hour }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := validConfig()
			tt.change(c)
			require.Empty(t, c.Validate(), "lint is for valid configurations")
			require.Empty(t, cmp.Diff(tt.want, lines(c.Lint())))
		})
	}
}

package senders

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/format"
)

func config(types ...string) *core.Config {
	c := new(core.Config)
	for i, kind := range types {
		c.Destinations = append(c.Destinations, core.Destination{Name: string(rune('a' + i)), Type: kind, Format: format.NDJSON.String()})
	}
	return c
}

type nowhere struct{}

func (nowhere) Send(context.Context, *core.Batch) core.Response { return core.Response{Status: 204} }

// openers count what is open: "good" opens and closes, "bare" has nothing to
// close, and "bad" does not open.
func openers(open *int) map[string]Opener {
	return map[string]Opener{
		"good": func(*core.Destination, format.Format) (core.Sender, func(), error) {
			*open++
			return nowhere{}, func() { *open-- }, nil
		},
		"bare": func(*core.Destination, format.Format) (core.Sender, func(), error) { return nowhere{}, nil, nil },
		"bad": func(*core.Destination, format.Format) (core.Sender, func(), error) {
			return nil, nil, core.Errorf(core.Unavailable, "it is shut")
		},
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	open := 0
	s, err := Open(config("good", "bare", "good"), openers(&open))
	require.NoError(t, err)
	require.Equal(t, 2, open)
	for _, name := range []string{"a", "b", "c"} {
		require.Equal(t, nowhere{}, s.Sender(name))
	}
	require.Nil(t, s.Sender("d"))
	s.Close()
	require.Zero(t, open)
}

func TestOpenTellsOfEveryFaultAndLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	open := 0
	_, err := Open(config("good", "bad", "carrier-pigeon"), openers(&open))
	require.EqualError(t, err, "destinations.b: it is shut\ndestinations.c: destinations of type carrier-pigeon are not known here")
	require.Equal(t, core.Unavailable, core.CodeOf(err))
	require.Zero(t, open)
}

// A secret that cannot be resolved is told of, wherever it is used.
func TestHTTPSecrets(t *testing.T) {
	t.Parallel()
	resolve := func(s core.Secret) (string, error) {
		if s == "env:GONE" {
			return "", core.Errorf(core.Invalid, "env:GONE is not set")
		}
		return "a-value-of-some-length", nil
	}
	for name, tt := range map[string]struct {
		secret, header core.Secret
		want           string
	}{
		"all there":     {"env:A", "env:B", ""},
		"signing":       {"env:GONE", "env:B", "destinations.a: env:GONE is not set"},
		"header":        {"env:A", "env:GONE", "destinations.a: env:GONE is not set"},
		"none, literal": {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config(core.TypeHTTP)
			d := &c.Destinations[0]
			d.URL, d.Timeout = "https://crm.example.com/", time.Second
			d.Headers = []core.ConfigHeader{{Name: "x-team", Value: "billing"}}
			if tt.secret != "" {
				d.Secrets = []core.Secret{tt.secret}
				d.Headers = append(d.Headers, core.ConfigHeader{Name: "x-key", Secret: tt.header})
			}
			clock := core.ClockFunc(func() core.Millis { return 1 })
			s, err := Open(c, map[string]Opener{core.TypeHTTP: HTTP(resolve, clock)})
			if tt.want != "" {
				require.EqualError(t, err, tt.want)
				return
			}
			require.NoError(t, err)
			require.NotNil(t, s.Sender("a"))
			s.Close()
		})
	}
}

package lambdatest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// probe is the bootstrap of testdata/probe, built once for all tests.
var probe string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lambdatest-")
	if err != nil {
		panic(err)
	}
	probe = filepath.Join(dir, "bootstrap")
	if err := Build(context.Background(), "./testdata/probe", probe); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// report is what the probe says of itself.
type report struct {
	Text     string
	PID      int
	Served   int
	Ticks    int
	Request  string
	ARN      string
	Left     int64
	Function string
	Trace    string
}

func setup(t *testing.T, change func(*Settings)) *Function {
	t.Helper()
	s := Settings{Name: "probe", Bootstrap: probe, Root: t.TempDir(), Timeout: time.Minute, Concurrency: 4}
	if change != nil {
		change(&s)
	}
	f := New(s)
	t.Cleanup(f.Close)
	return f
}

func order(do, text string) []byte {
	return fmt.Appendf(nil, `{"do":%q,"text":%q}`, do, text)
}

// invoke has the probe do something that must succeed.
func invoke(t *testing.T, f *Function, do, text string) report {
	t.Helper()
	answer, err := f.Invoke(t.Context(), order(do, text))
	require.NoError(t, err, f.Logs())
	var r report
	require.NoError(t, json.Unmarshal(answer, &r), string(answer))
	return r
}

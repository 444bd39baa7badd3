package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"sluice/core"
	"sluice/functions/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestScripts runs testdata/scripts against a world of its own each. Besides
// testscript's own commands there are
//
//	sluice ARGS... [<FILE]    run the command line; $TTY=1 makes everything a terminal
//	exit CODE                 check the last sluice's exit code
//	world fill                put events and dead letters into the store
//	world log                 print requests and waits since the last log
//	world answer STATUS TYPE FILE [NAME=VALUE]   script the next answer
//	world refuse DESTINATION STATUS              make a destination refuse; 0: no more
//	world hangup              close the connection of the next request
//
// Golden files are written anew when UPDATE is set in the environment.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/scripts",
		UpdateScripts: os.Getenv("UPDATE") != "",
		Setup: func(env *testscript.Env) error {
			w, err := newWorld()
			if err != nil {
				return err
			}
			env.Defer(w.server.Close)
			env.Values[worldKey{}] = w
			env.Setenv("SLUICE_URL", w.server.URL)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"sluice": runSluice, "exit": checkExit, "world": tellWorld,
		},
	})
}

type worldKey struct{}

func worldOf(ts *testscript.TestScript) *world { return ts.Value(worldKey{}).(*world) }

func runSluice(ts *testscript.TestScript, neg bool, args []string) {
	w := worldOf(ts)
	var stdin io.Reader = strings.NewReader("")
	if n := len(args); n > 0 && strings.HasPrefix(args[n-1], "<") {
		stdin = strings.NewReader(ts.ReadFile(args[n-1][1:]))
		args = args[:n-1]
	}
	ts.Check(inDir(ts, args))
	var stdout, stderr bytes.Buffer
	p := &program{
		stdin: stdin, stdout: &stdout, stderr: &stderr, env: ts.Getenv,
		now: w.clock, wait: w.wait,
		terminal: func(rw any) bool { return rw != stdin && ts.Getenv("TTY") == "1" },
		serve:    fakeServe, stored: fakeStored,
	}
	code := p.run(context.Background(), args)
	hide := strings.NewReplacer(w.server.URL, "http://sluice", ts.MkAbs(".")+"/", "")
	fmt.Fprint(ts.Stdout(), hide.Replace(stdout.String()))
	fmt.Fprint(ts.Stderr(), hide.Replace(stderr.String()))
	ts.Setenv("code", strconv.Itoa(code))
	if (code != 0) != neg {
		ts.Fatalf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
	}
}

// inDir makes arguments that name files of the script absolute: scripts run
// side by side in one process, so none can have a working directory.
func inDir(ts *testscript.TestScript, args []string) error {
	for i, a := range args {
		if strings.HasPrefix(a, "./") {
			args[i] = ts.MkAbs(a)
		}
	}
	return nil
}

// takenAddress is where another listens already.
const takenAddress = "127.0.0.1:9999"

// fakeServe says how it was called, is ready, and ends.
func fakeServe(ctx context.Context, o wire.ServeOptions) error {
	o.Log.InfoContext(ctx, "serving", slog.String("data", o.Data), slog.String("listen", o.Listen), slog.Duration("grace", o.Grace))
	o.Log.DebugContext(ctx, "details")
	if o.Listen == takenAddress {
		return core.Wrap(core.Unavailable, syscall.EADDRINUSE, "cannot listen on %s", o.Listen)
	}
	o.Ready("http://" + o.Listen)
	return nil
}

func fakeStored(context.Context, string) (*holdings, error) {
	return &holdings{
		buffers: []core.BufferStats{
			{Buffer: "orders", Pending: 1}, {Buffer: "retired", Pending: 1200, Claimed: 34, Groups: 2}, {Buffer: "drained"},
			{Buffer: "retired~held", Pending: 5},
		},
		lettersOf: map[string]int64{"orders": 3, "drained": 2},
		lettersTo: map[string]int64{"console": 1, "slow": 4},
	}, nil
}

func checkExit(ts *testscript.TestScript, _ bool, args []string) {
	if got := ts.Getenv("code"); len(args) != 1 || got != args[0] {
		ts.Fatalf("exit code %s", got)
	}
}

func tellWorld(ts *testscript.TestScript, _ bool, args []string) {
	w := worldOf(ts)
	switch args[0] {
	case "fill":
		ts.Check(w.fill(context.Background()))
	case "log":
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, line := range w.log {
			fmt.Fprintln(ts.Stdout(), line)
		}
		w.log = nil
	case "answer":
		w.script(scriptedAnswer(ts, args[1:]))
	case "refuse":
		status, err := strconv.Atoi(args[2])
		ts.Check(err)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refuse[args[1]] = status
	case "hangup":
		w.script(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	default:
		ts.Fatalf("unknown: world %s", args[0])
	}
}

func scriptedAnswer(ts *testscript.TestScript, args []string) http.HandlerFunc {
	status, err := strconv.Atoi(args[0])
	ts.Check(err)
	body := ts.ReadFile(args[2])
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", args[1])
		for _, h := range args[3:] {
			name, value, _ := strings.Cut(h, "=")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

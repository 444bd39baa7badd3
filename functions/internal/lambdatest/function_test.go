package lambdatest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestInvoke(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	first := invoke(t, f, "", "a")
	require.Equal(t, "a", first.Text)
	require.Equal(t, 1, first.Served)
	require.Equal(t, "probe", first.Function)
	require.Equal(t, "arn:aws:lambda:us-east-1:123456789012:function:probe", first.ARN)
	require.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, first.Request)
	require.Regexp(t, `^Root=1-[0-9a-f]{8}-[0-9a-f]{24};Sampled=0$`, first.Trace)
	require.Positive(t, first.Left)
	require.LessOrEqual(t, first.Left, time.Minute.Milliseconds())

	second := invoke(t, f, "", "b")
	require.Equal(t, first.PID, second.PID, "an idle environment is used again")
	require.Equal(t, 2, second.Served)
	require.NotEqual(t, first.Request, second.Request)
	require.Len(t, f.Inits(), 1)
	require.Positive(t, f.Inits()[0])
}

// What fails in a handler leaves its process, what ends the process does not,
// and either way the next invocation is served.
func TestInvokeFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		do, text string
		kind     string // of the error
		detail   string
		survives bool
	}{
		{"fail", "no such thing", "errorString", "no such thing", true},
		{"large", "", ErrorTooLarge, "6291556", true},
		{"panic", "oops", "string", "oops", false},
		{"exit", "", ErrorExit, "exit status 4", false},
		{"hang", "", ErrorTimeout, "timed out after 2.00 seconds", false},
	}
	for _, tt := range tests {
		t.Run(tt.do, func(t *testing.T) {
			t.Parallel()
			f := setup(t, func(s *Settings) { s.Timeout, s.Concurrency = 2*time.Second, 1 })
			before := invoke(t, f, "", "")
			_, err := f.Invoke(t.Context(), order(tt.do, tt.text))
			require.Equal(t, tt.kind, Failed(err), "%v", err)
			require.ErrorContains(t, err, tt.detail)
			require.Equal(t, tt.survives, before.PID == invoke(t, f, "", "").PID)
		})
	}
}

func TestInvokeTooMuch(t *testing.T) {
	t.Parallel()
	_, err := setup(t, nil).Invoke(t.Context(), make([]byte, MaxPayload+1))
	require.Equal(t, ErrorRequest, Failed(err))
}

func TestInitFails(t *testing.T) {
	t.Parallel()
	f := setup(t, func(s *Settings) { s.Env = map[string]string{"PROBE": "exit"} })
	_, err := f.Invoke(t.Context(), order("", ""))
	require.Equal(t, ErrorExit, Failed(err))
	require.ErrorContains(t, err, "exit status 3")
	require.Empty(t, f.Inits())

	missing := setup(t, func(s *Settings) { s.Bootstrap = filepath.Join(s.Root, "bootstrap") })
	_, err = missing.Invoke(t.Context(), order("", ""))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// The pool grows to its maximum; what is beyond waits for a free environment.
func TestPool(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-release
	}))
	t.Cleanup(service.Close)
	f := setup(t, func(s *Settings) {
		s.Concurrency = 3
		s.Services = map[string]string{"dynamodb": service.URL}
	})
	var calls sync.WaitGroup
	var mu sync.Mutex
	processes := map[int]bool{}
	for range 6 {
		calls.Go(func() {
			r := invoke(t, f, "call", "dynamodb GetItem")
			mu.Lock()
			defer mu.Unlock()
			processes[r.PID] = true
		})
	}
	for range 3 {
		<-entered
	}
	select {
	case <-entered:
		require.Fail(t, "more than three invocations at a time")
	default:
	}
	go func() {
		for range 3 {
			<-entered
		}
	}()
	close(release)
	calls.Wait()
	require.Len(t, processes, 3)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := setup(t, nil).Invoke(ctx, order("", ""))
	require.ErrorIs(t, err, context.Canceled)
}

// An idle process stands still: its runtime threads are stopped.
func TestFrozen(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	r := invoke(t, f, "", "")
	e := <-f.idle // it has asked for work again
	require.Eventually(t, func() bool {
		state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(r.PID)).Output()
		return err == nil && strings.HasPrefix(string(state), "T")
	}, time.Minute, time.Millisecond)
	f.idle <- e
	require.Equal(t, r.PID, invoke(t, f, "", "").PID, "and goes on")
}

func TestKill(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-release
	}))
	t.Cleanup(service.Close)
	t.Cleanup(func() { close(release) })
	f := setup(t, func(s *Settings) { s.Concurrency, s.Services = 1, map[string]string{"sqs": service.URL} })
	require.Zero(t, f.Kill())
	idle := invoke(t, f, "", "")
	require.Equal(t, 1, f.Kill())
	require.NotEqual(t, idle.PID, invoke(t, f, "", "").PID)
	failed := make(chan error, 1)
	go func() {
		_, err := f.Invoke(t.Context(), order("call", "sqs SendMessage"))
		failed <- err
	}()
	<-entered
	require.Equal(t, 1, f.Kill())
	require.Equal(t, ErrorExit, Failed(<-failed))
	f.Close()
	_, err := f.Invoke(t.Context(), order("", ""))
	require.ErrorContains(t, err, "closed")
}

func TestHook(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fate  Fate
		calls int32  // that the service has heard of
		text  string // what the function has got; "": it has died
		fails string // type of the error
	}{
		{"pass", Pass, 1, "418 I'm a teapot short and stout", ""},
		{"kill before", KillBefore, 0, "", ErrorExit},
		{"kill after", KillAfter, 1, "", ErrorExit},
		{"lose the answer", LoseAnswer, 1, "", "Error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var heard []string
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				heard = append(heard, r.Method+" "+r.URL.Path+" "+r.Header.Get("X-Amz-Target"))
				w.WriteHeader(http.StatusTeapot)
				_, _ = w.Write([]byte("short and stout"))
			}))
			t.Cleanup(service.Close)
			var seen []string
			f := setup(t, func(s *Settings) {
				s.Services = map[string]string{"dynamodb": service.URL}
				s.Hook = func(c Call) Fate {
					seen = append(seen, c.String())
					return tt.fate
				}
			})
			answer, err := f.Invoke(t.Context(), order("call", "dynamodb UpdateItem"))
			require.Equal(t, tt.fails, Failed(err), "%v", err)
			require.Contains(t, string(answer), tt.text)
			require.Equal(t, []string{"probe: dynamodb UpdateItem 1"}, seen)
			if tt.calls == 0 {
				require.Empty(t, heard)
				return
			}
			require.Equal(t, []string{"POST / Service_2012.UpdateItem"}, heard)
		})
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	invoke(t, f, "write", "to be kept")
	f.Close()
	require.Contains(t, f.Logs(), "to be kept")
}

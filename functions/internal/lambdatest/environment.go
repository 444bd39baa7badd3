package lambdatest

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// environment is one process of a function, with the runtime API and the
// proxies that are its own.
//
//	start ─▶ GET next ─▶ idle, stopped ─▶ invocation ─▶ POST response | error ─▶ GET next …
type environment struct {
	f      *Function
	cmd    *exec.Cmd
	server *http.Server
	url    string
	begun  time.Time
	work   chan *invocation
	served chan struct{} // closed when the server has ended
	dead   chan struct{} // closed when the process has ended, too

	mu      sync.Mutex
	ready   bool        // it has asked for work
	stopped bool        // it is idle, and its process stopped
	killed  bool        // by us
	current *invocation // nil: none
	fault   *Error      // of its initialisation
	calls   map[string]int
}

// start starts a process.
func start(ctx context.Context, f *Function) (*environment, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.WithoutCancel(ctx), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &environment{
		f: f, url: "http://" + l.Addr().String(),
		work:   make(chan *invocation),
		served: make(chan struct{}),
		dead:   make(chan struct{}),
		calls:  make(map[string]int),
	}
	e.cmd = exec.Command(f.Bootstrap) //nolint:noctx,gosec // it ends by kill; what it runs is the test's own
	e.cmd.Dir = f.Root
	e.cmd.Env = e.variables(l.Addr().String())
	e.cmd.Stdout, e.cmd.Stderr = &f.logs, &f.logs
	// In a group of its own: should the test end without killing it, the kernel
	// wakes and ends it, stopped as it may be.
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	e.server = &http.Server{Handler: e.handler(), ReadHeaderTimeout: time.Minute}
	e.begun = time.Now()
	if err := e.cmd.Start(); err != nil {
		_ = l.Close()
		return nil, err
	}
	go func() {
		defer close(e.served)
		_ = e.server.Serve(l) // until watch closes it
	}()
	go e.watch()
	return e, nil
}

// variables is the process's whole environment, as Lambda sets it.
func (e *environment) variables(api string) []string {
	f := e.f
	set := map[string]string{
		"AWS_LAMBDA_RUNTIME_API":          api,
		"AWS_LAMBDA_FUNCTION_NAME":        f.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + f.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      "2026/01/01/[$LATEST]" + strings.ReplaceAll(api, ":", "-"),
		"AWS_REGION":                      region,
		"AWS_DEFAULT_REGION":              region,
		"AWS_ACCESS_KEY_ID":               "test",
		"AWS_SECRET_ACCESS_KEY":           "test",
		"AWS_SESSION_TOKEN":               "test",
		"LAMBDA_TASK_ROOT":                f.Root,
		"LAMBDA_RUNTIME_DIR":              "/var/runtime",
		"LANG":                            "en_US.UTF-8",
		"PATH":                            "/usr/local/bin:/usr/bin/:/bin",
		"TZ":                              ":UTC",
		"_HANDLER":                        "bootstrap",
	}
	for name := range f.Services {
		set["AWS_ENDPOINT_URL_"+strings.ToUpper(name)] = e.url + proxyPath + name
	}
	maps.Copy(set, f.Env)
	list := make([]string, 0, len(set))
	for name, value := range set {
		list = append(list, name+"="+value)
	}
	return list
}

// watch waits for the process's end, and ends what belongs to it.
func (e *environment) watch() {
	_ = e.cmd.Wait() // how it ended is in ProcessState
	_ = e.server.Close()
	<-e.served
	e.f.ended(e)
	close(e.dead)
}

// shoot ends the process at once: it does nothing more after this.
func (e *environment) shoot() {
	e.mu.Lock()
	e.killed = true
	e.mu.Unlock()
	_ = e.cmd.Process.Kill()
}

// kill ends the process at once, and waits for its end.
func (e *environment) kill() {
	e.shoot()
	<-e.dead
}

// initError is why the process has ended before it asked for work; nil: it
// has not, or it was killed by us.
func (e *environment) initError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.fault != nil:
		return e.fault
	case e.ready:
		return nil
	case e.killed:
		return &Error{ErrorExit, e.f.Name + " was killed amid its start"}
	}
	return &Error{ErrorExit, fmt.Sprintf("%s ended at its start: %v", e.f.Name, e.cmd.ProcessState)}
}

// begin hands an idle environment an invocation; false: it has died.
func (e *environment) begin(inv *invocation) bool {
	e.mu.Lock()
	if e.stopped {
		e.stopped = false
		_ = e.cmd.Process.Signal(syscall.SIGCONT)
	}
	e.mu.Unlock()
	select {
	case e.work <- inv:
		return true
	case <-e.dead:
		return false
	}
}

// finish waits for the invocation's answer.
func (e *environment) finish(ctx context.Context, inv *invocation) ([]byte, error) {
	timeout := time.NewTimer(time.Until(inv.deadline))
	defer timeout.Stop()
	select {
	case a := <-inv.answer:
		select {
		case <-inv.over: // so that a call that follows finds the environment idle
		case <-e.dead:
		}
		return a.body, a.err
	case <-e.dead:
		select {
		case a := <-inv.answer: // its last act
			return a.body, a.err
		default:
			return nil, &Error{ErrorExit, fmt.Sprintf("%s ended amid an invocation: %v", e.f.Name, e.cmd.ProcessState)}
		}
	case <-timeout.C:
		e.kill()
		return nil, &Error{ErrorTimeout, fmt.Sprintf("Task timed out after %.2f seconds", e.f.Timeout.Seconds())}
	case <-ctx.Done(): // the invocation goes on without its caller
		return nil, ctx.Err()
	}
}

package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server under measurement, in a process of its own.
type process struct {
	name  string
	addr  string
	log   string // file with what it printed
	cmd   *exec.Cmd
	begun time.Time
	ended chan struct{}
	err   error // of its end; read after ended
}

// Waits that only a fault uses up.
const (
	readyTimeout = 60 * time.Second
	stopTimeout  = 20 * time.Second
)

// launch starts a program that serves on addr; what it prints is added to the
// file log. It is killed when ctx ends.
func launch(ctx context.Context, name, addr, log, program string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &process{name: name, addr: addr, log: log, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, program, args...) //nolint:gosec // the programs to measure are the operator's choice
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.begun = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// url is the address of a path of the server.
func (p *process) url(path string) string { return "http://" + p.addr + path }

// ready polls the server until it answers /readyz with a 2xx, and returns how
// long that took since its start.
func (p *process) ready(ctx context.Context) (time.Duration, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: time.Second}
	for {
		if answers(ctx, client, p.url("/readyz")) {
			return time.Since(p.begun), nil
		}
		if p.over() {
			return 0, p.fault("ended before it was ready")
		}
		if time.Since(p.begun) > readyTimeout {
			return 0, p.fault("was not ready in time")
		}
		if !pause(ctx, time.Millisecond) {
			return 0, ctx.Err()
		}
	}
}

// over reports whether the process has ended.
func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func answers(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // the status is all that counts
	return resp.StatusCode/100 == 2
}

// fault is an error with the last lines that the server printed.
func (p *process) fault(what string) error {
	text, err := os.ReadFile(p.log)
	if err != nil {
		text = []byte(err.Error())
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Errorf("%s %s; it printed:\n\t%s", p.name, what, strings.Join(lines[max(0, len(lines)-8):], "\n\t"))
}

// kill ends the process with no warning.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
}

// stop asks the process to end, and makes sure that it does.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	t := time.NewTimer(stopTimeout)
	defer t.Stop()
	select {
	case <-p.ended:
	case <-t.C:
		p.kill()
	}
}

// anonymous is the process's resident memory but for file pages, in bytes.
func (p *process) anonymous() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("no RssAnon in /proc: Linux 4.5 or later is needed to measure memory")
}

// freeAddr is a loopback address that nothing listens on.
func freeAddr(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

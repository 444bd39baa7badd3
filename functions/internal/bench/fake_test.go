package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// faultEnv makes the fake wrong in one way; see the faults.
const faultEnv = "SLUICE_BENCH_FAULT"

// What a fake can do wrong.
const (
	faultForgets = "forgets" // keeps nothing over a restart
	faultMixes   = "mixes"   // one group for all keys
	faultRenames = "renames" // a batch has another id on the next start
	faultEarly   = "early"   // batches leave before their deadline
	faultDrops   = "drops"   // one event in a thousand is never delivered
	faultRefuses = "refuses" // answers 503 to everything
)

// fake is a buffer of a page, durable against a kill of its process: the least
// that the bench can measure.
type fake struct {
	sink  string
	items int
	idle  time.Duration
	wait  time.Duration
	fault string

	mu     sync.Mutex
	log    *os.File
	groups map[uint64]*fakeGroup
	events int
}

type fakeGroup struct {
	sending sync.Mutex // one batch at a time, so that they stay in order

	lines []string
	first time.Time
	due   time.Time
	timer *time.Timer
}

// record is a line of the fake's log.
type record struct {
	Events []string `json:"events,omitempty"` // accepted
	Batch  string   `json:"batch,omitempty"`  // of so many events, which leave their group
	Lines  []string `json:"lines,omitempty"`
	Done   string   `json:"done,omitempty"` // a batch that has been delivered
}

var setting = regexp.MustCompile(`(url|maxItems|idleTimeoutMs|maxWaitFromFirstMs): ([^,}\s]+)`)

// serveFake is the fake's main: serve --config F --data D --listen A.
func serveFake(args []string) error {
	config, data, listen := args[2], args[4], args[6]
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	f := &fake{groups: map[uint64]*fakeGroup{}, fault: os.Getenv(faultEnv)}
	for _, m := range setting.FindAllStringSubmatch(string(text), -1) {
		n, _ := strconv.Atoi(m[2])
		switch m[1] {
		case "url":
			f.sink = m[2]
		case "maxItems":
			f.items = n
		case "idleTimeoutMs":
			f.idle = time.Duration(n) * time.Millisecond
		case "maxWaitFromFirstMs":
			f.wait = time.Duration(n) * time.Millisecond
		}
	}
	if err := f.open(data); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/sources/in", f.accept)
	mux.HandleFunc("POST /v1/sources/in/batch", f.accept)
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /metrics", f.metrics)
	server := &http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: time.Second}
	return server.ListenAndServe()
}

// open reads the log, takes up again what had not been delivered, and goes on
// writing at its end.
func (f *fake) open(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	name := filepath.Join(dir, "log")
	old, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if f.log, err = os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return err
	}
	whole := bytes.LastIndexByte(old, '\n') + 1 // a kill may tear the last line, which was then not answered
	if err := f.log.Truncate(int64(whole)); err != nil {
		return err
	}
	pending, batches := f.replay(old[:whole])
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, lines := range batches {
		if f.fault == faultRenames {
			id += "x"
		}
		go f.send(id, "idle", lines)
	}
	for _, line := range pending {
		f.put(line)
	}
	return nil
}

// replay is the log's events in no batch, and its batches that are not done.
func (f *fake) replay(log []byte) (pending []string, batches map[string][]string) {
	batches = map[string][]string{}
	if f.fault == faultForgets {
		return nil, batches
	}
	batched := map[string]bool{}
	s := bufio.NewScanner(bytes.NewReader(log))
	s.Buffer(nil, 64<<20)
	for s.Scan() {
		var r record
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			panic(err)
		}
		pending = append(pending, r.Events...)
		for _, line := range r.Lines {
			batched[line] = true
		}
		if r.Batch != "" {
			batches[r.Batch] = r.Lines
		}
		delete(batches, r.Done)
	}
	var left []string
	for _, line := range pending {
		if !batched[line] {
			left = append(left, line)
		}
	}
	return left, batches
}

func (f *fake) accept(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || f.fault == faultRefuses {
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		lines = append(lines, string(line))
	}
	f.write(record{Events: lines})
	for _, line := range lines {
		f.put(line)
	}
	w.WriteHeader(http.StatusAccepted)
}

func (f *fake) write(r record) {
	line, err := json.Marshal(r)
	if err == nil {
		_, err = f.log.Write(append(line, '\n'))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// put adds an event to its group. The caller holds mu.
func (f *fake) put(line string) {
	e, _ := readEvent([]byte(line))
	f.events++
	if f.fault == faultDrops && e.id%1000 == 7 {
		return
	}
	if f.fault == faultMixes {
		e.key = 0
	}
	g := f.groups[e.key]
	if g == nil {
		g = &fakeGroup{}
		f.groups[e.key] = g
		g.timer = time.AfterFunc(time.Hour, func() { f.close(g, "idle") })
	}
	g.lines = append(g.lines, line)
	if len(g.lines) == 1 {
		g.first = time.Now()
	}
	if len(g.lines) == f.items {
		go f.close(g, "items")
	}
	after := min(f.idle, time.Until(g.first.Add(f.wait)))
	if f.fault == faultEarly {
		after /= 2
	}
	g.due = time.Now().Add(after)
	g.timer.Reset(after)
}

// close makes a batch of a group and sends it.
func (f *fake) close(g *fakeGroup, reason string) {
	g.sending.Lock()
	defer g.sending.Unlock()
	f.mu.Lock()
	lines := g.lines
	if len(lines) == 0 || reason == "idle" && time.Now().Before(g.due) { // an event came in between
		f.mu.Unlock()
		return
	}
	g.lines = nil
	g.timer.Stop()
	first, _ := readEvent([]byte(lines[0]))
	id := fmt.Sprintf("batch-%d", first.id)
	f.write(record{Batch: id, Lines: lines})
	f.events -= len(lines)
	f.mu.Unlock()
	f.send(id, reason, lines)
}

// send delivers a batch, again until it is taken.
func (f *fake) send(id, reason string, lines []string) {
	var body bytes.Buffer
	for _, line := range lines {
		body.WriteString(line + "\n")
	}
	for {
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, f.sink, bytes.NewReader(body.Bytes()))
		req.Header.Set("webhook-id", id)
		req.Header.Set("sluice-reason", reason)
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			f.mu.Lock()
			f.write(record{Done: id})
			f.mu.Unlock()
			return
		}
		pause(context.Background(), 10*time.Millisecond)
	}
}

func (f *fake) metrics(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fmt.Fprintf(w, "sluice_groups{buffer=\"bench\"} %d\nsluice_pending_items{buffer=\"bench\"} %d\n", len(f.groups), f.events)
}

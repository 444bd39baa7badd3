package lambdatest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

const (
	region  = "us-east-1"
	account = "123456789012"
)

// invocation is one call of a function.
type invocation struct {
	id       string
	payload  []byte
	deadline time.Time
	answer   chan answer   // takes one
	over     chan struct{} // closed when its process asks for the next one
}

type answer struct {
	body []byte
	err  error
}

func newInvocation(payload []byte, timeout time.Duration) *invocation {
	return &invocation{id: uuid(), payload: payload, deadline: time.Now().Add(timeout), answer: make(chan answer, 1), over: make(chan struct{})}
}

// uuid is a random id in the form of AWS's request ids.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// handler is the environment's runtime API beside its proxies.
func (e *environment) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", e.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", e.response)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", e.invocationError)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", e.initFault)
	for name, address := range e.f.Services {
		h := e.proxy(name, address)
		mux.Handle(proxyPath+name, h) // some clients leave the last slash out
		mux.Handle(proxyPath+name+"/", h)
	}
	return mux
}

// next makes the environment idle, and answers with the next invocation.
func (e *environment) next(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	if !e.ready {
		e.ready = true
		e.f.ready(time.Since(e.begun))
	}
	last := e.current
	e.current = nil
	e.stopped = true
	_ = e.cmd.Process.Signal(syscall.SIGSTOP) // frozen until there is work
	e.mu.Unlock()
	e.f.idle <- e // has room for every environment
	if last != nil {
		close(last.over)
	}
	var inv *invocation
	select {
	case inv = <-e.work:
	case <-r.Context().Done():
		return
	}
	e.mu.Lock()
	e.current = inv
	clear(e.calls)
	e.mu.Unlock()
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(inv.deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:"+region+":"+account+":function:"+e.f.Name)
	h.Set("Lambda-Runtime-Trace-Id", "Root=1-"+inv.id[:8]+"-"+inv.id[9:13]+inv.id[14:18]+inv.id[19:23]+inv.id[24:36]+";Sampled=0")
	_, _ = w.Write(inv.payload) // a process that has ended is noticed elsewhere
}

func (e *environment) response(w http.ResponseWriter, r *http.Request) {
	body, ok := e.receive(w, r)
	if !ok {
		return
	}
	if len(body) > MaxPayload {
		e.settle(w, r, answer{err: &Error{ErrorTooLarge, fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", MaxPayload)}})
		return
	}
	e.settle(w, r, answer{body: body})
}

func (e *environment) invocationError(w http.ResponseWriter, r *http.Request) {
	body, ok := e.receive(w, r)
	if ok {
		e.settle(w, r, answer{err: faultOf(body)})
	}
}

// initFault notes why the process will end before it asks for work.
func (e *environment) initFault(w http.ResponseWriter, r *http.Request) {
	body, ok := e.receive(w, r)
	if !ok {
		return
	}
	e.mu.Lock()
	e.fault = faultOf(body)
	e.mu.Unlock()
	accept(w)
}

// receive is the whole body of a request.
func (*environment) receive(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body ended early", http.StatusBadRequest)
		return nil, false
	}
	return body, true
}

// settle answers the present invocation's caller.
func (e *environment) settle(w http.ResponseWriter, r *http.Request, a answer) {
	e.mu.Lock()
	inv := e.current
	e.mu.Unlock()
	if inv == nil || inv.id != r.PathValue("id") {
		http.Error(w, `{"errorMessage":"Invalid request ID","errorType":"InvalidRequestID"}`, http.StatusBadRequest)
		return
	}
	select {
	case inv.answer <- a:
		accept(w)
	default:
		http.Error(w, `{"errorMessage":"State transition is not allowed","errorType":"InvalidStateTransition"}`, http.StatusForbidden)
	}
}

func accept(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
}

// faultOf reads the error that a function reports.
func faultOf(body []byte) *Error {
	var e Error
	if err := json.Unmarshal(body, &e); err != nil || e.Type == "" {
		e = Error{"Runtime.Unknown", string(body)}
	}
	return &e
}

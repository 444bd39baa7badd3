package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sluice/core"
	"sluice/functions/internal/api"
	"sluice/functions/internal/language"
)

type routeCommand struct {
	configFlag

	Source string `arg:"" help:"The source."`
	File   string `arg:"" help:"The event; standard input without it." optional:""`

	ContentType string   `help:"The event's content type (default: what it looks like)." placeholder:"TYPE"`
	Header      []string `help:"A header of the event; may be given again and again."    placeholder:"NAME=VALUE" sep:"none"`
	JSON        bool     `help:"Print JSON."                                             name:"json"`
}

// Help shows examples.
func (*routeCommand) Help() string {
	return `The event goes the whole way that a posted one would, up to the store, which only looks on. Who may send to the source is not checked. Exits 1 when the event would be refused.

Examples:

    echo '{"customer_id": 7}' | sluice route demo
    sluice route orders event.json --header webhook-id=evt_1 --config prod.yaml`
}

// AfterApply checks what the grammar cannot say.
func (c *routeCommand) AfterApply() error {
	for _, h := range c.Header {
		if name, _, ok := strings.Cut(h, "="); !ok || name == "" {
			return fmt.Errorf("--header %q: must be NAME=VALUE", h)
		}
	}
	return checkName("source", c.Source)
}

// Run explains.
func (c *routeCommand) Run(ctx context.Context, p *program) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	if names := sources(cfg); !slices.Contains(names, c.Source) {
		return unknown("source", c.Source, names)
	}
	in, _, err := p.open(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	body, err := readEvent(in)
	if err != nil {
		return err
	}
	e, err := c.explain(ctx, p, cfg, body)
	if err != nil {
		return err
	}
	if c.JSON {
		err = p.printJSON(e)
	} else {
		e.show(p)
	}
	if err == nil && e.Refused != nil {
		return errFailed
	}
	return err
}

// sources are the names of those that a configuration has.
func sources(c *core.Config) (names []string) {
	for i := range c.Sources {
		names = append(names, c.Sources[i].Name)
	}
	return names
}

// explanation is what would become of an event.
type explanation struct {
	Source      string       `json:"source"`
	ID          string       `json:"id"` // "": a new one would be made, or it is its message's
	ContentType string       `json:"contentType"`
	Bytes       int64        `json:"bytes"`
	Refused     *refused     `json:"refused"`           // null: it would be accepted
	Waits       int64        `json:"waitsMs,omitempty"` // for the outcome, so long at most
	Queue       bool         `json:"queue,omitempty"`   // the source is one
	Routes      []routedThen `json:"routes"`            // none, though accepted: it is unrouted

	messageGroup string // of a queue: whether it makes the group, where nothing else does
}

// refused is why an event would not be accepted.
type refused struct {
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// routedThen is one buffer that reads the source, and what would happen to the
// event there. Byte sizes are in bytes, times in milliseconds. If the event is
// dropped, nothing else would.
type routedThen struct {
	Buffer      string         `json:"buffer"`
	Dropped     string         `json:"dropped,omitempty"`    // why the buffer does not get it
	DeadLetter  string         `json:"deadLetter,omitempty"` // why it becomes one at once
	Filter      string         `json:"filter,omitempty"`
	Transform   string         `json:"transform,omitempty"`
	Becomes     string         `json:"becomes,omitempty"`  // what the transform makes of it
	Shadow      bool           `json:"shadow,omitempty"`   // it is a copy
	Sample      float64        `json:"sample,omitempty"`   // of a shadow: the share that it gets
	DedupeMs    int64          `json:"dedupeMs,omitempty"` // a double of one within so long is dropped
	HeldUntil   string         `json:"heldUntil,omitempty"`
	Group       string         `json:"group"`
	GroupBy     string         `json:"groupBy"`
	Ordered     bool           `json:"ordered"`
	OrderKey    string         `json:"orderKey,omitempty"`
	Window      *windowThen    `json:"window,omitempty"`       // the group is one
	FlushEvery  int64          `json:"flushEveryMs,omitempty"` // it leaves by flushes alone
	Conditions  *conditions    `json:"conditions,omitempty"`
	Destination *destinationTo `json:"destination,omitempty"`
	Room        *room          `json:"room,omitempty"`

	MessageGroup string `json:"messageGroup,omitempty"` // the group is its message's: certain, or possible if it is not known whether the queue is FIFO
}

// Whether a group is a message's.
const (
	certain  = "certain"
	possible = "possible"
)

// windowThen is the time window that the event counts in. Times are RFC 3339.
type windowThen struct {
	Start   string   `json:"start"`
	End     string   `json:"end"`
	ShipsAt string   `json:"shipsAt"` // the end and the grace
	GraceMs int64    `json:"graceMs"`
	Time    string   `json:"time,omitempty"` // template; "": the time of receipt
	Late    bool     `json:"late,omitempty"` // its own counts as shipped: it is moved on into this one
	Row     string   `json:"row"`            // key
	Fold    []string `json:"fold,omitempty"` // the row's columns
}

// room is how many events may wait; 0: no limit.
type room struct {
	Buffer int64 `json:"buffer,omitempty"`
	Group  int   `json:"group,omitempty"`
}

type conditions struct {
	MaxItems           int   `json:"maxItems"`
	MaxBytes           int64 `json:"maxBytes"`
	IdleTimeoutMs      int64 `json:"idleTimeoutMs"`
	MaxWaitFromFirstMs int64 `json:"maxWaitFromFirstMs"`
}

// onlooker is a store that takes nothing: it remembers what it was asked to take.
type onlooker struct {
	core.Store // no other method is called on an event's way in

	parts   []core.Part
	letters []core.DeadLetter
	failed  []string // shadow buffers that fail on the event
}

// Append remembers the parts.
func (s *onlooker) Append(_ context.Context, _ core.Millis, parts []core.Part) ([]core.Appended, error) {
	s.parts = append(s.parts, parts...)
	done := make([]core.Appended, len(parts))
	for i := range done {
		done[i].First = 1 // all is stored
	}
	return done, nil
}

// Put remembers dead letters.
func (s *onlooker) Put(_ context.Context, letters []core.DeadLetter) error {
	s.letters = append(s.letters, letters...)
	return nil
}

// recorder is the way in, which also remembers what it was given.
type recorder struct {
	*core.Ingester

	events []core.Event
}

// Ingest remembers the events as they came, without the ids that are made.
func (r *recorder) Ingest(ctx context.Context, source string, events []core.Event, mayWait ...func() bool) (core.Receipt, error) {
	r.events = append(r.events, events...)
	return r.Ingester.Ingest(ctx, source, events, mayWait...)
}

// explain posts the event to the API over a store that only looks on, so that
// the answer is the very one that the event would get.
func (c *routeCommand) explain(ctx context.Context, p *program, cfg *core.Config, body []byte) (*explanation, error) {
	catalog, err := core.NewCatalog(openedUp(cfg), language.JQ)
	if err != nil {
		return nil, err
	}
	clock := core.ClockFunc(func() core.Millis { return core.At(p.now()) })
	store := &onlooker{}
	in := &recorder{Ingester: core.NewIngester(catalog, core.Ports{
		Store: store, DeadLetters: store, Clock: clock, IDs: core.IDsFunc(func() string { return newID }),
		Observer: &core.Observer{Shadow: func(buffer, _ string, _ int) { store.failed = append(store.failed, buffer) }},
	})}
	handler, err := api.New(api.Backend{Catalog: catalog, Ingester: in}, api.Options{Clock: clock})
	if err != nil {
		return nil, err
	}
	r, err := c.request(ctx, p, body)
	if err != nil {
		return nil, err
	}
	answer := &answer{header: http.Header{}}
	handler.ServeHTTP(answer, r)
	e := &explanation{Source: c.Source, ContentType: r.Header.Get("Content-Type"), Bytes: int64(len(body)), Routes: []routedThen{}}
	for i := range in.events {
		e.ID, e.ContentType, e.Bytes = in.events[i].ID, in.events[i].ContentType, in.events[i].Size()
	}
	e.source(cfg)
	if answer.status != http.StatusAccepted {
		e.Refused = answer.refused()
		return e, nil
	}
	e.routes(catalog, store, clock.Now())
	return e, nil
}

// newID stands for an id that would be made; a group key may show it.
const newID = "<new id>"

// request is the event as a client would post it.
func (c *routeCommand) request(ctx context.Context, p *program, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/v1/sources/"+c.Source, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.RemoteAddr = "127.0.0.1:1"
	for _, h := range c.Header {
		name, value, _ := strings.Cut(h, "=")
		r.Header.Add(name, value)
	}
	switch {
	case c.ContentType != "":
		r.Header.Set("Content-Type", c.ContentType)
	case r.Header.Get("Content-Type") == "":
		r.Header.Set("Content-Type", p.guess(body))
	}
	return r, nil
}

// openedUp is a configuration in which anybody may send, so that no secret is
// needed to explain it, and nobody waits.
func openedUp(c *core.Config) *core.Config {
	open := *c
	open.Control = core.Control{}
	open.Sources = make([]core.Source, len(c.Sources))
	for i := range c.Sources {
		s := &open.Sources[i]
		*s = c.Sources[i]
		s.Type, s.Queue, s.Auth, s.AckDelivered = core.TypeHTTP, "", &core.Auth{Open: true}, false
	}
	return &open
}

// answer is what the API answers.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements [http.ResponseWriter].
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

func (a *answer) refused() *refused {
	var problem struct {
		Detail string `json:"detail"`
	}
	if err := json.Unmarshal(a.body.Bytes(), &problem); err != nil {
		problem.Detail = http.StatusText(a.status)
	}
	return &refused{Status: a.status, Detail: problem.Detail}
}

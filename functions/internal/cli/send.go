package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"

	"sluice/core"
	"sluice/core/jsonbody"
	"sluice/core/reader"
	"sluice/functions/internal/api"
)

const (
	// maxEvent bounds one event that is sent, in bytes; no source takes more.
	maxEvent = 10 << 20
	// patience is how long one request is refused for want of room before the
	// command gives up.
	patience = 5 * time.Minute
	// firstPause and longestPause bound the waits between refusals that do not
	// say when to come again.
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

type sendCommand struct {
	remote

	Source string `arg:"" help:"The source."`
	File   string `arg:"" help:"What to send; standard input without it." optional:""`

	Batch       bool   `help:"Send NDJSON: each line is an event; in requests of at most 1,000 lines and 1 MiB."`
	ContentType string `help:"The event's content type (default: what it looks like)."                           placeholder:"TYPE"`
	ID          string `help:"The event's id; with --batch its begin: ids are ID-<request>-<event>."             name:"id"`
}

// Help shows examples.
func (*sendCommand) Help() string {
	return `Without --batch the whole file is one event. A request that is refused for want of room is sent again, after as long as the server says, under the same ids.

Examples:

    echo '{"customer_id": 7, "total": 12}' | sluice send demo
    sluice send demo order.json --id order-4711
    sluice send demo --batch events.ndjson`
}

// AfterApply checks what the grammar cannot say.
func (c *sendCommand) AfterApply() error {
	if c.Batch && c.ContentType != "" {
		return errors.New("--batch and --content-type can't be used together: a batch is NDJSON")
	}
	return checkName("source", c.Source)
}

// Run sends the event or the batch.
func (c *sendCommand) Run(ctx context.Context, p *program) error {
	if c.ID == "" {
		c.ID = ulid.Make().String()
	}
	cl, err := p.dial(&c.remote)
	if err != nil {
		return err
	}
	defer cl.close()
	in, total, err := p.open(ctx, c.File)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	s := &sending{program: p, client: cl, source: c.Source}
	if c.Batch {
		return s.batch(ctx, c.ID, in, total)
	}
	return s.single(ctx, c.ID, c.ContentType, in)
}

var namePattern = regexp.MustCompile(core.NamePattern)

// checkName refuses a name that nothing can have.
func checkName(what, name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("%q is not the name of a %s: names have 1 to 63 of a-z, 0-9 and -", name, what)
	}
	return nil
}

// sending is one run of the send command.
type sending struct {
	*program
	client *client
	source string
	shown  *bar // of a batch; nil: none
	waits  bool // it has been said that it does
}

func (s *sending) single(ctx context.Context, id, contentType string, in io.Reader) error {
	body, err := readEvent(in)
	if err != nil {
		return err
	}
	if contentType == "" {
		if len(body) == 0 {
			return errors.New("there is nothing to send; if an empty event is meant, give its --content-type")
		}
		contentType = s.guess(body)
	}
	a, err := s.post(ctx, call{path: []string{"v1", "sources", s.source}, body: body}, contentType, id)
	if err != nil {
		return err
	}
	event := "event " + clean(first(a.IDs, id))
	switch {
	case a.Unrouted > 0:
		fmt.Fprintf(s.stdout, "the event goes nowhere: no buffer reads source %s\n", s.source)
	case a.Filtered > 0:
		fmt.Fprintf(s.stdout, "%s accepted, and dropped by filters\n", event)
	case a.Duplicates > 0:
		fmt.Fprintf(s.stdout, "%s accepted before, and dropped\n", event)
	case a.Status == string(core.StatusDeadLettered):
		return fmt.Errorf("%s accepted, but it was not delivered: it is a dead letter now", event)
	case a.Status != "":
		fmt.Fprintf(s.stdout, "%s accepted, %s\n", event, clean(a.Status))
	default:
		fmt.Fprintf(s.stdout, "%s accepted\n", event)
	}
	return nil
}

func first(ids []string, otherwise string) string {
	if len(ids) == 0 {
		return otherwise
	}
	return ids[0]
}

// readEvent reads one event whole.
func readEvent(in io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(in, maxEvent+1))
	if err == nil && len(body) > maxEvent {
		err = fmt.Errorf("the event has more than %s, which no source takes", size(maxEvent))
	}
	return body, err
}

// guess is the content type that a body looks like. It warns of what seems to
// be meant as JSON, but is none: an endpoint may read it otherwise.
func (p *program) guess(body []byte) string {
	kind := guessType(body)
	if begin := bytes.TrimLeft(body, " \t\r\n"); len(begin) > 0 && (begin[0] == '{' || begin[0] == '[') {
		if err := reader.Check(body); err != nil {
			fmt.Fprintf(p.stderr, "%s taken as %s: %s\n", p.paint(p.stderr).yellow("warning:"), kind, clean(err.Error()))
		}
	}
	return kind
}

// guessType is the content type that a body looks like.
func guessType(body []byte) string {
	switch {
	case jsonbody.Valid(body):
		return "application/json"
	case utf8.Valid(body):
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// post makes a request that stores events, again and again while it is
// refused for want of room.
func (s *sending) post(ctx context.Context, q call, contentType, key string) (api.Accepted, error) {
	q.method = http.MethodPost
	q.header = http.Header{"Content-Type": {contentType}, "Idempotency-Key": {key}}
	until := s.now().Add(patience)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		var a api.Accepted
		err := s.client.do(ctx, q, &a)
		refused, ok := errors.AsType[*answerError](err)
		switch {
		case !ok:
			return a, err
		case refused.status == http.StatusBadGateway && json.Unmarshal(refused.body, &a) == nil && a.Status != "":
			return a, nil // it was taken: this is what came of it
		case !refused.full():
			return a, err
		}
		d := refused.retryAfter
		if d == 0 {
			d = pause
		}
		if s.now().Add(d).After(until) {
			return a, fmt.Errorf("gave up after %s: %w", age(patience), err)
		}
		if !s.waits {
			s.waits = true
			s.shown.clear()
			fmt.Fprintf(s.stderr, "sent again until it is taken, for %s at most: %s\n", age(patience), clean(err.Error()))
		}
		if e := s.wait(ctx, d); e != nil {
			return a, fmt.Errorf("%w while waiting for room: %w", e, err)
		}
	}
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"sluice/core"
	"sluice/core/reader"
	"sluice/functions/internal/wire"
	"sluice/infra/fault"
)

const (
	// chaosBuffer is what the endpoint hears as the buffer, so that it can tell.
	chaosBuffer = "chaos"
	chaosEvents = 100       // made, when no file is given
	chaosBytes  = 256 << 20 // at most of a file
)

type chaosCommand struct {
	configFlag

	Destination string `arg:"" help:"The destination. It is really sent to."`

	Fail  float64       `default:"0"  help:"The share of sends that fail as if the endpoint answered 503, such as 0.2." placeholder:"SHARE"`
	Delay time.Duration `default:"0s" help:"How long each send is held up before it is made."                           placeholder:"DURATION"`
	Drop  float64       `default:"0"  help:"The share of sends that arrive, but whose answer is lost, such as 0.01."    placeholder:"SHARE"`

	Data  string  `help:"The events, NDJSON (default: a hundred made ones)." placeholder:"FILE"`
	Items int     `default:"10"                                              help:"Events in a batch (default: ${default})." placeholder:"N"`
	Seed  *uint64 `help:"Decide as another run did, which said its seed."    placeholder:"N"`
	JSON  bool    `help:"Print JSON."                                        name:"json"`
}

// Help shows examples.
func (*chaosCommand) Help() string {
	return `The events go to the endpoint as they would from a running system: in the destination's format, signed, and tried again by its retry policy. Faults are put in on the way. No store is touched, and the destination's filter and transform are left out; the endpoint hears "chaos" as the buffer. What it takes twice has the same webhook-id both times, so that it can drop it. Events to a destination of type stdout go to standard error here. Faults are put into sends, each of which is a batch: for small shares have many, such as by --items 1. Ctrl-C ends it, with a report of what was done. Exits 1 when an event would have become a dead letter.

Examples:

    sluice chaos crm --fail 0.2
    sluice chaos crm --drop 0.05 --delay 200ms --data events.ndjson
    sluice chaos crm --fail 0.5 --json | jq .doubles`
}

// AfterApply checks what the grammar cannot say.
func (c *chaosCommand) AfterApply() error {
	for _, share := range []struct {
		flag string
		of   float64
	}{{"--fail", c.Fail}, {"--drop", c.Drop}} {
		if !(share.of >= 0 && share.of <= 1) { // nor NaN
			return fmt.Errorf("%s is %g: must be 0 to 1, such as 0.2 for one send in five", share.flag, share.of)
		}
	}
	switch {
	case c.Delay < 0:
		return errors.New("--delay must not be negative")
	case c.Items < 1 || int64(c.Items) > core.BatchItemsRange.Max:
		return fmt.Errorf("--items is %d: must be 1 to %d", c.Items, core.BatchItemsRange.Max)
	}
	return checkName("destination", c.Destination)
}

// Run sends, and reports.
func (c *chaosCommand) Run(ctx context.Context, p *program) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	events, err := c.events()
	if err != nil {
		return err
	}
	seed := rand.Uint64() >> 12 // short enough for any reader of JSON
	if c.Seed != nil {
		seed = *c.Seed
	}
	i := slices.IndexFunc(cfg.Destinations, func(d core.Destination) bool { return d.Name == c.Destination })
	if i < 0 {
		return unknown("destination", c.Destination, destinations(cfg))
	}
	sender, done, err := wire.OpenDestination(cfg, c.Destination, p.env, p.stderr) // stdout is the report's
	if err != nil {
		return err
	}
	defer done()
	dice := rand.New(rand.NewPCG(seed, seed))
	t := &trial{program: p, arrived: &arrivals{to: sender, seen: map[string]int{}}, dice: dice, report: chaosReport{Destination: c.Destination, Seed: seed}}
	t.faults = fault.NewSender(t.arrived, fault.Options{Fail: c.Fail, Drop: c.Drop, Delay: c.Delay, Rand: dice, Sleep: p.wait})
	t.retry = cfg.Destinations[i].Retry
	t.run(ctx, events, c.Items)
	if err := c.show(p, &t.report); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case t.report.Failed > 0:
		return errFailed
	}
	return nil
}

// destinations are the names of those that a configuration has.
func destinations(c *core.Config) (names []string) {
	for i := range c.Destinations {
		names = append(names, c.Destinations[i].Name)
	}
	return names
}

// events are those of the file, or made ones.
func (c *chaosCommand) events() ([]core.Event, error) {
	var lines []reader.Element
	if c.Data == "" {
		for n := range chaosEvents {
			lines = append(lines, reader.Element{Body: fmt.Appendf(nil, `{"chaos":true,"n":%d}`, n+1)})
		}
	} else {
		f, err := os.Open(c.Data)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		data, err := io.ReadAll(io.LimitReader(f, chaosBytes+1))
		switch {
		case err != nil:
			return nil, err
		case len(data) > chaosBytes:
			return nil, fmt.Errorf("%s has more than %s", c.Data, size(chaosBytes))
		}
		if lines, err = reader.Lines(data, len(data)+1); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Data, err)
		}
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s holds no event", c.Data)
	}
	events := make([]core.Event, len(lines))
	for i := range lines {
		events[i] = core.Event{ContentType: "application/json", Body: lines[i].Body, JSON: true, Source: chaosBuffer}
	}
	return events, nil
}

// chaosReport is what came of it, in events unless it says otherwise.
type chaosReport struct {
	Destination string `json:"destination"`
	Events      int    `json:"events"`
	Batches     int    `json:"batches"`
	Sent        int    `json:"sent"`             // sends of batches
	Retried     int    `json:"retried"`          // of them those that were not the first
	Taken       int    `json:"taken"`            // by the endpoint, whether that was heard or not
	Doubles     int    `json:"doubles"`          // how often it has taken one again
	Failed      int    `json:"failed"`           // would have become dead letters
	Unheard     int    `json:"unheard"`          // of those the ones that it has taken, without any answer that was not lost
	Left        int    `json:"left"`             // not done with when the command was interrupted
	PutIn       putIn  `json:"faults"`           // in sends
	Answer      string `json:"answer,omitempty"` // the last that was no success and no fault of ours
	TookMs      int64  `json:"tookMs"`
	Seed        uint64 `json:"seed"`
}

type putIn struct {
	Failed  int `json:"failed"`
	Dropped int `json:"dropped"`
}

func (c *chaosCommand) show(p *program, r *chaosReport) error {
	if c.JSON {
		return p.printJSON(r)
	}
	say := p.paint(p.stdout)
	table(p.stdout, say, []string{"EVENTS>", "BATCHES>", "SENT>", "RETRIED>", "TAKEN>", "DOUBLES>", "FAILED>"}, [][]string{{
		count(r.Events), count(r.Batches), count(r.Sent), count(r.Retried), count(r.Taken), count(r.Doubles), count(r.Failed),
	}})
	fmt.Fprintf(p.stdout, "put in: %s failed, %s lost; seed %d\n", plural(r.PutIn.Failed, "send"), plural(r.PutIn.Dropped, "answer"), r.Seed)
	if r.Unheard > 0 {
		fmt.Fprintf(p.stdout, "%s of the failed ones were taken, but each time the answer was lost\n", plural(r.Unheard, "event"))
	}
	if r.Left > 0 {
		fmt.Fprintf(p.stdout, "interrupted: %s not done with\n", plural(r.Left, "event"))
	}
	if r.Answer != "" {
		fmt.Fprintf(p.stdout, "the endpoint's last refusal: %s\n", clean(strings.TrimSpace(r.Answer)))
	}
	return nil
}

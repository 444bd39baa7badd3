package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/core"
	"sluice/functions/internal/api"
)

// replayTimeout bounds one call of a replay; the server ends its own after
// four minutes and says what is left.
const replayTimeout = 6 * time.Minute

type dlqListCommand struct {
	remote

	Buffer string `help:"Only those of this buffer." placeholder:"BUFFER"`
	JSON   bool   `help:"Print JSON."                name:"json"`
}

// Help shows examples.
func (*dlqListCommand) Help() string {
	return `Examples:

    sluice dlq list --buffer orders
    sluice dlq list --json | jq -r '.deadletters[] | [.id, .lastError] | @tsv'`
}

// Run lists dead letters.
func (c *dlqListCommand) Run(ctx context.Context, p *program) error {
	query := url.Values{"limit": {pageLimit}}
	if c.Buffer != "" {
		query.Set("buffer", c.Buffer)
	}
	return (&listing[api.DeadLetterState]{
		remote: &c.remote, json: c.JSON, name: "deadletters", path: []string{"v1", "deadletters"}, query: query,
		none:  "there are no dead letters",
		heads: []string{"ID", "BUFFER", "GROUP", "DESTINATION", "REASON", "STATUS>", "ATTEMPTS>", "AGE>", "ERROR"},
		row: func(l *api.DeadLetterState, now core.Millis) []string {
			return []string{
				cell(l.ID), cell(l.Buffer), keyCell(l.Group), cell(l.Destination), cell(l.Reason),
				status(l.Status), count(l.Attempts), since(l.LastErrorAt, now), cell(l.LastError),
			}
		},
	}).run(ctx, p)
}

func status(s int) string {
	if s == 0 {
		return "-"
	}
	return strconv.Itoa(s)
}

type dlqReplayCommand struct {
	remote

	Buffer *string  `help:"Only those of this buffer."                    placeholder:"BUFFER"`
	ID     []string `help:"Only this one; may be given again and again."  name:"id"                 placeholder:"ID" sep:"none"`
	To     *string  `help:"Send them there instead of where they failed." placeholder:"DESTINATION"`
	Max    *int     `help:"At most so many."                              placeholder:"N"`
	JSON   bool     `help:"Print JSON."                                   name:"json"`
}

// Help shows examples.
func (*dlqReplayCommand) Help() string {
	return `Each letter is sent once, in batches as they were. Those that the destination takes are dead letters no more. Exits 1 if some were not taken, or one that is named is not there.

Examples:

    sluice dlq replay
    sluice dlq replay --buffer orders --max 1
    sluice dlq replay --id 01JD0X-1/1 --id 01JD0X-1/2 --to backup`
}

// AfterApply checks what the grammar cannot say.
func (c *dlqReplayCommand) AfterApply() error {
	if c.Max != nil && *c.Max < 1 {
		return fmt.Errorf("--max is %d: must be 1 or more", *c.Max)
	}
	return nil
}

// Run replays call by call, as a call has an end before a long queue has.
func (c *dlqReplayCommand) Run(ctx context.Context, p *program) error {
	cl, err := p.dial(&c.remote)
	if err != nil {
		return err
	}
	defer cl.close()
	var sum api.ReplayReport
	err = c.replay(ctx, cl, &sum)
	if err != nil && sum.Replayed == 0 {
		return err
	}
	if e := c.show(p, &sum); e != nil {
		return e
	}
	switch missing := c.missing(&sum); {
	case err != nil:
		return err
	case missing > 0:
		return fmt.Errorf("%s not found: --id names no such dead letter", plural(missing, "letter"))
	case sum.Failed > 0:
		return notTaken(&sum)
	}
	return nil
}

// notTaken says why letters are dead letters still, as far as it is known here.
func notTaken(sum *api.ReplayReport) error {
	if len(sum.Missing) == 0 {
		return fmt.Errorf("%s not taken again: the server's log has the answers, \"sluice dlq list\" those of before", plural(sum.Failed, "letter"))
	}
	lines := make([]string, len(sum.Missing))
	for i, name := range sum.Missing {
		lines[i] = fmt.Sprintf("destination %q is not configured: give --to, or configure it", name)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// missing is how many of the letters that were named are not there.
func (c *dlqReplayCommand) missing(sum *api.ReplayReport) int {
	if c.Max != nil {
		return 0 // the others may not have been asked for
	}
	names := slices.Compact(slices.Sorted(slices.Values(c.ID)))
	return max(0, len(names)-sum.Replayed-sum.Failed)
}

// replay calls while there is progress. Failed are those of the last call: an
// earlier call's are tried again by the next.
func (c *dlqReplayCommand) replay(ctx context.Context, cl *client, sum *api.ReplayReport) error {
	q := api.ReplayRequest{Buffer: c.Buffer, IDs: c.ID, To: c.To, Max: c.Max}
	for {
		body, err := json.Marshal(q)
		if err != nil {
			return err
		}
		var r api.ReplayReport
		err = cl.do(ctx, call{
			method: http.MethodPost, path: []string{"v1", "deadletters", "replay"}, timeout: replayTimeout,
			header: http.Header{"Content-Type": {"application/json"}}, body: body,
		}, &r)
		if err != nil {
			return err
		}
		sum.Replayed, sum.Failed, sum.Left, sum.Missing = sum.Replayed+r.Replayed, r.Failed, r.Left, r.Missing
		if r.Replayed == 0 || r.Left <= r.Failed {
			return nil
		}
		if q.Max != nil {
			if *q.Max -= r.Replayed + r.Failed; *q.Max <= 0 {
				return nil
			}
		}
	}
}

func (c *dlqReplayCommand) show(p *program, r *api.ReplayReport) error {
	if c.JSON {
		return p.printJSON(r)
	}
	fmt.Fprintf(p.stdout, "%s replayed, %s failed, %s left\n", count(r.Replayed), count(r.Failed), count(r.Left))
	return nil
}

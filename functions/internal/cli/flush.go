package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"sluice/functions/internal/api"
	"sluice/functions/internal/report"
)

type flushCommand struct {
	remote

	Only  []string `help:"Only these buffers; may be given again and again."          placeholder:"BUFFER,..." sep:"none"`
	Group []string `help:"Only the groups of this key; may be given again and again." placeholder:"KEY"        sep:"none"`

	Force  bool `help:"Also what was shipped less than flush.every ago, and what waits for its retry."`
	Final  bool `help:"The last flush: as with --force, though in turn with other processes; and time windows within their grace. Says what is left."`
	Strict bool `help:"Flush nothing when --only names a buffer that there is not."`

	JSON bool `help:"Print the report as JSON." name:"json"`
}

// Help shows examples.
func (*flushCommand) Help() string {
	return `What is finished leaves now, buffer by buffer: all that is stored, but no time window that is still open or within its grace. Exits 1 when a buffer failed.

Every send is an attempt. With --force and --final a batch does not wait for its next one, so a few flushes in a row can use up the destination's retry.maxAttempts: then its events go to the fallback, or become dead letters.

Examples:

    sluice flush
    sluice flush --only orders,audit --strict
    sluice flush --only orders --group 4711
    sluice flush --final --force
    sluice flush --json | jq '.buffers[] | select(.error)'`
}

// AfterApply checks what the grammar cannot say.
func (c *flushCommand) AfterApply() error {
	var only []string // not what the parser makes of a list, in which an empty text is nothing, and all would be flushed
	for _, names := range c.Only {
		for name := range strings.SplitSeq(names, ",") {
			only = append(only, strings.TrimSpace(name))
		}
	}
	if c.Only = only; slices.Contains(c.Only, "") {
		return errors.New("--only names a buffer without a name; leave it out to flush all")
	}
	return nil
}

// Run flushes.
func (c *flushCommand) Run(ctx context.Context, p *program) error {
	cl, err := p.dial(&c.remote)
	if err != nil {
		return err
	}
	defer cl.close()
	raw, err := c.flush(ctx, p, cl)
	if err != nil {
		return err
	}
	var r report.House
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("the report is not as this version knows it; is the system newer? (%w)", err)
	}
	if c.JSON {
		err = p.printJSON(raw)
	} else {
		c.show(p, &r)
	}
	if err == nil && c.Final {
		err = c.left(ctx, p, cl, &r)
	}
	if err != nil {
		return err
	}
	return failure(&r)
}

// flush makes the call, which may take hours, and shows how far it is.
func (c *flushCommand) flush(ctx context.Context, p *program, cl *client) (json.RawMessage, error) {
	body, err := json.Marshal(api.FlushRequest{Force: c.Force, Final: c.Final, Only: c.Only, Strict: c.Strict, Groups: c.Group})
	if err != nil {
		return nil, err
	}
	stop := c.watch(ctx, p, cl)
	var raw json.RawMessage
	err = cl.do(ctx, call{
		method: http.MethodPost, path: []string{"v1", "flush"}, timeout: untilDone,
		header: http.Header{"Content-Type": {"application/json"}}, body: body,
	}, &raw)
	stop()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w: the flush ends after the sends under way", ctx.Err())
	}
	if refused, ok := errors.AsType[*answerError](err); ok && refused.status == http.StatusBadRequest {
		return nil, usagef("%v", err) // a name that there is not, strictly
	}
	return raw, err
}

// selected reports whether the flush is of a buffer.
func (c *flushCommand) selected(b *api.BufferState) bool {
	return c.Only == nil || slices.Contains(c.Only, b.Name)
}

// failure is what a report says of buffers that failed, or nil.
func failure(r *report.House) error {
	if r.OK {
		return nil
	}
	var failed []string
	of := 0
	for i := range r.Buffers {
		b := &r.Buffers[i]
		if !unselected(b) {
			of++
		}
		if b.Error != "" {
			failed = append(failed, b.Name)
		}
	}
	return fmt.Errorf("%d of %s failed: %s", len(failed), plural(of, "buffer"), strings.Join(failed, ", "))
}

// unselected reports whether the flush was of other buffers.
func unselected(b *report.Buffer) bool { return b.Skipped && b.Reason == "not-selected" }

// show shows a report to people: the buffers that the flush was of.
func (c *flushCommand) show(p *program, r *report.House) {
	say := p.paint(p.stdout)
	var rows [][]string
	var notes []string
	for i := range r.Buffers {
		b := &r.Buffers[i]
		if unselected(b) {
			continue
		}
		rows = append(rows, []string{cell(b.Name), count(b.Rows), count(b.Buckets), result(b, say)})
		for _, note := range noted(b) {
			notes = append(notes, clean(b.Name+": "+note))
		}
	}
	switch {
	case len(r.Buffers) == 0:
		fmt.Fprintln(p.stdout, "there are no buffers")
	case len(rows) > 0:
		table(p.stdout, say, []string{"BUFFER", "ROWS>", "WINDOWS>", "RESULT"}, rows)
	}
	for _, note := range notes {
		fmt.Fprintln(p.stdout, note)
	}
	warn := p.paint(p.stderr).yellow("warning:")
	for _, name := range r.Unmatched {
		fmt.Fprintf(p.stderr, "%s there is no buffer %q\n", warn, name)
	}
}

// result is a buffer's report in a few words.
func result(b *report.Buffer, say paint) string {
	switch {
	case b.Error != "":
		return say.red("failed:") + " " + clean(b.Error)
	case b.Skipped && b.NextEligibleInMs > 0:
		return say.yellow("skipped:") + " " + clean(b.Reason) + ", eligible in " + age(time.Duration(b.NextEligibleInMs)*time.Millisecond)
	case b.Skipped:
		return "skipped: " + clean(strings.ReplaceAll(b.Reason, "-", " "))
	case b.Rows == 0:
		return "nothing to ship"
	}
	return say.green("shipped")
}

// noted are what else is to be said of a buffer.
func noted(b *report.Buffer) []string {
	var notes []string
	if w := b.Written; w != nil {
		windows := ""
		if w.Buckets > 0 {
			windows = " and " + plural(w.Buckets, "window")
		}
		notes = append(notes, plural(w.Rows, "row")+windows+" taken all the same")
	}
	if r := b.Recovered; r != nil {
		notes = append(notes, fmt.Sprintf("%s of %s from before this flush", plural(r.Rows, "row"), plural(r.Claims, "claim")))
	}
	for _, e := range []struct{ what, text string }{
		{"taken, but not settled, so that it comes again", b.AckError},
		{"not given back, so that it waits for the end of its lease", b.ReleaseError},
		{"not taken over from before", b.RecoveryError},
	} {
		if e.text != "" {
			notes = append(notes, e.what+": "+e.text)
		}
	}
	return notes
}

// left says what is still in the buffers, and why.
func (c *flushCommand) left(ctx context.Context, p *program, cl *client, r *report.House) error {
	states, err := cl.buffers(ctx)
	if err != nil {
		return fmt.Errorf("flushed, but what is left is not known: %w", err)
	}
	some := false
	for i := range states {
		s := &states[i]
		if n := s.PendingItems + s.ClaimedItems; n > 0 && c.selected(s) {
			some = true
			fmt.Fprintf(p.stderr, "left: %s in %s of %s%s\n", plural(n, "item"), plural(s.Groups, "group"), clean(s.Name), why(s, r))
		}
		if n := s.DelayedItems; n > 0 && s.NextDueAt != "" && c.selected(s) {
			some = true
			fmt.Fprintf(p.stderr, "left: %s of %s, held until their time has come, the next at %s\n", plural(n, "item"), clean(s.Name), clean(s.NextDueAt))
		}
	}
	if !some {
		fmt.Fprintln(p.stderr, "nothing is left")
	}
	return nil
}

// why is why a buffer still holds something, as far as its state says.
func why(s *api.BufferState, r *report.House) string {
	var reasons []string
	skipped := slices.ContainsFunc(r.Buffers, func(b report.Buffer) bool { return b.Name == s.Name && b.Skipped })
	switch {
	case !s.Configured:
		reasons = append(reasons, "not configured")
	case skipped:
		reasons = append(reasons, "skipped")
	case s.WindowMs > 0 && s.PendingItems > 0:
		reasons = append(reasons, "open windows")
	}
	if s.DelayedItems > 0 && s.NextDueAt == "" { // in their groups
		reasons = append(reasons, count(s.DelayedItems)+" held until their time has come")
	}
	if s.ClaimedItems > 0 {
		reasons = append(reasons, count(s.ClaimedItems)+" being sent or waiting for a retry")
	}
	if reasons == nil {
		return ""
	}
	return " (" + strings.Join(reasons, "; ") + ")"
}

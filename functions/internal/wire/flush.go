package wire

import (
	"context"
	"log/slog"
	"time"

	"sluice/core"
)

// maxError bounds the error text of a log line, in bytes.
const maxError = 1 << 10

// flushAgain is how long after one that failed the next flush is made, unless
// its turn comes sooner.
const flushAgain = time.Minute

// flush makes a scheduled flush of a buffer; see schedule.
func (n *node) flush(ctx context.Context, buffer string) (early time.Duration) {
	s, done := n.use()
	defer done()
	r, err := s.flusher.FlushBuffer(n.sending, buffer, core.FlushOptions{While: ctx})
	if err != nil {
		return 0 // the buffer has been removed, and is about to leave the schedule
	}
	tellFlush(n.log, &r, ctx.Err() != nil)
	if r.Err != nil {
		return flushAgain
	}
	return r.NextEligibleIn
}

// tellFlush logs what came of the flush of a buffer. One that was ended early
// is no failure.
func tellFlush(log *slog.Logger, r *core.BufferFlush, ended bool) {
	ctx, level := context.Background(), slog.LevelDebug
	switch failed := r.Err != nil || r.ReleaseErr != nil || r.AckErr != nil || r.RecoverErr != nil; {
	case failed && !ended:
		level = slog.LevelWarn
	case failed || r.Rows > 0:
		level = slog.LevelInfo
	}
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("buffer", r.Buffer)}
	if r.Skipped {
		attrs = append(attrs, slog.String("skipped", string(r.Reason)), slog.Int64("nextEligibleInMs", r.NextEligibleIn.Milliseconds()))
	} else {
		attrs = append(attrs, slog.Int("rows", r.Rows), slog.Int("windows", r.Buckets))
	}
	if w := r.Written; w != nil {
		attrs = append(attrs, slog.Int("writtenRows", w.Rows), slog.Int("writtenWindows", w.Buckets))
	}
	if c := r.Recovered; c != nil {
		attrs = append(attrs, slog.Int("recoveredClaims", c.Claims), slog.Int("recoveredRows", c.Rows))
	}
	fail := func(name string, err error) {
		if err != nil {
			attrs = append(attrs, slog.String(name, core.Cut(err.Error(), maxError)))
		}
	}
	fail("error", r.Err)
	fail("releaseError", r.ReleaseErr)
	fail("ackError", r.AckErr)
	fail("recoverError", r.RecoverErr)
	log.LogAttrs(ctx, level, "flush", attrs...)
}

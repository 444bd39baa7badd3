package attemptlog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sluice/core"
)

const (
	// maxGroup bounds how much of a group's key a line carries, in bytes.
	maxGroup = 256
	// maxError bounds the error text of a line, in bytes.
	maxError = 1 << 10
)

// Observer logs each delivery attempt, at a level that follows its outcome, each
// batch of which items became dead letters, each breaker that opens or closes, and
// of shadow copies that are lost and of what
// fails in the background at most one line per buffer or operation in ten
// seconds by the clock. It is safe for concurrent use.
func Observer(log *slog.Logger, clock core.Clock) *core.Observer {
	failures := newFailures(log, clock)
	return &core.Observer{
		Attempt:     func(a *core.Attempt) { logAttempt(log, a) },
		Breaker:     func(destination string, open bool) { logBreaker(log, destination, open) },
		DeadLetters: func(l *core.DeadLetter, n int) { logDeadLetters(log, l, n) },
		Shadow:      failures.shadow,
		Failed:      failures.report,
	}
}

func logBreaker(log *slog.Logger, destination string, open bool) {
	level, state := slog.LevelInfo, "closed"
	if open {
		level, state = slog.LevelWarn, "open"
	}
	log.LogAttrs(context.Background(), level, "breaker", slog.String("destination", destination), slog.String("state", state))
}

// logAttempt writes the one line that tells a whole attempt.
func logAttempt(log *slog.Logger, a *core.Attempt) {
	ctx, level := context.Background(), levelOf(a.Outcome)
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 13)
	attrs = append(attrs,
		slog.String("buffer", a.Buffer),
		slog.String("group", core.Cut(a.Group, maxGroup)),
		slog.String("batch", a.Batch),
		slog.String("destination", a.Destination),
		slog.Int("items", a.Items),
		slog.Int64("bytes", a.Bytes),
		slog.String("reason", string(a.Reason)),
		slog.Int("attempt", a.Number),
		slog.String("outcome", a.Outcome.String()),
		slog.Int("status", a.Status),
		slog.Int64("ms", a.Took.Milliseconds()),
		slog.Int64("latenessMs", a.Lateness.Milliseconds()),
	)
	if a.Err != nil {
		attrs = append(attrs, slog.String("error", core.Cut(a.Err.Error(), maxError)))
	}
	log.LogAttrs(ctx, level, "delivery", attrs...)
}

// logDeadLetters writes the line of a batch of which n items, l the first, became
// dead letters. Why is in the letter: its error may have a part of the payload.
func logDeadLetters(log *slog.Logger, l *core.DeadLetter, n int) {
	log.LogAttrs(context.Background(), slog.LevelError, "dead letters",
		slog.String("buffer", l.Buffer),
		slog.String("group", core.Cut(l.Group, maxGroup)),
		slog.String("batch", l.Batch),
		slog.String("destination", l.Destination),
		slog.Int("items", n),
		slog.String("reason", l.Reason),
		slog.Int("attempts", l.Attempts),
		slog.Int("status", l.Status),
		slog.String("letter", l.ID),
	)
}

func levelOf(o core.Outcome) slog.Level {
	switch o {
	case core.Retry:
		return slog.LevelWarn
	case core.Permanent:
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

const (
	// failureEvery is how often one operation's failures are logged: a store
	// that is down fails thousands of times a second, all for one reason.
	failureEvery = 10 * time.Second
	// maxOps bounds the operations told apart.
	maxOps = 100
	// other stands for every operation beyond maxOps.
	other = "other"
)

// failures logs background failures, at most one line per operation and
// failureEvery, which says how many were left out before it.
type failures struct {
	log   *slog.Logger
	clock core.Clock
	mu    sync.Mutex
	ops   map[string]*failing
}

type failing struct {
	loggedAt core.Millis
	leftOut  int
}

func newFailures(log *slog.Logger, clock core.Clock) *failures {
	return &failures{log: log, clock: clock, ops: make(map[string]*failing)}
}

func (f *failures) report(op string, err error) {
	leftOut, ok := f.admit(op)
	if !ok {
		return
	}
	f.log.LogAttrs(context.Background(), slog.LevelWarn, "background failure",
		slog.String("op", op),
		slog.String("code", core.CodeOf(err).String()),
		slog.String("error", core.Cut(err.Error(), maxError)),
		slog.Int("leftOut", leftOut),
	)
}

// shadow logs copies that were lost, which nobody else is told of.
func (f *failures) shadow(buffer, outcome string, n int) {
	if outcome == core.ShadowDelivered {
		return
	}
	leftOut, ok := f.admit("shadow " + outcome + " " + buffer)
	if !ok {
		return
	}
	f.log.LogAttrs(context.Background(), slog.LevelWarn, "shadow copies lost",
		slog.String("buffer", buffer),
		slog.String("outcome", outcome),
		slog.Int("items", n),
		slog.Int("leftOut", leftOut),
	)
}

// admit reports whether a failure of op is to be logged, and how many have not
// been since the last one that was.
func (f *failures) admit(op string) (leftOut int, ok bool) {
	now := f.clock.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	state := f.ops[op]
	if state == nil {
		if len(f.ops) >= maxOps {
			op = other
		}
		if state = f.ops[op]; state == nil {
			f.ops[op] = &failing{loggedAt: now}
			return 0, true
		}
	}
	if since := now.Sub(state.loggedAt); since >= 0 && since < failureEvery { // a clock set back does not silence it
		state.leftOut++
		return 0, false
	}
	leftOut = state.leftOut
	*state = failing{loggedAt: now}
	return leftOut, true
}

package cloud

import (
	"context"
	"time"

	"sluice/core"
	"sluice/functions/internal/api"
)

const (
	// replayTime is how long a replay goes on to begin sends, and
	// replaySettling what is kept free behind them, in which letters are
	// given back and those left are counted. Both are well within the 30 s
	// after which the gateway gives up.
	replayTime     = 12 * time.Second
	replaySettling = 9 * time.Second

	// replayHold is how long a replay that died keeps its letters from others:
	// longer than any lives.
	replayHold = time.Minute

	// replayChunk is how many letters a replay holds: of the largest, some
	// 50 MB.
	replayChunk = 100

	// listBytes bounds the payload of a list of dead letters: escaped, or as
	// base64, it is at most twice as long, and an answer has at most 6 MB.
	listBytes = 2 * core.MiB
)

// Control makes the function that answers control calls: the state of buffers
// and groups, dead letters, their replay, and flushes, which it has the flush
// function make.
func Control(ctx context.Context, p Process) (HTTPHandler, error) {
	f, err := setup(ctx, p, controlSecrets)
	if err != nil {
		return nil, err
	}
	if f.env.FlushURL == "" {
		return nil, core.Errorf(core.Invalid, "SLUICE_FLUSH_URL is not set; the template sets it")
	}
	open, err := f.senders()
	if err != nil {
		return nil, err
	}
	s := f.store()
	return f.control(&outside{store: s, letters: f.letters(), shared: s}, open.Sender)
}

func (f *function) control(o *outside, find func(string) core.Sender) (HTTPHandler, error) {
	ports := f.ports(o)
	ports.Sender = boundedSenders(find, replaySettling)
	h, err := api.New(api.Backend{
		Catalog:     f.catalog,
		Ready:       ready(o.store, f.clock),
		Store:       o.store,
		Replayer:    replayer{core.NewReplayer(f.catalog, ports, o.letters)},
		DeadLetters: o.letters,
		Breaker: func(ctx context.Context, destination string) (core.Breaker, error) {
			return core.BreakerOf(ctx, o.shared, destination)
		},
		Flusher:  &invoker{catalog: f.catalog, clock: f.clock, sdk: f.clients.lambda(), url: f.env.FlushURL},
		Attempts: new(api.LastAttempts), // they are made elsewhere
	}, api.Options{Resolve: f.settings.resolve, Clock: f.clock, Log: f.log, MaxListBytes: listBytes})
	if err != nil {
		return nil, err
	}
	return f.http(h), nil
}

// replayer ends replays in time; what is left over is for the next one.
type replayer struct{ *core.Replayer }

// Replay replays dead letters.
func (r replayer) Replay(ctx context.Context, q core.ReplayRequest) (core.ReplayReport, error) {
	q.Budget, q.Chunk, q.Lease = replayTime, replayChunk, replayHold
	if deadline, ok := ctx.Deadline(); ok {
		q.Budget = min(q.Budget, max(time.Millisecond, time.Until(deadline)-replaySettling-claiming))
	}
	return r.Replayer.Replay(ctx, q)
}

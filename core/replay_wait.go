package core

import (
	"context"
	"time"
)

// atOnce is how long a replay waits for a destination before the others' turn.
const atOnce = time.Millisecond

// errLater says that a destination has to be waited for.
var errLater = Errorf(Unavailable, "it has to be waited for")

// admitted waits until a destination's breaker and rate limit let a send through, which
// is perhaps the breaker's probe: it has its token before it is that. errLater: it would
// have to wait, and may not. Unavailable: not while there is time.
func (r *replay) admitted(ctx context.Context, d *Destination, may bool) (*probe, error) {
	g := gate{&r.ports}
	var token Millis
	for {
		until, p := g.breaker(ctx, d)
		why := Errorf(Unavailable, "the breaker of destination %s is open until %s: nothing more is sent there", d.Name, until)
		if until == 0 {
			most := atOnce
			if may {
				most = max(most, r.until.Sub(r.ports.Clock.Now()))
			}
			if until = r.token(ctx, d, most, &token); until == 0 {
				return p, nil
			}
			g.unused(context.WithoutCancel(ctx), p)
			why = Errorf(Unavailable, "the rate limit of destination %s leaves no time: nothing more is sent there", d.Name)
		}
		wait := max(until.Sub(r.ports.Clock.Now()), time.Millisecond)
		switch {
		case !may && wait > atOnce:
			return nil, errLater
		case r.ports.Sleep == nil, until > r.until, r.ports.Sleep(ctx, wait) != nil:
			return nil, why
		}
	}
}

// token says until when a send has to wait for a token of its destination's rate limit,
// which it then has; 0: not at all, maxMillis: it comes too late. One that came long ago
// counts no more.
func (r *replay) token(ctx context.Context, d *Destination, most time.Duration, has *Millis) (until Millis) {
	now := r.ports.Clock.Now()
	if d.RateLimit == nil || r.ports.Sleep == nil || *has != 0 && now.Sub(*has) < d.RateLimit.Per {
		return 0
	}
	switch wait, taken := (gate{&r.ports}).token(ctx, d, most); {
	case wait == 0:
		return 0
	case !taken:
		return maxMillis
	default:
		*has = now.Add(wait)
		return *has
	}
}

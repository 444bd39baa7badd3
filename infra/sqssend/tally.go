package sqssend

import (
	"context"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"sluice/core"
)

// statusTaken is the status of a batch that SQS has taken, if but in part.
const statusTaken = 200

// tally adds up what came of a batch's items.
type tally struct {
	sender *Sender
	ctx    context.Context //nolint:containedctx // the caller's own, for as long as its send
	batch  *core.Batch

	mu      sync.Mutex
	failed  core.Bits      // of these
	refused core.Bits      // these will never be taken
	call    *core.Response // what came of the first call that failed
	why     string         // the first reason that SQS gave for an item
}

// failing reports whether an item is to be sent again.
func (t *tally) failing() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed.Len() > t.refused.Len()
}

// skip notes messages that were not sent.
func (t *tally) skip(messages []message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range messages {
		t.failed = t.failed.With(messages[i].at)
	}
}

// miss notes an item that was not taken.
func (t *tally) miss(i int, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = t.failed.With(i)
	t.because(why)
}

// refuse notes an item that will never be taken.
func (t *tally) refuse(i int, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed, t.refused = t.failed.With(i), t.refused.With(i)
	t.because(why)
}

func (t *tally) because(why string) {
	if t.why == "" {
		t.why = why
	}
}

// fail notes a call that failed with all its messages.
func (t *tally) fail(messages []message, r core.Response) {
	t.skip(messages)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.call == nil {
		t.call = &r
	}
}

// count notes what SQS says of each message of a call. Those of which it says
// nothing have failed; an answer about others says nothing at all.
func (t *tally) count(messages []message, out *sqs.SendMessageBatchOutput) {
	at := make(map[string]int, len(messages))
	for i := range messages {
		at[strconv.Itoa(messages[i].at)] = messages[i].at
	}
	answered := make(map[int]bool, len(messages))
	for i := range out.Failed {
		e := &out.Failed[i]
		n, known := at[value(e.Id)]
		if !known {
			t.fail(messages, core.Response{Err: core.Errorf(core.Unavailable, "the answer names the message %q, which was not sent", core.Cut(value(e.Id), 40))})
			return
		}
		answered[n] = true
		why := value(e.Code) + ": " + value(e.Message)
		if e.SenderFault && !passing(value(e.Code)) {
			t.refuse(n, why)
		} else {
			t.miss(n, why)
		}
	}
	for i := range out.Successful {
		if n, known := at[value(out.Successful[i].Id)]; known {
			answered[n] = true
		}
	}
	for _, n := range at {
		if !answered[n] {
			t.miss(n, "")
		}
	}
}

// response is what came of the batch.
func (t *tally) response() core.Response {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.failed.Len() == 0:
		return core.Response{Status: statusTaken}
	case t.ctx.Err() != nil:
		return core.Response{Err: stopped(t.ctx.Err())}
	case t.call != nil && t.refused.Len() == 0 && t.failed.Len() == len(t.batch.Items):
		return *t.call
	}
	if t.call != nil {
		t.because(t.call.Answer)
	}
	return core.Response{Status: statusTaken, Failed: t.failed, Refused: t.refused, Answer: core.Cut(t.why, core.MaxAnswer)}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

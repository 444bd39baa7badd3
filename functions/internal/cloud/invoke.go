package cloud

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"sluice/core"
	"sluice/functions/internal/api"
	"sluice/functions/internal/edge"
	"sluice/functions/internal/report"
)

const (
	// answering is room behind an invocation, in which its answer is passed on.
	answering = 2 * time.Second
	// maxAnswer bounds an answer of the flush function: what Lambda does.
	maxAnswer = 6 << 20
)

// invoker flushes by invoking the flush function, which has the time that
// sends need: behind the gateway there are 30 s, less than a send may take that has to
// be settled. It signs its one request by itself: the SDK's client of Lambda
// would be most of the function.
type invoker struct {
	catalog *core.Catalog
	clock   core.Clock
	sdk     aws.Config
	url     string
}

var _ api.Flusher = (*invoker)(nil)

// Flush has a flush made. Invalid: it is strict, and names an unknown buffer.
// Unavailable: there is no report (yet); what was begun is ended all the same.
func (v *invoker) Flush(ctx context.Context, o core.FlushOptions) (core.FlushReport, error) {
	if o.Strict && v.unknown(o.Only) {
		// It is refused before anything is flushed, in the core's own words.
		return core.NewFlusher(v.catalog, core.Ports{Clock: v.clock}, new(core.Cadence)).Flush(ctx, o)
	}
	house, err := v.invoke(ctx, &o)
	if err != nil {
		return core.FlushReport{}, err
	}
	r := core.FlushReport{Took: time.Duration(house.DurationMs) * time.Millisecond, Unmatched: house.Unmatched}
	for i := range house.Buffers {
		r.Buffers = append(r.Buffers, asFlush(&house.Buffers[i]))
	}
	return r, nil
}

// FlushBuffer has one buffer flushed. NotFound: there is none of that name.
func (v *invoker) FlushBuffer(ctx context.Context, buffer string, o core.FlushOptions) (core.BufferFlush, error) {
	if v.catalog.Buffer(buffer) == nil {
		return core.BufferFlush{}, core.Errorf(core.NotFound, "there is no buffer %q", buffer)
	}
	o.Only, o.Strict = []string{buffer}, true
	r, err := v.Flush(ctx, o)
	for i := range r.Buffers {
		if r.Buffers[i].Buffer == buffer {
			return r.Buffers[i], nil
		}
	}
	if err == nil {
		err = core.Errorf(core.Unavailable, "the flush function does not know buffer %q yet; ask again", buffer)
	}
	return core.BufferFlush{}, err
}

func (v *invoker) unknown(names []string) bool {
	for _, name := range names {
		if v.catalog.Buffer(name) == nil {
			return true
		}
	}
	return false
}

// invoke calls the flush function, and waits for its report.
func (v *invoker) invoke(ctx context.Context, o *core.FlushOptions) (*report.House, error) {
	payload, err := json.Marshal(edge.FlushEvent{Flush: edge.FlushCallOf(o)})
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-answering))
		defer cancel()
	}
	status, failed, body, err := v.post(ctx, payload)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, core.Errorf(core.Unavailable, "the flush takes longer than a call may; it goes on, and its report will be in the log of the flush function. Invoke that function to wait for its report")
	case err != nil:
		return nil, core.Wrap(core.Unavailable, err, "the flush function can't be invoked now")
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return nil, core.Errorf(core.Unavailable, "the flush function can't be invoked now: Lambda answers %d", status)
	case status != http.StatusOK:
		return nil, core.Errorf(core.Internal, "the flush function can't be invoked: Lambda answers %d: %s", status, core.Cut(string(body), maxLogged))
	case failed:
		return nil, core.Wrap(core.Unavailable, errors.New(core.Cut(string(body), maxLogged)), "the flush function failed; its log says why")
	}
	var answer FlushReport
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, core.Wrap(core.Internal, err, "the flush function's answer is no report")
	}
	return &answer.House, nil
}

// maxLogged bounds how much of a foreign answer an error carries, in bytes.
const maxLogged = 500

// post makes the signed request. failed says that the function ran, and failed.
func (v *invoker) post(ctx context.Context, payload []byte) (status int, failed bool, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, v.url, bytes.NewReader(payload))
	if err != nil {
		return 0, false, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	credentials, err := v.sdk.Credentials.Retrieve(ctx)
	if err != nil {
		return 0, false, nil, err
	}
	hash := sha256.Sum256(payload)
	err = v4.NewSigner().SignHTTP(ctx, credentials, r, hex.EncodeToString(hash[:]), "lambda", v.sdk.Region, v.clock.Now().Time())
	if err != nil {
		return 0, false, nil, err
	}
	answer, err := v.sdk.HTTPClient.Do(r)
	if err != nil {
		return 0, false, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	return answer.StatusCode, answer.Header.Get("X-Amz-Function-Error") != "", body, err
}

// asFlush is a report of the flush function as the core has it.
func asFlush(b *report.Buffer) core.BufferFlush {
	return core.BufferFlush{
		Buffer: b.Name, Buckets: b.Buckets, Rows: b.Rows, Skipped: b.Skipped,
		Reason: core.SkipReason(b.Reason), NextEligibleIn: time.Duration(b.NextEligibleInMs) * time.Millisecond,
		Err: told(b.Error), Written: (*core.Shipped)(b.Written),
		ReleaseErr: told(b.ReleaseError), AckErr: told(b.AckError),
		Recovered: (*core.Released)(b.Recovered), RecoverErr: told(b.RecoveryError),
	}
}

// told is an error that another function has told of.
func told(text string) error {
	if text == "" {
		return nil
	}
	return core.Errorf(core.Unavailable, "%s", text)
}

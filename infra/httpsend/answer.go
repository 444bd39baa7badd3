package httpsend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/core"
	"sluice/core/format"
)

// An answer is read up to answerBytes, and answerItemBytes for each item: as
// much as a list that names them all may take. Of one that is longer the
// connection is dropped.
const (
	answerBytes     = 64 << 10
	answerItemBytes = 256
)

// read makes a response of an answer. A status other than 2xx says all, even
// when the rest of the answer does not come; a 2xx is believed only when it
// came whole, or up to the bound, since it may name items that failed. What
// follows a status below 200 is a connection, which no context ends, and is
// not read. signature is the request's own, which is not shown.
func (s *Sender) read(ctx context.Context, answer *http.Response, b *core.Batch, signature string) core.Response {
	r := core.Response{
		Status:     answer.StatusCode,
		RetryAfter: retryAfter(answer.Header.Get("Retry-After"), s.clock.Now()),
	}
	if r.Status < 200 {
		return r
	}
	bound := int64(answerBytes + answerItemBytes*len(b.Items))
	body, err := io.ReadAll(io.LimitReader(answer.Body, bound+1)) // one more: finds the end, so that the connection is free
	secrets := s.secrets
	if signature != "" && len(body) > 0 {
		secrets = slices.Concat(secrets, redactions(signatureRedactions(signature)))
	}
	r.Answer = text(redact(body, secrets))
	if r.Status > 299 {
		return r
	}
	if err != nil {
		r.Err = s.mapError(ctx, err)
		return r
	}
	r.Failed, r.Err = failures(s.format, b, body, secrets)
	return r
}

// text is the start of an answer as far as a dead letter keeps it.
func text(body []byte) string {
	start := body[:min(len(body), core.MaxAnswer+1)] // one more: Cut sees a torn character
	return core.Cut(strings.ToValidUTF8(string(start), "\uFFFD"), core.MaxAnswer)
}

// retryAfter is the wait that a Retry-After header asks for, in seconds or as
// an HTTP date; 0 when it has passed or is neither.
func retryAfter(value string, now core.Millis) time.Duration {
	const most = math.MaxInt64 / time.Second
	seconds, err := strconv.ParseUint(value, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) { // out of range, it is the largest number
		return time.Duration(min(seconds, uint64(most))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(core.At(at).Sub(now), 0)
}

const failuresField = "batchItemFailures"

// failures is which items a 2xx answer says were not taken:
//
//	{"batchItemFailures":[{"itemIdentifier":"<item id>"}, ...]}
//
// An answer without the field, or with an empty or null list, took all. A list
// that cannot be relied upon is core.Unavailable: all items are sent again.
func failures(f format.Format, b *core.Batch, body []byte, secrets []string) (core.Bits, error) {
	if !bytes.Contains(body, []byte(`"`+failuresField+`"`)) {
		return nil, nil
	}
	body = bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\ufeff")), " \t\r\n")
	if body[0] != '{' && json.Valid(body) {
		return nil, nil // a value of another kind holds the words
	}
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, core.Wrap(core.Unavailable, err, "the answer's %s cannot be read", failuresField)
	}
	if answer[failuresField] == nil {
		return nil, nil // the words stand deeper in it
	}
	var list []struct {
		ItemIdentifier *string `json:"itemIdentifier"`
	}
	if err := json.Unmarshal(answer[failuresField], &list); err != nil {
		return nil, core.Wrap(core.Unavailable, err, "the answer's %s is not a list of items", failuresField)
	}
	named := make(map[string]bool, len(list)) // true: found in the batch
	for i := range list {
		if list[i].ItemIdentifier == nil {
			return nil, core.Errorf(core.Unavailable, "entry %d of the answer's %s has no itemIdentifier", i+1, failuresField)
		}
		named[*list[i].ItemIdentifier] = false
	}
	return match(f, b, named, secrets)
}

// match finds the items of these names, and settles that every name is one.
func match(f format.Format, b *core.Batch, named map[string]bool, secrets []string) (core.Bits, error) {
	var failed core.Bits
	for i := range b.Items {
		id := f.ItemID(b, i)
		if _, ok := named[id]; ok {
			failed = failed.With(i)
			named[id] = true
		}
	}
	for id, found := range named {
		if !found {
			return nil, core.Errorf(core.Unavailable, "the answer's %s names %q, which is not in the batch", failuresField, core.Cut(string(redact([]byte(id), secrets)), 40))
		}
	}
	return failed, nil
}

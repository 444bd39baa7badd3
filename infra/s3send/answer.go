package s3send

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sluice/core"
)

// answerBytes is how much of an answer is read.
const answerBytes = 64 << 10

// passing are codes of errors that may not hold the next time, though their
// status says otherwise.
var passing = map[string]bool{
	"RequestTimeout": true, "RequestTimeTooSkewed": true, "ExpiredToken": true, "TokenRefreshRequired": true,
	"BadDigest": true, "XAmzContentSHA256Mismatch": true, "IncompleteBody": true, "OperationAborted": true, "ConditionalRequestConflict": true,
	"TemporaryRedirect": true, "SlowDown": true, "Throttling": true, "ThrottlingException": true,
	"RequestLimitExceeded": true, "BandwidthLimitExceeded": true, "InternalError": true, "ServiceUnavailable": true,
}

// read makes a response of an answer. Of an error it keeps the code and the
// message alone: the rest may repeat a token.
func read(answer *http.Response) core.Response {
	r := core.Response{Status: answer.StatusCode, RetryAfter: retryAfter(answer.Header.Get("Retry-After"))}
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerBytes))
	if r.Status >= 200 && r.Status < 300 {
		return r // the object is stored, whatever becomes of the rest
	}
	code := element(body, "Code")
	text := code + ": " + element(body, "Message")
	if region := answer.Header.Get("X-Amz-Bucket-Region"); region != "" {
		text += " The bucket is in " + region + "."
	}
	if code != "" {
		r.Answer = core.Cut(strings.ToValidUTF8(text, "\uFFFD"), core.MaxAnswer)
	}
	switch {
	case passing[code], r.Status == http.StatusTemporaryRedirect:
		r.Err = core.Errorf(core.Unavailable, "status %d: %s", r.Status, code)
	case err != nil && code == "": // why it failed is not known
		r.Err = core.Wrap(core.Unavailable, err, "status %d, and an answer that was cut off", r.Status)
	}
	return r
}

// element is the text of an XML element that holds nothing else, or "".
func element(body []byte, name string) string {
	_, rest, found := bytes.Cut(body, []byte("<"+name+">"))
	text, _, closed := bytes.Cut(rest, []byte("</"+name+">"))
	if !found || !closed {
		return ""
	}
	return string(text)
}

// retryAfter is the wait that a Retry-After header asks for, in seconds; 0 when
// it is anything else.
func retryAfter(value string) time.Duration {
	seconds, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// mapError is the one place where what the transport says gets a code. ctx is
// the caller's own, which the send's timeout does not end.
func (s *Sender) mapError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return stopped(err)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return core.Wrap(core.Unavailable, err, "no answer within %v", s.timeout)
	}
	if coded, ok := errors.AsType[*core.Error](err); ok {
		return coded
	}
	return core.Wrap(core.Unavailable, err, "no answer")
}

// stopped says that the caller ended the send.
func stopped(err error) error { return core.Wrap(core.Canceled, err, "the send was stopped") }

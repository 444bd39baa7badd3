package sqssend

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"sluice/core"
	"sluice/core/sqsmessage"
)

// passes are codes of SQS that pass, beside those that the SDK knows as such.
var passes = map[string]bool{
	"OverLimit": true, "KmsThrottled": true, "InternalError": true, "InternalFailure": true, "ServiceUnavailable": true,
	"ExpiredToken": true, "ExpiredTokenException": true, "RequestExpired": true,
}

// passing reports whether what a code says may not hold the next time.
func passing(code string) bool {
	code = strings.TrimPrefix(code, "AWS.SimpleQueueService.")
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	_, again := retry.DefaultRetryableErrorCodes[code]
	return throttled || again || passes[code]
}

// failure is the one place where what SQS or the way to it said of a call gets
// a status or a code. ctx is the caller's own, which the send's timeout does
// not end.
func (s *Sender) failure(ctx context.Context, err error) core.Response {
	if ctx.Err() != nil {
		return core.Response{Err: stopped(err)}
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		if errors.Is(err, context.DeadlineExceeded) {
			return core.Response{Err: core.Wrap(core.Unavailable, err, "no answer within %v", s.timeout)}
		}
		return core.Response{Err: core.Wrap(core.Unavailable, err, "no answer")}
	}
	r := core.Response{Answer: core.Cut(sqsmessage.Readable(api.ErrorCode()+": "+api.ErrorMessage()), core.MaxAnswer)}
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		r.Status = answer.HTTPStatusCode()
	}
	if r.Status == 0 || passing(api.ErrorCode()) {
		r.Err = core.Wrap(core.Unavailable, err, "%s", api.ErrorCode())
	}
	return r
}

// stopped says that the caller ended the send.
func stopped(err error) error { return core.Wrap(core.Canceled, err, "the send was stopped") }

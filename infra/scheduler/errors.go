package scheduler

import (
	"context"
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"sluice/core"
)

// wrap gives what the SDK says a code.
func wrap(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return core.Wrap(core.Canceled, err, "arm schedule")
	}
	return core.Wrap(codeOf(err), err, "arm schedule")
}

func codeOf(err error) core.Code {
	if _, ok := errors.AsType[*types.ValidationException](err); ok {
		return core.Invalid
	}
	if _, ok := errors.AsType[*types.ServiceQuotaExceededException](err); ok {
		return core.Full
	}
	if retryable(err) {
		return core.Unavailable
	}
	return core.Internal
}

// retryable reports whether the same call may work later: it was throttled,
// failed inside Scheduler, or got no answer at all.
func retryable(err error) bool {
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		status := answer.HTTPStatusCode()
		if status == http.StatusTooManyRequests || status >= http.StatusInternalServerError {
			return true
		}
	}
	if _, ok := errors.AsType[*types.ThrottlingException](err); ok {
		return true
	}
	if fault, ok := errors.AsType[smithy.APIError](err); ok {
		return fault.ErrorFault() == smithy.FaultServer || fault.ErrorCode() == "ThrottlingException"
	}
	_, unsent := errors.AsType[*smithyhttp.RequestSendError](err)
	_, broken := errors.AsType[*smithy.DeserializationError](err)
	return unsent || broken
}

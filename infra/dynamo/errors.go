package dynamo

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"sluice/core"
)

// failure gives what the table's client says a code. It is the one place that does.
func failure(err error, op string) error {
	if err == nil {
		return nil
	}
	if _, ours := errors.AsType[*core.Error](err); ours {
		return err
	}
	switch {
	case throttled(err):
		return &core.Error{Code: core.Unavailable, RetryAfter: time.Second, Err: err,
			Detail: "cannot " + op + ": the table is throttled; try again in a moment"}
	case errors.Is(err, context.Canceled):
		return core.Wrap(core.Canceled, err, "cannot %s: the caller has gone", op)
	case tooLarge(err):
		return core.Wrap(core.TooLarge, err, "cannot %s: an event is larger than the 350 KiB that the table takes", op)
	}
	return &core.Error{Code: core.Unavailable, RetryAfter: time.Second, Err: err,
		Detail: "cannot " + op + ": the table does not answer as it should"}
}

// throttled reports whether a call was refused for its rate: it did nothing.
func throttled(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return false
	}
	_, known := retry.DefaultThrottleErrorCodes[api.ErrorCode()]
	return known
}

// hopeless reports whether a call was refused for what it is, as without
// permission: it did nothing, and would do no better again.
func hopeless(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorFault() == smithy.FaultClient && !throttled(err)
}

func tooLarge(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "ValidationException" && strings.Contains(api.ErrorMessage(), "Item size")
}

// refused reports whether a call did nothing for its condition did not hold,
// and the item that it met, if the answer has it.
func refused(err error) (met attrs, ok bool) {
	failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		return nil, false
	}
	return failed.Item, true
}

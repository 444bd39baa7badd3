package sqs

import (
	"context"
	"errors"

	"github.com/aws/smithy-go"

	"sluice/core"
)

// failed gives what SQS or the way to it said a code of the core.
func failed(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return core.Wrap(core.Canceled, err, "%s was cut short", op)
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return core.Wrap(codeOf(api.ErrorCode()), err, "%s", op)
	}
	return core.Wrap(core.Unavailable, err, "%s", op)
}

// codeOf is what an error code of SQS means. One that is not known may pass.
func codeOf(code string) core.Code {
	switch code {
	case "InvalidMessageContents", "InvalidParameterValue", "MissingParameter", "InvalidAttributeValue",
		"EmptyBatchRequest", "TooManyEntriesInBatchRequest", "BatchEntryIdsNotDistinct", "InvalidBatchEntryId",
		"AWS.SimpleQueueService.EmptyBatchRequest", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
		"AWS.SimpleQueueService.BatchEntryIdsNotDistinct", "AWS.SimpleQueueService.InvalidBatchEntryId":
		return core.Internal // we have asked for what SQS does not do
	case "BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong":
		return core.TooLarge
	case "ReceiptHandleIsInvalid", "MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight":
		return core.Conflict // the message has passed on
	}
	return core.Unavailable // throttled, no such queue, no access, out of order
}

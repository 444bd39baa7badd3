package sqs

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
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
	switch strings.TrimPrefix(code, "AWS.SimpleQueueService.") {
	case "InvalidMessageContents", "InvalidParameterValue", "MissingParameter", "InvalidAttributeName", "InvalidAttributeValue",
		"EmptyBatchRequest", "TooManyEntriesInBatchRequest", "BatchEntryIdsNotDistinct", "InvalidBatchEntryId":
		return core.Internal // we have asked for what SQS does not do
	case "BatchRequestTooLong":
		return core.TooLarge
	}
	return core.Unavailable // throttled, no such queue, no access, out of order
}

// standing drops the entries of an answer whose message has passed on: it is
// gone, or visible again, or another's, and trying again changes nothing.
func standing(refused []types.BatchResultErrorEntry) []types.BatchResultErrorEntry {
	return slices.DeleteFunc(refused, func(e types.BatchResultErrorEntry) bool {
		switch strings.TrimPrefix(value(e.Code), "AWS.SimpleQueueService.") {
		case "ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidParameterValue":
			return true
		}
		return false
	})
}

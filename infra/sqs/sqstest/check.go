package sqstest

import (
	"regexp"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

const (
	maxBytes   = 1 << 20 // of a message, and of a batch of them
	maxEntries = 10
	maxDelay   = 900
	maxVisible = 12 * 60 * 60
	maxWait    = 20
)

var (
	entryIDs = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,80}$`)
	groupIDs = regexp.MustCompile("^[a-zA-Z0-9!\"#$%&'()*+,./:;<=>?@\\[\\\\\\]^_`{|}~-]{1,128}$")
)

// checkBatch checks a batch request's entries by their ids.
func checkBatch(ids []*string) error {
	switch n := len(ids); {
	case n == 0:
		return &types.EmptyBatchRequest{}
	case n > maxEntries:
		return &types.TooManyEntriesInBatchRequest{}
	}
	seen := map[string]bool{}
	for _, id := range ids {
		switch {
		case id == nil || !entryIDs.MatchString(*id):
			return &types.InvalidBatchEntryId{}
		case seen[*id]:
			return &types.BatchEntryIdsNotDistinct{}
		}
		seen[*id] = true
	}
	return nil
}

// checkMessage checks what is to be sent.
func checkMessage(body, group *string, delay int32) smithy.APIError {
	switch {
	case body == nil || *body == "":
		return &smithy.GenericAPIError{Code: "MissingParameter", Message: "The request must contain the parameter MessageBody."}
	case len(*body) > maxBytes:
		return invalid("Message must be shorter than %d bytes.", maxBytes)
	case !allowed(*body):
		return &types.InvalidMessageContents{}
	case delay < 0 || delay > maxDelay:
		return invalid("Value %d for parameter DelaySeconds is invalid.", delay)
	case group != nil && !groupIDs.MatchString(*group):
		return invalid("Value %q for parameter MessageGroupId is invalid.", *group)
	}
	return nil
}

// allowed reports whether a body has only the characters that SQS takes.
func allowed(body string) bool {
	if !utf8.ValidString(body) {
		return false
	}
	for _, r := range body {
		switch {
		case r == 0x9, r == 0xA, r == 0xD, 0x20 <= r && r <= 0xD7FF, 0xE000 <= r && r <= 0xFFFD, r >= 0x10000:
		default:
			return false
		}
	}
	return true
}

func checkVisibility(seconds int32) smithy.APIError {
	if seconds < 0 || seconds > maxVisible {
		return invalid("Value %d for parameter VisibilityTimeout is invalid.", seconds)
	}
	return nil
}

// failure is an entry that was not taken.
func failure(id *string, err smithy.APIError) types.BatchResultErrorEntry {
	return types.BatchResultErrorEntry{Id: id, Code: new(err.ErrorCode()), Message: new(err.ErrorMessage()), SenderFault: true}
}

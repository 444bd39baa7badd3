package sqs

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"sluice/core"
)

// tries is how often the entries of a batch request are sent that SQS has
// failed to take.
const tries = 3

// chunk sends at most ten entries, given by their numbers, and returns those
// that were not taken.
type chunk func(numbers []int) ([]types.BatchResultErrorEntry, error)

// entryID names the entry of a number in a batch request.
func entryID(n int) *string {
	id := strconv.Itoa(n)
	return &id
}

// inBatches sends entries 0 to n-1, ten at a time, side by side.
func inBatches(op string, n int, send chunk) error {
	f := newFlight()
	for from := 0; from < n; from += maxEntries {
		numbers := span(from, min(n, from+maxEntries))
		if !f.add(func() error { return inRounds(op, numbers, send) }) {
			break
		}
	}
	return f.end()
}

// span are the numbers from one to before another.
func span(from, to int) []int {
	numbers := make([]int, to-from)
	for i := range numbers {
		numbers[i] = from + i
	}
	return numbers
}

// inRounds sends a batch, and what has failed of it again.
func inRounds(op string, numbers []int, send chunk) error {
	var last types.BatchResultErrorEntry
	for range tries {
		refused, err := send(numbers)
		if err != nil {
			return failed(op, err)
		}
		numbers = numbers[:0:0]
		for _, e := range refused {
			code := codeOf(value(e.Code))
			n, err := strconv.Atoi(value(e.Id))
			switch {
			case err != nil:
				return core.Wrap(core.Internal, err, "%s: an answer for an entry that was not sent", op)
			case e.SenderFault && code != core.Unavailable:
				return core.Errorf(code, "%s: %s: %s", op, value(e.Code), value(e.Message))
			default:
				numbers, last = append(numbers, n), e
			}
		}
		if len(numbers) == 0 {
			return nil
		}
	}
	return core.Errorf(core.Unavailable, "%s: %s: %s", op, value(last.Code), value(last.Message))
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

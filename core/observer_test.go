package core

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDeadLettersAreToldOnce: of a batch once for each reason, with its first letter.
func TestDeadLettersAreToldOnce(t *testing.T) {
	t.Parallel()
	var told []string
	o := &Observer{DeadLetters: func(l *DeadLetter, n int) {
		told = append(told, fmt.Sprint(l.ID, " ", l.Reason, " ", n))
	}}
	o.deadLetters(nil)
	o.deadLetters([]DeadLetter{
		{ID: "x/1", Buffer: "a", Reason: DeadPermanent}, {ID: "x/2", Buffer: "a", Reason: DeadExhausted},
		{ID: "x/3", Buffer: "a", Reason: DeadPermanent}, {ID: "y/1", Buffer: "b", Reason: DeadPermanent},
	})
	require.Equal(t, []string{"x/1 permanent 2", "x/2 exhausted 1", "y/1 permanent 1"}, told)
}

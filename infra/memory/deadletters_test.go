package memory_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/deadlettertest"
	"sluice/infra/memory"
)

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	deadlettertest.Run(t, deadlettertest.Harness{
		Name:   "memory",
		Open:   func(testing.TB) deadlettertest.Letters { return memory.New().DeadLetters() },
		Reopen: func(_ testing.TB, l deadlettertest.Letters) deadlettertest.Letters { return l },
	})
}

func TestReopenKeepsDeadLetters(t *testing.T) {
	t.Parallel()
	s := memory.New()
	require.NoError(t, s.DeadLetters().Put(context.Background(), []core.DeadLetter{{ID: "x/1"}}))
	n, err := s.Reopen(true).DeadLetters().Count(context.Background(), core.DeadLetterFilter{})
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

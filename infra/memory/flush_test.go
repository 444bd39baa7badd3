package memory_test

import (
	"testing"

	"sluice/core"
	"sluice/core/flushtest"
	"sluice/infra/memory"
)

// flushes is a store with or without a coordinator that several processes share.
func flushes(name string, shared bool) flushtest.Harness {
	return flushtest.Harness{
		Name: name,
		Open: func(testing.TB, core.Clock) (core.Store, core.Coordinator) {
			if !shared {
				return memory.New(), nil
			}
			return memory.New(), memory.NewCoordinator()
		},
		Reopen: func(_ testing.TB, _ core.Clock, s core.Store, c core.Coordinator) (core.Store, core.Coordinator) {
			return s.(*memory.Store).Reopen(!shared), c
		},
		Abandons: !shared,
	}
}

func TestFlushes(t *testing.T) {
	t.Parallel()
	flushtest.Run(t, flushes("memory", true))
}

func TestFlushesOfOneProcess(t *testing.T) {
	t.Parallel()
	flushtest.Run(t, flushes("memory, one process", false))
}

package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"sluice/core"
	"sluice/core/storetest"
	"sluice/infra/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func harness(name string, abandons bool) storetest.Harness {
	return storetest.Harness{
		Name: name,
		Open: func(testing.TB) core.Store { return memory.New() },
		Reopen: func(_ testing.TB, s core.Store) core.Store {
			return s.(*memory.Store).Reopen(abandons)
		},
		Abandons: abandons,
		Model:    func() core.Store { return memory.New() },
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, harness("memory", false))
}

func TestStoreOfOneProcess(t *testing.T) {
	t.Parallel()
	storetest.Run(t, harness("memory, abandoning leases", true))
}

func TestHistories(t *testing.T) {
	t.Parallel()
	storetest.Histories(t, harness("memory", false))
}

func TestHistoriesOfOneProcess(t *testing.T) {
	t.Parallel()
	storetest.Histories(t, harness("memory, abandoning leases", true))
}

package coordinatortest_test

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"sluice/core"
	"sluice/core/coordinatortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// optimistic runs a change without a lock, and again when another was faster.
type optimistic struct {
	mu      sync.Mutex
	records map[string][]byte
}

func (o *optimistic) Change(_ context.Context, name string, fn func([]byte) ([]byte, error)) error {
	for {
		o.mu.Lock()
		was := o.records[name]
		o.mu.Unlock()
		record, err := fn(bytes.Clone(was))
		if err != nil {
			return err
		}
		if o.swap(name, was, bytes.Clone(record)) {
			return nil
		}
	}
}

func (o *optimistic) swap(name string, was, record []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.records[name]; (now == nil) != (was == nil) || !bytes.Equal(now, was) {
		return false
	}
	o.records[name] = record
	return true
}

// TestOptimistic shows that a coordinator passes which runs changes several times.
func TestOptimistic(t *testing.T) {
	t.Parallel()
	coordinatortest.Run(t, coordinatortest.Harness{
		Name: "optimistic",
		Open: func(testing.TB) core.Coordinator { return &optimistic{records: map[string][]byte{}} },
	})
}

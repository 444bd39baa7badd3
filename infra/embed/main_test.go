package embed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kill ends a store as a crash of its process does, but for its goroutines
// and files, which it frees. What was applied has reached the file system: a
// hint that was answered for, but not waited for, would else make tests depend
// on how far the committer was.
func kill(t testing.TB, s *Store) {
	t.Helper()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	c := s.log.barrier()
	s.log.changed()
	failed := s.log.failed
	s.mu.Unlock()
	if failed == nil {
		require.NoError(t, c.wait())
	}
	s.calls.Wait()
	close(s.stop)
	s.workers.Wait()
	close(s.quit)
	s.commits.Wait()
	s.closeFiles() // on a file system that has crashed this fails, as it may
}

// What a test may wait for something that the store does in the background.
const (
	eventually = time.Minute
	tick       = time.Millisecond
)

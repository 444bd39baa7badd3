package filesend

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/core"
	"sluice/core/format"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errFault = errors.New("a fault of the disk")

// disk opens files whose calls can be made to fail. The zero value works as
// the real one.
type disk struct {
	mu       sync.Mutex
	write    func(f *os.File, p []byte) (int, error)
	sync     func() error
	truncate func() error
	unsynced bool // something was written behind the last sync
}

// set changes how calls go.
func (d *disk) set(change func(*disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

func (d *disk) synced() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.unsynced
}

func (d *disk) open(path string) (handle, error) {
	h, err := openHandle(path)
	if err != nil {
		return nil, err
	}
	return &diskFile{File: h.(*os.File), disk: d}, nil
}

type diskFile struct {
	*os.File

	disk *disk
}

func (f *diskFile) Write(p []byte) (int, error) {
	f.disk.mu.Lock()
	write := f.disk.write
	f.disk.unsynced = true
	f.disk.mu.Unlock()
	if write != nil {
		return write(f.File, p)
	}
	return f.File.Write(p)
}

func (f *diskFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.sync != nil {
		if err := f.disk.sync(); err != nil {
			return err
		}
	}
	f.disk.unsynced = false
	return nil // no test outlives its host
}

func (f *diskFile) Truncate(size int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.truncate != nil {
		if err := f.disk.truncate(); err != nil {
			return err
		}
	}
	f.disk.unsynced = true
	return f.File.Truncate(size)
}

// fail is a call that always fails.
func fail() error { return errFault }

// torn writes the first n bytes and fails with err.
func torn(n int, err error) func(*os.File, []byte) (int, error) {
	return func(f *os.File, p []byte) (int, error) {
		n, werr := f.Write(p[:min(n, len(p))])
		return n, errors.Join(err, werr)
	}
}

// newFileSender makes a sender to a file on d that its test ends.
func newFileSender(t testing.TB, d *disk, path string, f format.Format, opts ...Option) *Sender {
	t.Helper()
	out, err := openFile(path, d.open)
	require.NoError(t, err)
	s := newSender(out, f, opts)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// batchOf is a batch of n items that say which they are.
func batchOf(id string, n int) *core.Batch {
	b := &core.Batch{ID: id, Buffer: "b", Reason: core.ReasonItems, Attempt: 1}
	for i := range n {
		b.Items = append(b.Items, core.Item{Seq: uint64(i + 1), Event: core.Event{
			ID: fmt.Sprintf("%s-%d", id, i), ReceivedAt: 1, Body: fmt.Appendf(nil, `{"batch":%q,"n":%d}`, id, i),
		}})
	}
	return b
}

func encoded(f format.Format, batches ...*core.Batch) string {
	var out []byte
	for _, b := range batches {
		out = format.Append(out, f, b)
	}
	return string(out)
}

func requireFile(t testing.TB, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

// send is a send's outcome.
func send(t testing.TB, s *Sender, b *core.Batch) (core.Outcome, error) {
	t.Helper()
	r := s.Send(t.Context(), b)
	return core.Classify(&r, nil), r.Err
}

// deliver sends batches that must be delivered.
func deliver(t testing.TB, s *Sender, batches ...*core.Batch) {
	t.Helper()
	for _, b := range batches {
		outcome, err := send(t, s, b)
		require.NoError(t, err)
		require.Equal(t, core.Delivered, outcome)
	}
}

// retry sends a batch that must be sent again.
func retry(t testing.TB, s *Sender, b *core.Batch) error {
	t.Helper()
	outcome, err := send(t, s, b)
	require.Equal(t, core.Retry, outcome, "error %v", err)
	require.Equal(t, core.Unavailable, core.CodeOf(err))
	return err
}

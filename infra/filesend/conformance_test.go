package filesend

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core/format"
	"sluice/core/sendertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	sendertest.Run(t, sendertest.Harness{Name: "filesend", New: func(t *testing.T, f format.Format, timeout time.Duration) sendertest.Destination {
		t.Helper()
		d, path := new(disk), filepath.Join(t.TempDir(), "out")
		return sendertest.Destination{
			Sender: newFileSender(t, d, path, f, Timeout(timeout)),
			Received: func() [][]byte {
				got, err := os.ReadFile(path)
				require.NoError(t, err)
				return batches(f, got)
			},
			Stall: func() <-chan struct{} {
				reached, stall := stalling(t)
				d.set(func(d *disk) {
					d.write = func(f *os.File, p []byte) (int, error) {
						stall()
						return f.Write(p)
					}
				})
				return reached
			},
		}
	}})
}

func TestConformanceStream(t *testing.T) {
	t.Parallel()
	sendertest.Run(t, sendertest.Harness{Name: "stdout", New: func(t *testing.T, f format.Format, timeout time.Duration) sendertest.Destination {
		t.Helper()
		var (
			mu    sync.Mutex
			out   bytes.Buffer
			stall = func() {}
		)
		s := NewWriter(writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			stall()
			return out.Write(p)
		}), f, Timeout(timeout))
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return sendertest.Destination{
			Sender: s,
			Received: func() [][]byte {
				mu.Lock()
				defer mu.Unlock()
				return batches(f, bytes.Clone(out.Bytes()))
			},
			Stall: func() (reached <-chan struct{}) {
				mu.Lock()
				defer mu.Unlock()
				reached, stall = stalling(t)
				return reached
			},
		}
	}})
}

// stalling makes a function that stops whoever calls it until the test ends,
// and a channel that says that it was called.
func stalling(t *testing.T) (reached <-chan struct{}, stall func()) {
	t.Helper()
	calls, end := make(chan struct{}, 1), make(chan struct{})
	t.Cleanup(func() { close(end) })
	return calls, func() {
		select {
		case calls <- struct{}{}:
		default:
		}
		<-end
	}
}

// batches takes apart what was written: a line is a batch, but in ndjson,
// where nothing stands between batches.
func batches(f format.Format, written []byte) [][]byte {
	if f == format.NDJSON {
		return [][]byte{written}
	}
	return bytes.Split(bytes.TrimSuffix(written, []byte("\n")), []byte("\n"))
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

var _ io.Writer = writerFunc(nil)

package filesend

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/format"
)

// TestStreamGoesOnWithATornLine: what a stream has taken cannot be taken back,
// so the rest of the line comes first, and the batch once more behind it.
func TestStreamGoesOnWithATornLine(t *testing.T) {
	t.Parallel()
	const f = format.NDJSON
	var out bytes.Buffer
	left := 25 // bytes that the stream takes
	s := NewWriter(writerFunc(func(p []byte) (int, error) {
		n := min(left, len(p))
		left -= n
		out.Write(p[:n])
		if n < len(p) {
			return n, io.ErrClosedPipe
		}
		return n, nil
	}), f)
	a, b := batchOf("a", 2), batchOf("b", 1)
	retry(t, s, a)
	retry(t, s, b) // the rest of a does not get through either
	left = 5
	retry(t, s, b) // a part of the rest
	left = 1 << 20
	deliver(t, s, b, a)
	require.Equal(t, encoded(f, a, b, a), out.String())
	require.NoError(t, s.Close())
}

func TestWriterThatIsShortWithoutAnError(t *testing.T) {
	t.Parallel()
	s := NewWriter(writerFunc(func(p []byte) (int, error) { return len(p) / 2, nil }), format.NDJSON)
	require.ErrorIs(t, retry(t, s, batchOf("a", 1)), io.ErrShortWrite)
	require.NoError(t, s.Close())
}

func TestClose(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	s, err := NewFile(path, format.NDJSON)
	require.NoError(t, err)
	deliver(t, s, batchOf("a", 1))
	require.NoError(t, s.Close())
	require.ErrorContains(t, retry(t, s, batchOf("b", 1)), "closed")
	requireFile(t, path, encoded(format.NDJSON, batchOf("a", 1)))
}

// TestStuckWriter: sends and Close give up on a writer that takes nothing, at
// the very moment of the timeout, and what it was given is whole when it does.
func TestStuckWriter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		release := make(chan struct{})
		s := NewWriter(writerFunc(func(p []byte) (int, error) {
			<-release
			return out.Write(p)
		}), format.NDJSON, Timeout(time.Second))
		begin := time.Now()
		for i := range 3 { // the first holds the turn, the others wait for it
			err := retry(t, s, batchOf("a", 1))
			require.Equal(t, "not written within 1s", core.DetailOf(err))
			require.Equal(t, time.Duration(i+1)*time.Second, time.Since(begin))
		}
		require.Equal(t, core.Unavailable, core.CodeOf(s.Close()))
		require.Equal(t, 4*time.Second, time.Since(begin))
		close(release)
		synctest.Wait()
		require.Equal(t, encoded(format.NDJSON, batchOf("a", 1)), out.String())
	})
}

// TestCloseWaitsForTheWriteUnderWay: a file is not closed under a batch.
func TestCloseWaitsForTheWriteUnderWay(t *testing.T) {
	t.Parallel()
	d, path := new(disk), filepath.Join(t.TempDir(), "out")
	out, err := openFile(path, d.open)
	require.NoError(t, err)
	s := newSender(out, format.NDJSON, nil)
	reached, release := make(chan struct{}), make(chan struct{})
	d.set(func(d *disk) {
		d.write = func(f *os.File, p []byte) (int, error) {
			close(reached)
			<-release
			return f.Write(p)
		}
	})
	sent, closed := make(chan core.Response, 1), make(chan error, 1)
	go func() { sent <- s.Send(t.Context(), batchOf("a", 1)) }()
	<-reached
	go func() { closed <- s.Close() }()
	<-s.closed // Close has begun
	close(release)
	r := <-sent
	require.Equal(t, core.Delivered, core.Classify(&r, nil))
	require.NoError(t, <-closed)
	requireFile(t, path, encoded(format.NDJSON, batchOf("a", 1)))
}

func BenchmarkFile(b *testing.B) {
	s, err := NewFile(filepath.Join(b.TempDir(), "out"), format.NDJSON)
	require.NoError(b, err)
	batch := batchOf("a", 50)
	for i := range batch.Items {
		batch.Items[i].Body = append(append([]byte(`"`), bytes.Repeat([]byte("x"), 1000)...), '"')
	}
	b.SetBytes(batch.Bytes())
	b.ReportAllocs()
	for b.Loop() {
		deliver(b, s, batch)
	}
	require.NoError(b, s.Close())
}

package httpsend

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPayload(t *testing.T) {
	t.Parallel()
	var pool payloadPool
	p := pool.get()
	p.data = append(p.data[:0], "first"...)
	body, err := p.open()
	require.NoError(t, err)
	again, err := p.open()
	require.NoError(t, err)
	p.release() // the send has ended, its bodies have not

	other := pool.get()
	require.NotSame(t, p, other)
	other.data = append(other.data[:0], "other"...)
	for _, b := range []io.ReadCloser{body, again} {
		got, err := io.ReadAll(b)
		require.NoError(t, err)
		require.Equal(t, "first", string(got))
		require.NoError(t, b.Close())
		require.NoError(t, b.Close(), "twice gives it back once")
	}
	require.Zero(t, p.refs.Load())
	_, err = body.Read(make([]byte, 1))
	require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
}

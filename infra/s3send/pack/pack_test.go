package pack_test

import (
	"bytes"
	"io"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
	"sluice/infra/s3send/pack"
)

func unpack(t require.TestingT, name string, packed []byte) []byte {
	var in io.Reader = bytes.NewReader(packed)
	switch name {
	case core.CompressGzip:
		z, err := gzip.NewReader(in)
		require.NoError(t, err)
		in = z
	case core.CompressZstd:
		z, err := zstd.NewReader(in)
		require.NoError(t, err)
		defer z.Close()
		in = z
	}
	raw, err := io.ReadAll(in)
	require.NoError(t, err)
	return raw
}

func TestPack(t *testing.T) {
	t.Parallel()
	for _, name := range append(core.Compressions(), "") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind, ok := pack.Of(name)
			require.True(t, ok)
			rapid.Check(t, func(t *rapid.T) {
				raw := bytes.Repeat(rapid.SliceOf(rapid.Byte()).Draw(t, "raw"), rapid.IntRange(0, 500).Draw(t, "times"))
				packed, err := kind.Pack(raw)
				require.NoError(t, err)
				require.True(t, bytes.Equal(raw, unpack(t, name, packed)))
				again, err := kind.Pack(raw)
				require.NoError(t, err)
				require.Equal(t, packed, again)
			})
		})
	}
	_, ok := pack.Of("lzma")
	require.False(t, ok)
}

// TestSideBySide packs many objects at a time.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	for _, name := range core.Compressions() {
		kind, _ := pack.Of(name)
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				raw := bytes.Repeat([]byte{byte(i), 'x'}, 50_000)
				packed, err := kind.Pack(raw)
				if err != nil || !bytes.Equal(raw, unpack(t, name, packed)) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		all.Wait()
	}
}

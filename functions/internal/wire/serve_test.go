package wire

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/embed"
)

// options are those of a system on a configuration, with a folder of its own.
func options(t *testing.T, path string) ServeOptions {
	t.Helper()
	return ServeOptions{Config: path, Data: t.TempDir(), Listen: "127.0.0.1:0", Grace: patience,
		Stdout: io.Discard, Log: slog.New(slog.DiscardHandler)}
}

// leavesFolder checks that a system that has ended leaves its folder to others.
func leavesFolder(t *testing.T, o *ServeOptions) {
	t.Helper()
	store, err := embed.Open(o.Data, embed.Options{})
	require.NoError(t, err)
	require.NoError(t, store.Close())
}

func TestServeRefusesAConfiguration(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		destination string
		from, to    string
		code        core.Code
		says        []string
	}{
		{"with faults, of which it tells all", "type: stdout, timeout: 1h", "to: out", "to: nowhere", core.Invalid,
			[]string{"destinations.out.timeout", "buffers.b.to"}},
		{"with a secret that is not set", "type: http, url: 'http://127.0.0.1/', allowPrivate: true, secrets: ['env:SLUICE_TEST_NOT_SET']", "", "", core.Invalid,
			[]string{"destinations.out", "SLUICE_TEST_NOT_SET"}},
		{"with destinations that cannot be opened, of which it tells all", "type: file, path: /nowhere/1", "buffers:", "  too: {type: file, path: /nowhere/2}\nbuffers:", core.Invalid,
			[]string{"destinations.out", "destinations.too"}},
		{
			"with references that lead nowhere, of which it tells all and where they are",
			"type: http, url: 'http://127.0.0.1/', allowPrivate: true, headers: {x-key: 'env:SLUICE_TEST_KEY'}, secrets: ['env:SLUICE_TEST_SECRET']",
			"sources:", "sources:\n  jobs: {type: sqs, queue: 'env:SLUICE_TEST_QUEUE'}", core.Invalid,
			[]string{
				"sources.jobs.queue: the reference names the environment variable SLUICE_TEST_QUEUE, which is not set; set it before the start",
				"destinations.out.headers.x-key: the reference names the environment variable SLUICE_TEST_KEY",
				"destinations.out.secrets[0]: the reference names the environment variable SLUICE_TEST_SECRET",
			},
		},
		{"with a token that is not set", "type: stdout", "sources:", "control: {tokens: ['env:SLUICE_TEST_NOT_SET']}\nsources:", core.Invalid,
			[]string{"control.tokens", "SLUICE_TEST_NOT_SET"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := configure(t, "", tc.destination)
			if tc.from != "" {
				replaceInFile(t, path, tc.from, tc.to)
			}
			o := options(t, path)
			err := Serve(t.Context(), o)
			require.Equal(t, tc.code, core.CodeOf(err), "%v", err)
			for _, s := range tc.says {
				require.ErrorContains(t, err, s)
			}
		})
	}
}

// A system that cannot start on a store that it has opened lets go of it.
func TestServeThatCannotStart(t *testing.T) {
	t.Parallel()
	path := configure(t, "", "type: file, path: /nowhere/1")
	o, l := options(t, path), newPipes()
	err := serveOn(t.Context(), read(t, path), l, &o)
	require.ErrorContains(t, err, "/nowhere")
	leavesFolder(t, &o)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed, "nor does it go on listening")
}

func TestServeWithoutAConfiguration(t *testing.T) {
	t.Parallel()
	o := options(t, filepath.Join(t.TempDir(), "none.yaml"))
	err := Serve(t.Context(), o)
	require.Error(t, err)
	require.ErrorContains(t, err, "none.yaml")
	untouched(t, &o)
}

// untouched checks that a system has not so much as opened its folder.
func untouched(t *testing.T, o *ServeOptions) {
	t.Helper()
	entries, err := os.ReadDir(o.Data)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestServeOnAnAddressThatIsTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := options(t, configure(t, "", "type: stdout"))
	o.Listen = l.Addr().String()
	err = Serve(t.Context(), o)
	require.Equal(t, core.Unavailable, core.CodeOf(err))
	require.ErrorContains(t, err, "cannot listen on "+o.Listen)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.NoError(t, l.Close())
	untouched(t, &o)
}

func TestAnnounced(t *testing.T) {
	t.Parallel()
	everywhere := &net.TCPAddr{IP: net.IPv6unspecified, Port: 8083}
	for asked, want := range map[string]string{
		"0.0.0.0:8083": "http://0.0.0.0:8083", "0.0.0.0:0": "http://0.0.0.0:8083", "[::]:8083": "http://[::]:8083",
		":8083": "http://[::]:8083", "localhost:8083": "http://localhost:8083", "": "http://[::]:8083",
	} {
		require.Equal(t, want, announced(asked, everywhere), asked)
	}
}

func TestServeOnAFolderThatIsTaken(t *testing.T) {
	t.Parallel()
	path := configure(t, "", "type: stdout")
	o := options(t, path)
	store, err := embed.Open(o.Data, embed.Options{})
	require.NoError(t, err)
	err = Serve(t.Context(), o)
	require.Equal(t, core.Unavailable, core.CodeOf(err))
	require.ErrorContains(t, err, "is in use by process")
	l := newPipes()
	require.Error(t, serveOn(t.Context(), read(t, path), l, &o))
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed, "nor does it go on listening")
	require.NoError(t, store.Close())
}

// broken is a listener that fails when it is told to.
type broken struct {
	*pipes
	fails chan struct{}
}

// Accept fails.
func (b *broken) Accept() (net.Conn, error) {
	<-b.fails
	return nil, errors.New("too many files are open")
}

// A system whose listener fails ends with an error, but no less orderly than
// when it is stopped: what it is sending it sends to the end.
func TestServeOnAListenerThatFails(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	path := configure(t, "", e.destination(""))
	o := options(t, path)
	store, err := embed.Open(o.Data, embed.Options{})
	require.NoError(t, err)
	n, _, _ := newNodeOn(t, store, io.Discard) // takes an event, but is not at work
	n.now, err = newServices(read(t, path), n.parts)
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, take(t, n, "a"))
	n.stop(t.Context())
	n.close(t.Context())
	require.NoError(t, store.Close())

	b, c := &broken{newPipes(), make(chan struct{})}, read(t, path)
	ended := make(chan error, 1)
	go func() { ended <- serveOn(context.Background(), c, b, &o) }()
	require.Equal(t, event("a"), within(t, e.got, "a send"))
	close(b.fails)
	e.answer(1)
	err = within(t, ended, "the end")
	require.Equal(t, core.Unavailable, core.CodeOf(err))
	require.ErrorContains(t, err, "the listener failed: too many files are open")
	_, err = b.pipes.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	leavesFolder(t, &o)
}

package wire

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/embed"
)

// newNodeOn is a node on a store, the outcome of each of its attempts, and
// what it logs.
func newNodeOn(t *testing.T, store *embed.Store, out io.Writer) (*node, chan core.Outcome, *logs) {
	t.Helper()
	log := newLogs()
	n := newNode(store, &ServeOptions{Stdout: out, Log: slog.New(slog.NewTextHandler(log, nil))}, false)
	attempts := make(chan core.Outcome, 100)
	observer := *n.parts.ports.Observer
	tell := observer.Attempt
	observer.Attempt = func(a *core.Attempt) {
		tell(a)
		attempts <- a.Outcome
	}
	n.parts.ports.Observer = &observer
	return n, attempts, log
}

// disk is a folder of the system's, whose syncs can be made to fail.
type disk struct{ broken atomic.Bool }

func (d *disk) MkdirAll(dir string) error    { return os.MkdirAll(dir, 0o700) }
func (d *disk) Rename(from, to string) error { return os.Rename(from, to) }
func (d *disk) Remove(name string) error     { return os.Remove(name) }
func (d *disk) SyncDir(string) error         { return nil }

func (d *disk) List(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	return paths, err
}

func (d *disk) Create(name string) (embed.File, error) {
	return d.file(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (d *disk) Open(name string) (embed.File, error) { return d.file(name, os.O_RDWR) }

func (d *disk) Lock(name string) (io.Closer, error) { return d.file(name, os.O_RDWR|os.O_CREATE) }

func (d *disk) file(name string, flag int) (diskFile, error) {
	f, err := os.OpenFile(name, flag, 0o600)
	return diskFile{f, d}, err
}

type diskFile struct {
	*os.File
	disk *disk
}

// Size is the file's size.
func (f diskFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Allocate cannot.
func (f diskFile) Allocate(int64) error { return errors.ErrUnsupported }

// Sync fails when the disk is broken.
func (f diskFile) Sync() error {
	if f.disk.broken.Load() {
		return syscall.EIO
	}
	return nil
}

// Once the store has failed, the system is alive but takes nothing, and says
// so to whoever asks whether it is ready.
func TestReadiness(t *testing.T) {
	t.Parallel()
	d := new(disk)
	store, err := embed.Open(t.TempDir(), embed.Options{Sync: true, FS: d})
	require.NoError(t, err)
	n, attempts, _ := newNodeOn(t, store, io.Discard)
	require.NoError(t, n.start(read(t, configure(t, "", "type: stdout"))))
	get := func(path string) int {
		w := httptest.NewRecorder()
		n.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	require.Equal(t, http.StatusOK, get("/readyz"))
	require.Equal(t, http.StatusAccepted, take(t, n, "a"))
	require.Equal(t, core.Delivered, within(t, attempts, "the send"))

	d.broken.Store(true)
	require.Equal(t, http.StatusServiceUnavailable, take(t, n, "b"))
	require.Equal(t, http.StatusServiceUnavailable, get("/readyz"))
	require.Equal(t, http.StatusOK, get("/healthz"))
	d.broken.Store(false)
	require.Equal(t, http.StatusServiceUnavailable, take(t, n, "c"))
	require.Equal(t, http.StatusServiceUnavailable, get("/readyz"), "what the disk holds only a new start can tell")

	n.stop(t.Context())
	n.close(t.Context())
	require.Error(t, store.Close())
}

// What the API refuses by itself counts as refused too.
func TestRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	store, err := embed.Open(t.TempDir(), embed.Options{})
	require.NoError(t, err)
	n, _, _ := newNodeOn(t, store, io.Discard)
	require.NoError(t, n.start(read(t, configure(t, "", "type: stdout"))))
	do := func(method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://127.0.0.1"+path, strings.NewReader(body))
		r.RemoteAddr = "127.0.0.1:1"
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		n.ServeHTTP(w, r)
		return w
	}
	require.Equal(t, http.StatusBadRequest, do(http.MethodPost, "/v1/sources/in", "{").Code)
	require.Contains(t, do(http.MethodGet, "/metrics", "").Body.String(), `sluice_events_total{outcome="refused",source="in"} 1`)
	n.stop(t.Context())
	n.close(t.Context())
	require.NoError(t, store.Close())
}

package filesend

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/format"
)

func TestLines(t *testing.T) {
	t.Parallel()
	for _, name := range format.Names() {
		f, err := format.Parse(name)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "out")
		s := newFileSender(t, new(disk), path, f)
		first, empty, last := batchOf("a", 2), batchOf("b", 0), batchOf("c", 1)
		first.Items[0].Body = []byte("{\r\n\"a\": [1,\n2]\n}")
		first.Items[1].Body = []byte("two\nlines")
		deliver(t, s, first, empty, last)

		end := "\n"
		if f == format.NDJSON {
			end = ""
		}
		emptyLine := encoded(f, empty)
		if emptyLine != "" {
			emptyLine += end
		}
		requireFile(t, path, encoded(f, first)+end+emptyLine+encoded(f, last)+end)
	}
}

func TestNewFileRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain"), nil, 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	tests := []struct{ name, path, want string }{
		{"a missing folder", "missing/out", "there is no folder " + filepath.Join(dir, "missing")},
		{"a file for a folder", "plain/out", "there is no folder " + filepath.Join(dir, "plain")},
		{"a folder", ".", "not a regular file"},
		{"a pipe", "fifo", "not a regular file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := NewFile(filepath.Join(dir, tt.path), format.NDJSON)
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, core.Invalid, core.CodeOf(err))
		})
	}
	for _, tt := range []struct {
		err  error
		want core.Code
	}{{fs.ErrPermission, core.Invalid}, {syscall.EROFS, core.Unavailable}, {syscall.EMFILE, core.Unavailable}} {
		_, err := openFile(filepath.Join(dir, "out"), func(string) (handle, error) { return nil, tt.err })
		require.Equal(t, tt.want, core.CodeOf(err), "%v", tt.err)
	}
}

func TestNewFileKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	for _, id := range []string{"a", "b"} {
		s, err := NewFile(path, format.NDJSON)
		require.NoError(t, err)
		deliver(t, s, batchOf(id, 2))
		require.NoError(t, s.Close())
	}
	requireFile(t, path, encoded(format.NDJSON, batchOf("a", 2), batchOf("b", 2)))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
}

// TestTornEnd opens files as a crash may have left them.
func TestTornEnd(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*tailStep)
	tests := []struct{ name, there, kept string }{
		{"empty", "", ""},
		{"whole", "{\"a\":1}\n", "{\"a\":1}\n"},
		{"torn behind a line", "{\"a\":1}\n{\"b\":", "{\"a\":1}\n"},
		{"torn first line", "{\"a\":1", ""},
		{"without its line break", "1\n{\"a\":1}", "1\n{\"a\":1}\n"},
		{"a string without its line break", `"a"`, "\"a\"\n"},
		{"a number that may be torn", "1\n123", "1\n"},
		{"two values in a line", "1\n{}{}", "1\n"},
		{"zeros of a lost page", "1\n\x00\x00\x00", "1\n"},
		{"a long torn line", "1\n\"" + long, "1\n"},
		{"a long whole line", "1\n\"" + long + "\"", "1\n\"" + long + "\"\n"},
		{"long and torn from the start", "\"" + long, ""},
		{"a line break at the edge of a step", "1\n" + long[:tailStep], "1\n"},
		{"a line break at the start of a step", "1\n" + long[:tailStep-1], "1\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "out")
			require.NoError(t, os.WriteFile(path, []byte(tt.there), 0o600))
			s := newFileSender(t, new(disk), path, format.NDJSON)
			requireFile(t, path, tt.kept)
			deliver(t, s, batchOf("a", 1))
			requireFile(t, path, tt.kept+encoded(format.NDJSON, batchOf("a", 1)))
		})
	}
}

func TestFileWithoutLinesIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(tailMax+1)) // a hole: zeros that take no space
	require.NoError(t, f.Close())
	_, err = NewFile(path, format.NDJSON)
	require.Equal(t, core.Invalid, core.CodeOf(err))
	require.ErrorContains(t, err, "no line break")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, int64(tailMax+1), info.Size())
}

func TestRotation(t *testing.T) {
	t.Parallel()
	const f = format.NDJSON
	dir := filepath.Join(t.TempDir(), "logs")
	path, old := filepath.Join(dir, "out"), filepath.Join(dir, "out.1")
	require.NoError(t, os.Mkdir(dir, 0o700))
	s := newFileSender(t, new(disk), path, f)
	a, b, c, d, e := batchOf("a", 1), batchOf("b", 1), batchOf("c", 1), batchOf("d", 1), batchOf("e", 1)

	deliver(t, s, a)
	require.NoError(t, os.Rename(path, old))
	deliver(t, s, b)
	requireFile(t, old, encoded(f, a))
	requireFile(t, path, encoded(f, b))

	require.NoError(t, os.Remove(path))
	deliver(t, s, c)
	requireFile(t, path, encoded(f, c))

	require.NoError(t, os.Truncate(path, 0)) // logrotate's copytruncate
	deliver(t, s, d)
	requireFile(t, path, encoded(f, d))

	require.NoError(t, os.RemoveAll(dir))
	require.ErrorIs(t, retry(t, s, e), fs.ErrNotExist)
	require.NoError(t, os.Mkdir(dir, 0o700))
	deliver(t, s, e)
	requireFile(t, path, encoded(f, e))
}

// TestFailedWrites: whatever fails, the batch is to be retried, and the file
// holds whole batches only, each that was delivered once.
func TestFailedWrites(t *testing.T) {
	t.Parallel()
	const f = format.Envelope
	tests := []struct {
		name  string
		fault func(d *disk)
		cause error
	}{
		{"nothing written", func(d *disk) { d.write = torn(0, syscall.ENOSPC) }, syscall.ENOSPC},
		{"torn, disk full", func(d *disk) { d.write = torn(10, syscall.ENOSPC) }, syscall.ENOSPC},
		{"torn, no error", func(d *disk) { d.write = torn(10, nil) }, io.ErrShortWrite},
		{"written, but with an error", func(d *disk) { d.write = torn(1<<20, syscall.EIO) }, syscall.EIO},
		{"not synced", func(d *disk) {
			calls := 0
			d.sync = func() error {
				if calls++; calls == 1 { // the one that follows the cut may work
					return errFault
				}
				return nil
			}
		}, errFault},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, path := new(disk), filepath.Join(t.TempDir(), "out")
			s := newFileSender(t, d, path, f)
			deliver(t, s, batchOf("a", 2))
			d.set(tt.fault)
			err := retry(t, s, batchOf("b", 2))
			require.ErrorIs(t, err, tt.cause)
			requireFile(t, path, encoded(f, batchOf("a", 2))+"\n")
			d.set(func(d *disk) { d.write, d.sync = nil, nil })
			deliver(t, s, batchOf("b", 2))
			requireFile(t, path, encoded(f, batchOf("a", 2))+"\n"+encoded(f, batchOf("b", 2))+"\n")
		})
	}
}

func TestDiskFullIsSaid(t *testing.T) {
	t.Parallel()
	d := new(disk)
	s := newFileSender(t, d, filepath.Join(t.TempDir(), "out"), format.NDJSON)
	d.set(func(d *disk) { d.write = torn(3, syscall.ENOSPC) })
	require.Equal(t, "the disk is full", core.DetailOf(retry(t, s, batchOf("a", 1))))
}

// TestTornEndThatStays: while the torn end cannot be cut off, nothing follows it.
func TestTornEndThatStays(t *testing.T) {
	t.Parallel()
	const f = format.NDJSON
	for name, broken := range map[string]func(*disk){
		"truncate": func(d *disk) { d.truncate = fail },
		"sync":     func(d *disk) { d.sync = fail },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, path := new(disk), filepath.Join(t.TempDir(), "out")
			s := newFileSender(t, d, path, f)
			deliver(t, s, batchOf("a", 1))
			d.set(func(d *disk) { d.write = torn(5, syscall.EIO) })
			d.set(broken)
			require.ErrorIs(t, retry(t, s, batchOf("b", 1)), errFault)
			d.set(func(d *disk) { d.write = nil })
			require.ErrorIs(t, retry(t, s, batchOf("b", 1)), errFault)
			d.set(func(d *disk) { d.truncate, d.sync = nil, nil })
			deliver(t, s, batchOf("b", 1))
			requireFile(t, path, encoded(f, batchOf("a", 1), batchOf("b", 1)))
		})
	}
}

func TestRotatedWithATornEnd(t *testing.T) {
	t.Parallel()
	const f = format.NDJSON
	d, path := new(disk), filepath.Join(t.TempDir(), "out")
	s := newFileSender(t, d, path, f)
	d.set(func(d *disk) { d.write, d.truncate = torn(5, syscall.EIO), fail })
	retry(t, s, batchOf("a", 1))
	require.NoError(t, os.Rename(path, path+".1"))
	d.set(func(d *disk) { d.write, d.truncate = nil, nil })
	deliver(t, s, batchOf("a", 1))
	requireFile(t, path+".1", "")
	requireFile(t, path, encoded(f, batchOf("a", 1)))
}

func TestDeliveredMeansSynced(t *testing.T) {
	t.Parallel()
	d := new(disk)
	s := newFileSender(t, d, filepath.Join(t.TempDir(), "out"), format.NDJSON)
	for range 3 {
		deliver(t, s, batchOf("a", 1))
		require.True(t, d.synced())
	}
}

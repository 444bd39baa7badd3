package filesend

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"sluice/core"
)

// handle is what is used of an open file.
type handle interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Sync() error
	Truncate(size int64) error
}

var _ handle = (*os.File)(nil)

// file is an output that is durable when append returns.
type file struct {
	path string
	open func(path string) (handle, error)
	h    handle // nil: to be opened
	// undo is the size to cut h back to, after a write that failed; -1: none.
	undo int64
}

// openFile opens the file at once, so that what is wrong with it shows at start.
func openFile(path string, open func(path string) (handle, error)) (*file, error) {
	f := &file{path: path, open: open, undo: -1}
	err := f.reopen()
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, core.Wrap(core.Invalid, err, "path: there is no folder %s; create it", filepath.Dir(path))
	case errors.Is(err, fs.ErrPermission):
		return nil, core.Wrap(core.Invalid, err, "path: %s may not be written; allow it, or choose another", path)
	case core.CodeOf(err) == core.Invalid:
		return nil, err
	}
	return nil, core.Wrap(core.Unavailable, err, "%s cannot be opened", path)
}

// openHandle opens a regular file for appending, and for reading its end.
func openHandle(path string) (handle, error) {
	// Looked at first, since opening may already do something to a device.
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, core.Errorf(core.Invalid, "path: %s is not a regular file", path)
	}
	return os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
}

// append writes the batch and syncs it. When either fails the file is cut back
// to where it was: a failed sync has lost pages for good, so that what was
// written can no more be relied upon than after a failed write.
func (f *file) append(batch []byte) error {
	if err := f.ready(); err != nil {
		return err
	}
	info, err := f.h.Stat()
	if err != nil {
		return err
	}
	n, err := write(f.h, batch)
	if err == nil {
		err = f.h.Sync()
	}
	if err == nil {
		return nil
	}
	if n > 0 {
		f.undo = info.Size()
		err = errors.Join(err, f.mend())
	}
	return err
}

// ready makes h the file that is at path, with nothing torn at its end.
func (f *file) ready() error {
	if f.h != nil {
		if moved, err := f.moved(); err != nil {
			return err
		} else if moved {
			return f.reopen()
		}
		return f.mend()
	}
	return f.reopen()
}

// moved reports whether another file, or none, is at path now.
func (f *file) moved() (bool, error) {
	there, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	mine, err := f.h.Stat()
	return err == nil && !os.SameFile(there, mine), err
}

// mend cuts off what a failed write has left; until it can, nothing is written.
func (f *file) mend() error {
	if f.undo < 0 {
		return nil
	}
	if err := f.h.Truncate(f.undo); err != nil {
		return err
	}
	if err := f.h.Sync(); err != nil {
		return err
	}
	f.undo = -1
	return nil
}

// reopen opens the file at path, durably when it is new, in place of h. A torn
// end of the old one is cut off if that can be; nothing comes behind it.
func (f *file) reopen() error {
	if f.h != nil {
		_ = f.mend() // the file has been given up by whoever moved it
		_ = f.h.Close()
		f.h, f.undo = nil, -1
	}
	h, err := f.open(f.path)
	if err != nil {
		return err
	}
	if err := errors.Join(mendTail(h), syncFolder(f.path)); err != nil {
		return errors.Join(err, h.Close())
	}
	f.h = h
	return nil
}

func (f *file) close() error {
	if f.h == nil {
		return nil
	}
	return core.Wrap(core.Unavailable, errors.Join(f.mend(), f.h.Close()), "%s cannot be closed", f.path)
}

// syncFolder makes a new file's name durable.
func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

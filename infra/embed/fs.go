package embed

import "io"

// FS is the file system that a store lives on: the seam behind which tests
// crash it, tear its writes and fill its disk. Names are whole paths.
type FS interface {
	MkdirAll(dir string) error
	List(dir string) ([]string, error) // the names in a folder, without it
	Create(name string) (File, error)  // an empty file, to read and write
	Open(name string) (File, error)    // an existing file, to read and write
	Rename(from, to string) error
	Remove(name string) error
	SyncDir(dir string) error // makes creations, renames and removals durable

	// Lock takes the lock file of that name, or fails at once with a
	// [LockedError] when another process has it. A lock file whose owner has
	// died is no obstacle.
	Lock(name string) (io.Closer, error)
}

// File is an open file of an [FS].
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Allocate grows the file to size bytes, and keeps room for them on the
	// disk where the system can: errors.ErrUnsupported where it cannot.
	Allocate(size int64) error
	// Sync makes what was written durable.
	Sync() error
}

// LockedError says that another process has the lock.
type LockedError struct{ Owner string } // its pid, as it wrote it

func (e *LockedError) Error() string { return "locked by process " + e.Owner }

package bench

import (
	"os"
	"syscall"
)

// fdatasync commits a file's data, and of its metadata only what reading it needs.
func fdatasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

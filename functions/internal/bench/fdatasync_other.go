//go:build !linux

package bench

import "os"

// fdatasync commits a file.
func fdatasync(f *os.File) error { return f.Sync() }

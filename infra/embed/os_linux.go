package embed

import (
	"errors"
	"syscall"
)

// Sync commits the data, and of the metadata only what reading it back needs.
func (f osFile) Sync() error {
	return retryInterrupted(func() error { return syscall.Fdatasync(int(f.Fd())) })
}

func (f osFile) Allocate(size int64) error {
	return retryInterrupted(func() error { return syscall.Fallocate(int(f.Fd()), 0, 0, size) })
}

func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

//go:build !linux

package embed

import "errors"

// Allocate cannot keep room here; the caller writes zeros instead.
func (f osFile) Allocate(int64) error { return errors.ErrUnsupported }

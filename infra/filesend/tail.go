package filesend

import (
	"bytes"
	"encoding/json"
	"strings"

	"sluice/core"
)

// The last line is looked for in the last tailStep bytes, then in twice as
// many, up to tailMax: no batch is that long, and cutting off what something
// else has written would destroy it.
const (
	tailStep = 64 << 10
	tailMax  = 64 << 20
)

// mendTail sees to it that the file ends with a whole line. A last line
// without a line break gets one when it is whole, and is cut off otherwise.
func mendTail(h handle) error {
	info, err := h.Stat()
	if err != nil {
		return err
	}
	tail, err := lastLine(h, info.Size())
	switch {
	case err != nil:
		return err
	case len(tail) == 0:
		return nil
	case whole(tail):
		_, err = write(h, []byte{'\n'})
	default:
		err = h.Truncate(info.Size() - int64(len(tail)))
	}
	if err != nil {
		return err
	}
	return h.Sync()
}

// lastLine is what stands behind the last line break.
func lastLine(h handle, size int64) ([]byte, error) {
	for n := int64(tailStep); ; n *= 2 {
		end := make([]byte, min(n, size))
		if _, err := h.ReadAt(end, size-int64(len(end))); err != nil {
			return nil, err
		}
		i := bytes.LastIndexByte(end, '\n')
		switch {
		case i >= 0 || n >= size:
			return end[i+1:], nil
		case n >= tailMax:
			return nil, core.Errorf(core.Invalid, "path: the file's last %d MB have no line break; choose another file", tailMax>>20)
		}
	}
}

// whole reports whether a line is a JSON value that has its end: a number
// could go on.
func whole(line []byte) bool {
	return strings.IndexByte(`}]"`, line[len(line)-1]) >= 0 && json.Valid(line)
}

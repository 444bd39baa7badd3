package httpsend

import (
	"io"
	"net"
	"sync"
)

// copySize is how much of a batch goes into one system call, in bytes.
const copySize = 64 << 10

// conn is a TCP connection that copies from buffers which are used again.
// net/http hands a request's body to ReadFrom, and net.TCPConn's own makes a
// buffer of 32 KB for every one of them.
type conn struct {
	net.Conn

	buffers *sync.Pool // of *[copySize]byte
}

// ReadFrom writes all of r.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	buf, ok := c.buffers.Get().(*[copySize]byte)
	if !ok {
		buf = new([copySize]byte)
	}
	defer c.buffers.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{c.Conn}, r, buf[:])
}

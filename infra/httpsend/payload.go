package httpsend

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// maxKept is the largest buffer that is kept for another batch, in bytes.
const maxKept = 2 << 20

// payload is an encoded batch. Its buffer is used again once nobody can read
// it any more: the transport may read a request's body, and open it anew, for
// as long as it has not closed it, even after the send has returned.
type payload struct {
	data []byte
	refs atomic.Int32 // the send, and every body not yet closed
	pool *payloadPool
}

// payloadPool keeps the buffers that are free. The zero value is ready.
type payloadPool struct{ free sync.Pool }

func (pool *payloadPool) get() *payload {
	p, ok := pool.free.Get().(*payload)
	if !ok {
		p = &payload{pool: pool}
	}
	p.refs.Store(1)
	return p
}

// release gives up one reference; the last one frees the buffer.
func (p *payload) release() {
	if p.refs.Add(-1) == 0 && cap(p.data) <= maxKept {
		p.pool.free.Put(p)
	}
}

// open is another reader of the payload from its start.
func (p *payload) open() (io.ReadCloser, error) {
	p.refs.Add(1)
	return &body{payload: p}, nil
}

// body reads a payload until it is closed. Close may come while a Read runs.
type body struct {
	mu      sync.Mutex
	payload *payload // nil once closed
	off     int
}

// Read copies the next bytes; it keeps no hold on the buffer.
func (b *body) Read(dst []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.payload == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.off == len(b.payload.data) {
		return 0, io.EOF
	}
	n := copy(dst, b.payload.data[b.off:])
	b.off += n
	return n, nil
}

// Close gives the payload back, once.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.payload != nil {
		b.payload.release()
		b.payload = nil
	}
	return nil
}

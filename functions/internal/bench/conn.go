package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// answerTimeout is how long a request may take; one that takes longer is not
// an answer any more.
const answerTimeout = 30 * time.Second

// conn is one keep-alive HTTP/1.1 connection, dialled when it is first needed
// and again after a failure. It is this plain so that the load costs little of
// the machine that it shares with the server.
type conn struct {
	addr    string
	net     net.Conn
	in      *bufio.Reader
	unwatch func() bool
}

// post sends a whole request and returns the answer's status, and the body of
// an answer that is not a 2xx.
func (c *conn) post(ctx context.Context, request []byte) (status int, body string, err error) {
	if c.net == nil {
		if err := c.dial(ctx); err != nil {
			return 0, "", err
		}
	}
	if err := c.net.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		c.close()
		return 0, "", err
	}
	if _, err := c.net.Write(request); err != nil {
		c.close()
		return 0, "", err
	}
	a, err := readAnswer(c.in)
	if err != nil || a.last {
		c.close()
	}
	return a.status, a.body, err
}

func (c *conn) dial(ctx context.Context) error {
	var d net.Dialer
	n, err := d.DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return err
	}
	c.net, c.in = n, bufio.NewReaderSize(n, 4<<10)
	c.unwatch = context.AfterFunc(ctx, func() { _ = n.Close() })
	return nil
}

func (c *conn) close() {
	if c.net == nil {
		return
	}
	c.unwatch()
	_ = c.net.Close() // a second close, after ctx's, changes nothing
	c.net = nil
}

// answer is what a server said to one request.
type answer struct {
	status int
	body   string // of an answer that is not a 2xx, cut
	last   bool   // the server closes the connection
}

var errAnswer = errors.New("not an HTTP/1.1 answer with a content length")

// readAnswer reads one answer of a stated length, as any short answer of
// net/http is.
func readAnswer(in *bufio.Reader) (answer, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return answer{}, err
	}
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.")) {
		return answer{}, errAnswer
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return answer{}, errAnswer
	}
	a := answer{status: status}
	length, err := a.readHeader(in)
	if err != nil {
		return answer{}, err
	}
	if a.status/100 == 2 {
		_, err = in.Discard(length)
		return a, err
	}
	text, err := io.ReadAll(io.LimitReader(in, int64(length)))
	a.body = string(text[:min(len(text), 300)])
	return a, err
}

// readHeader reads up to the body and returns its length.
func (a *answer) readHeader(in *bufio.Reader) (length int, err error) {
	length = -1
	if a.status == 204 || a.status == 304 {
		length = 0
	}
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		name, value, found := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
		switch {
		case !found && len(name) == 0:
			if length < 0 {
				return 0, errAnswer
			}
			return length, nil
		case bytes.EqualFold(name, []byte("content-length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, fmt.Errorf("content length: %w", err)
			}
		case bytes.EqualFold(name, []byte("connection")):
			a.last = bytes.EqualFold(bytes.TrimSpace(value), []byte("close"))
		}
	}
}

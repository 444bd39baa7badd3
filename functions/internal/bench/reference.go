package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// The references, served by this program in a process of its own.
const (
	bareServer    = "bare"    // reads the body and answers 202
	durableServer = "durable" // the same once the body is on disk
)

// serveReference serves a reference on an address until ctx ends.
func serveReference(ctx context.Context, kind, addr, file string) error {
	h := http.HandlerFunc(acceptBare)
	if kind == durableServer {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		c := &committer{file: f, queue: make(chan commit, maxCommit)}
		var wg sync.WaitGroup
		wg.Go(func() { c.run(ctx) })
		defer wg.Wait()
		h = c.accept
	} else if kind != bareServer {
		return fmt.Errorf("no reference %q: bare or durable", kind)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: answerTimeout}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := server.Shutdown(stop); err != nil {
		_ = server.Close() // connections that will not end
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func acceptBare(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, "the body ended early", http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// committer does the least that any durable server must: one append and one
// fdatasync for all requests that wait for it.
type committer struct {
	file  *os.File
	queue chan commit
}

type commit struct {
	body   []byte
	result chan error
}

// maxCommit bounds the requests that share an fdatasync.
const maxCommit = 1024

func (c *committer) accept(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body ended early", http.StatusBadRequest)
		return
	}
	k := commit{body: body, result: make(chan error, 1)}
	c.queue <- k
	select {
	case err = <-k.result:
	case <-r.Context().Done(): // the client has gone, or the server stops
		return
	}
	if err != nil {
		http.Error(w, "the disk failed", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// run commits what waits, all of it at a time, until ctx ends.
func (c *committer) run(ctx context.Context) {
	var group []commit
	var buf []byte
	for {
		select {
		case first := <-c.queue:
			group, buf = append(group[:0], first), append(buf[:0], first.body...)
		case <-ctx.Done():
			return
		}
		for len(group) < maxCommit && len(c.queue) > 0 {
			k := <-c.queue // the only reader: what was counted is there
			group, buf = append(group, k), append(buf, k.body...)
		}
		_, err := c.file.Write(buf)
		if err == nil {
			err = fdatasync(c.file)
		}
		for _, k := range group {
			k.result <- err
		}
	}
}

// S3 is the stand-in for Amazon S3: versitygw over a folder of its own, on a
// loopback port. It prints its URL as the first line of stdout, and serves until
// stdin ends, so that it never outlives the process that started it.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	if err := run(); err != nil {
		log.Fatal("s3: ", err)
	}
}

func run() error {
	out := os.Stdout
	quiet, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	os.Stdout = quiet // versitygw talks
	dir, err := os.MkdirTemp("", "sluice-s3-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	data, attributes := filepath.Join(dir, "data"), filepath.Join(dir, "attributes")
	for _, d := range []string{data, attributes} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	sidecar, err := meta.NewSideCar(attributes)
	if err != nil {
		return err
	}
	store, err := posix.New(data, sidecar, posix.PosixOpts{SideCarDir: attributes, Concurrency: 64})
	if err != nil {
		return err
	}
	address, err := free()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	go announce(ctx, out, address)
	return embedgw.RunVersityGW(ctx, store, &embedgw.Config{
		RootUserAccess: "local", RootUserSecret: "local", Region: "us-east-1", Ports: []string{address},
		MaxConnections: 1024, MaxRequests: 1024, MultipartMaxParts: 10_000, KeepAlive: true, Quiet: true,
	})
}

// free is a port that nobody listens on.
func free() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// announce says where the store listens, once it does.
func announce(ctx context.Context, out io.Writer, address string) {
	for ctx.Err() == nil {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			fmt.Fprintln(out, "http://"+address)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

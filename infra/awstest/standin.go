package awstest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// missingError says that this machine cannot start a stand-in.
type missingError string

func (e missingError) Error() string { return string(e) }

// standin starts one process, which the tests of this binary share.
type standin func() (*process, error)

var (
	dynalite = standin(sync.OnceValues(func() (*process, error) { return launch("dynamodb") }))
	fauxqs   = standin(sync.OnceValues(func() (*process, error) { return launch("sqs") }))
	versity  = standin(sync.OnceValues(launchS3))
)

// at is the stand-in's URL. It skips the test where there is none to start.
func (s standin) at(t testing.TB) string {
	t.Helper()
	p, err := s()
	if missing, ok := errors.AsType[missingError](err); ok {
		t.Skip(missing.Error())
	}
	if err != nil {
		t.Fatalf("awstest: %v", err)
	}
	return p.url
}

// process is a stand-in that runs. It ends when its stdin closes: with this
// process at the latest, as nothing else holds the pipe.
type process struct {
	url   string
	cmd   *exec.Cmd
	stdin io.Closer
}

// launch starts a stand-in.
func launch(name string) (*process, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, missingError("the stand-ins for AWS need Node.js, and there is no `node` in PATH")
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		return nil, missingError("the stand-ins for AWS are not installed: run `make standins`")
	}
	cmd := exec.CommandContext(context.Background(), node, "standin.mjs", name) //nolint:gosec // both are ours
	cmd.Dir = dir
	return start(cmd, name)
}

// launchS3 starts the stand-in for S3, which is a program of its own.
func launchS3() (*process, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "..", "bin", "s3")
	if _, err := os.Stat(program); err != nil {
		return nil, missingError("the stand-in for S3 is not installed: run `make standins`")
	}
	return start(exec.CommandContext(context.Background(), program), "s3") //nolint:gosec // it is ours
}

// start starts a stand-in that says first where it listens.
func start(cmd *exec.Cmd, name string) (*process, error) {
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = stdin.Close()
		return nil, fmt.Errorf("the stand-in for %s did not start: %w", name, errors.Join(err, cmd.Wait()))
	}
	return &process{url: strings.TrimSpace(line), cmd: cmd, stdin: stdin}, nil
}

// folder is .ci/standins of the module that the test is in.
func folder() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".ci", "standins"), nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod here or above")
		}
		dir = parent
	}
}

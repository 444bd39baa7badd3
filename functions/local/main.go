// Command sluice is Sluice on one machine: the server and its command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"sluice/functions/internal/cli"
)

func main() {
	// The store's commits spend their time in fsync, which keeps one of the
	// scheduler's processors busy without using the machine's: one more makes up
	// for it.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	// What lives is small beside what passes through: collecting half as often
	// costs some megabytes.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

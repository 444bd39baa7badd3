// Command sluice is Sluice on one machine: the server and its command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"sluice/functions/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

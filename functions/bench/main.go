// Command bench measures a built sluice against a bare HTTP server.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"sluice/functions/internal/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := bench.Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

package wire

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"sluice/core"
	"sluice/functions/internal/language"
	"sluice/infra/config"
	"sluice/infra/embed"
)

// ServeOptions says what to serve.
type ServeOptions struct {
	Config string          // path of the configuration
	Data   string          // folder of the embedded store; created when missing
	Listen string          // address, such as 127.0.0.1:8080; port 0: chosen by the system
	Grace  time.Duration   // how long requests and sends under way may go on after ctx ends
	Drain  bool            // flush all that may leave, however long it takes, before it stops
	Hurry  <-chan struct{} // ends such a flush; may be nil
	Stdout io.Writer       // for destinations of type stdout; nil: the process's
	Log    *slog.Logger    // never nil
	Reload <-chan struct{} // makes it read the configuration again; may be nil
	Ready  func(url string)
}

const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 2 * time.Minute // of a whole request
	writeTimeout      = 6 * time.Minute // a replay may take four
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 64 << 10
)

// Serve runs the whole system on one machine until ctx ends; then it stops
// taking requests, lets what is under way end within the grace, and returns
// nil, or what failed of the drain. What is pending stays durable for the next
// start.
func Serve(ctx context.Context, o ServeOptions) error {
	if o.Stdout == nil {
		o.Stdout = os.Stdout
	}
	c, err := load(&o)
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return core.Wrap(core.Unavailable, err, "cannot listen on %s", o.Listen)
	}
	return serveOn(ctx, c, listener, &o)
}

// serveOn runs the system on a listener, which it closes.
func serveOn(ctx context.Context, c *core.Config, l net.Listener, o *ServeOptions) error {
	defer func() { _ = l.Close() }() // usually closed already, with its server
	store, err := embed.Open(o.Data, embed.Options{
		Sync:   c.Store.Sync,
		OnLoss: func(l embed.Loss) { tellLoss(o.Log, l) },
	})
	if err != nil {
		return err
	}
	report := store.Report()
	tell(o.Log, &report)
	n := newNode(store, o, c.Store.Sync)
	if err = n.start(c); err == nil {
		err = n.serve(ctx, l, o)
	} else {
		n.stop(ctx)
		n.close(ctx)
	}
	return errors.Join(err, store.Close())
}

// load reads the configuration, and logs what works but hurts.
func load(o *ServeOptions) (*core.Config, error) {
	r, err := config.Read(o.Config, language.Broken)
	if err != nil {
		return nil, err
	}
	for _, w := range r.Warnings {
		o.Log.Warn("the configuration works but may hurt", "warning", w.String())
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	for _, f := range r.Place(r.Config.Idle(core.TargetLocal)) {
		o.Log.Warn("the configuration says what has no effect here", "warning", f.String())
	}
	unshard(r.Config)
	return r.Config, nil
}

// unshard keeps every group whole: shards spread the load on a table's
// partitions, and the embedded store has none.
func unshard(c *core.Config) {
	for i := range c.Buffers {
		c.Buffers[i].Shards = 1
	}
}

// serve answers requests until ctx ends, then stops within the grace.
func (n *node) serve(ctx context.Context, l net.Listener, o *ServeOptions) error {
	server := &http.Server{
		Handler:           n,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	url := announced(o.Listen, l.Addr())
	o.Log.Info("listening", "url", url, "data", o.Data)
	if o.Ready != nil {
		o.Ready(url)
	}
	err := n.wait(ctx, failed, o)
	lost := err != nil
	left := func() error { return nil }
	if o.Drain {
		left = n.drain(server, o)
	}
	grace, cancel := context.WithTimeout(context.Background(), o.Grace)
	defer cancel()
	var ending sync.WaitGroup
	ending.Go(func() { n.stop(grace) })
	ending.Go(func() { shutDown(grace, server, o.Log) })
	ending.Wait()
	if !lost {
		if e := <-failed; !errors.Is(e, http.ErrServerClosed) {
			o.Log.Warn("the listener failed while stopping", "error", e)
		}
	}
	err = errors.Join(err, left())
	n.close(grace)
	o.Log.Info("stopped")
	return err
}

// announced is the URL of a listener: the host as it was asked for, as the
// system names every address [::], and the port that it got.
func announced(asked string, got net.Addr) string {
	host, _, err := net.SplitHostPort(asked)
	_, port, e := net.SplitHostPort(got.String())
	if err != nil || e != nil || host == "" {
		return "http://" + got.String()
	}
	return "http://" + net.JoinHostPort(host, port)
}

// shutDown lets the requests under way end, until ctx does.
func shutDown(ctx context.Context, server *http.Server, log *slog.Logger) {
	if err := server.Shutdown(ctx); err != nil {
		log.Warn("requests were cut off at the end of the grace", "error", err)
		_ = server.Close() // the listener is closed already
	}
}

// wait reloads whenever it is asked to, until ctx or the server ends.
func (n *node) wait(ctx context.Context, failed <-chan error, o *ServeOptions) error {
	for {
		select {
		case <-ctx.Done():
			o.Log.Info("stopping", "grace", o.Grace.String())
			return nil
		case err := <-failed:
			return core.Wrap(core.Unavailable, err, "the listener failed")
		case <-o.Reload:
			n.reload(o)
		}
	}
}

// reload reads the configuration again; a bad one is reported and changes nothing.
func (n *node) reload(o *ServeOptions) {
	c, err := load(o)
	if err == nil {
		err = n.reconfigure(c)
	}
	if err != nil {
		o.Log.Error("the configuration was not reloaded; the present one stays", "error", err)
		return
	}
	o.Log.Info("configuration reloaded")
	if c.Store.Sync != n.sync {
		o.Log.Warn("store.sync takes effect at the next start")
	}
}

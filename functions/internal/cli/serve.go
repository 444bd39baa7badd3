package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"sluice/core"
	"sluice/functions/internal/wire"
)

type serveCommand struct {
	configFlag

	Data      string        `default:"./data"         help:"Where events are kept; made when missing (default: ${default})."            placeholder:"DIR"`
	Listen    string        `default:"127.0.0.1:8080" help:"Where to listen; port 0 picks a free one (default: ${default})."            placeholder:"ADDRESS"`
	Grace     time.Duration `default:"10s"            help:"How long requests and sends may go on when it stops (default: ${default})." placeholder:"DURATION"`
	LogLevel  string        `default:"info"           enum:"debug,info,warn,error"                                                      help:"What to log: debug, info, warn or error (default: ${default})."        placeholder:"LEVEL"`
	LogFormat string        `default:"auto"           enum:"auto,text,json"                                                             help:"auto, text or json; auto is text on a terminal (default: ${default})." placeholder:"FORMAT"`

	Drain bool `help:"Flush everything but open time windows when it stops, however long that takes."`
}

// Help shows examples.
func (*serveCommand) Help() string {
	return `SIGTERM and SIGINT stop it in good order; what is pending stays in the data folder, and keeps its deadlines for the next start. A second one ends it at once. SIGHUP makes it read the configuration again.

With --drain it ships what is pending before it stops, and exits 1 if that fails; a second signal ends the drain in good order, a third ends the process at once.

Examples:

    sluice serve
    sluice serve --config prod.yaml --data /var/lib/sluice --listen :8080
    sluice serve --drain`
}

// AfterApply checks what the grammar cannot say.
func (c *serveCommand) AfterApply() error {
	if c.Grace < 0 {
		return errors.New("--grace must not be negative")
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		port := "8080"
		if _, e := strconv.ParseUint(c.Listen, 10, 16); e == nil {
			port = c.Listen
		}
		return fmt.Errorf("--listen %q: must be HOST:PORT, such as 127.0.0.1:%s, or :%s for every address", c.Listen, port, port)
	}
	return nil
}

// Run serves until ctx ends.
func (c *serveCommand) Run(ctx context.Context, p *program) error {
	reload, stop := hangups() // first of all: until then a hang-up is the end
	defer stop()
	var hurry <-chan struct{}
	if c.Drain {
		var forget func()
		hurry, forget = secondSignal(ctx)
		defer forget()
	}
	signal.Ignore(syscall.SIGPIPE) // who reads the log may go away
	log, err := p.logger(c.LogLevel, c.LogFormat)
	if err != nil {
		return err
	}
	cfg, err := c.load()
	if err != nil {
		return err
	}
	err = p.serve(ctx, wire.ServeOptions{
		Config: c.Config, Data: c.Data, Listen: c.Listen, Grace: c.Grace, Drain: c.Drain, Hurry: hurry,
		Stdout: p.stdout, Log: log, Reload: reload,
		Ready: func(url string) { p.welcome(cfg, c.Data, url) },
	})
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w; choose another with --listen", err)
	}
	return err
}

// logger logs to stderr.
func (p *program) logger(level, format string) (*slog.Logger, error) {
	var o slog.HandlerOptions
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usagef("--log-level: %v", err)
	}
	o.Level = l
	if format == "text" || format == "auto" && p.terminal(p.stderr) {
		return slog.New(slog.NewTextHandler(p.stderr, &o)), nil
	}
	return slog.New(slog.NewJSONHandler(p.stderr, &o)), nil
}

// hangups turns each SIGHUP into a wish to reload; wishes that come while one
// waits are one with it.
func hangups() (reload <-chan struct{}, stop func()) {
	signals, wishes := make(chan os.Signal, 1), make(chan struct{}, 1)
	signal.Notify(signals, syscall.SIGHUP)
	done := make(chan struct{})
	var forwarding sync.WaitGroup
	forwarding.Go(func() {
		for {
			select {
			case <-signals:
				select {
				case wishes <- struct{}{}:
				default:
				}
			case <-done:
				return
			}
		}
	})
	return wishes, func() {
		signal.Stop(signals)
		close(done)
		forwarding.Wait()
	}
}

// secondSignal is closed at the second SIGTERM or SIGINT; the first one ends
// ctx. A third one is the end of the process again.
func secondSignal(ctx context.Context) (second <-chan struct{}, stop func()) {
	left := 2
	if ctx.Err() != nil {
		left = 1
	}
	signals, came, done := make(chan os.Signal, 2), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var counting sync.WaitGroup
	counting.Go(func() {
		defer signal.Stop(signals)
		for ; left > 0; left-- {
			select {
			case <-signals:
			case <-done:
				return
			}
		}
		close(came)
	})
	return came, func() {
		close(done)
		counting.Wait()
	}
}

// welcome says what runs, and how to send it a first event. It keeps out of
// the way of a destination that writes to stdout for another program.
func (p *program) welcome(c *core.Config, data, url string) {
	w := p.stdout
	writes := func(d core.Destination) bool { return d.Type == core.TypeStdout }
	if slices.ContainsFunc(c.Destinations, writes) && !p.terminal(w) {
		w = p.stderr
	}
	fmt.Fprintf(w, "Sluice is listening on %s (data in %s)\n", p.paint(w).bold(url), clean(data))
	if example := firstSend(c, connectable(url)); example != "" {
		fmt.Fprintf(w, "Try:  %s\n", example)
	}
}

// connectable is a URL at which a system that is announced under another can
// be reached from here: "any address" is none to connect to.
func connectable(announced string) string {
	u, err := url.Parse(announced)
	if err != nil {
		return announced
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsUnspecified() {
		u.Host = net.JoinHostPort("127.0.0.1", u.Port())
	}
	return u.String()
}

// firstSend is a command that sends an event to the first source that curl can
// send to, or "": it can't sign.
func firstSend(c *core.Config, url string) string {
	for i := range c.Sources {
		s := &c.Sources[i]
		auth := ""
		switch {
		case s.Type != core.TypeHTTP:
			continue
		case s.Auth == nil || s.Auth.Open:
		case len(s.Auth.Bearer) > 0:
			scheme, name, _ := s.Auth.Bearer[0].Split()
			if scheme != "env" {
				name = "TOKEN"
			}
			auth = fmt.Sprintf(` -H "authorization: Bearer $%s"`, name)
		default:
			continue
		}
		return fmt.Sprintf(`curl -d '{"customer_id": 7, "total": 12}' -H 'content-type: application/json'%s %s/v1/sources/%s`, auth, url, s.Name)
	}
	return ""
}

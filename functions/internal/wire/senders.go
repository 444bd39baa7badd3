package wire

import (
	"errors"
	"io"

	"sluice/core"
	"sluice/core/format"
	"sluice/infra/filesend"
	"sluice/infra/httpsend"
)

// resolver returns the value of a secret.
type resolver func(core.Secret) (string, error)

// senders are the open destinations of one configuration.
type senders struct {
	byName map[string]core.Sender
	closes []func()
}

// newSenders opens every destination, or none when it returns an error, which
// then tells of all that could not be opened.
func newSenders(c *core.Config, resolve resolver, stdout io.Writer, clock core.Clock) (*senders, error) {
	s := &senders{byName: make(map[string]core.Sender, len(c.Destinations))}
	var errs []error
	for i := range c.Destinations {
		d := &c.Destinations[i]
		if err := s.open(d, resolve, stdout, clock); err != nil {
			errs = append(errs, core.Wrap(core.CodeOf(err), err, "destinations.%s", d.Name))
		}
	}
	if len(errs) > 0 {
		s.close()
		return nil, errors.Join(errs...)
	}
	return s, nil
}

func (s *senders) open(d *core.Destination, resolve resolver, stdout io.Writer, clock core.Clock) error {
	f, err := format.Parse(d.Format)
	if err != nil {
		return err
	}
	switch d.Type {
	case core.TypeStdout:
		s.add(d.Name, filesend.NewWriter(stdout, f, filesend.Timeout(d.Timeout)))
	case core.TypeFile:
		file, err := filesend.NewFile(d.Path, f, filesend.Timeout(d.Timeout))
		if err != nil {
			return err
		}
		s.add(d.Name, file)
	default:
		h, err := newHTTPSender(d, f, resolve, clock)
		if err != nil {
			return err
		}
		s.byName[d.Name] = h
		s.closes = append(s.closes, h.Close)
	}
	return nil
}

func (s *senders) add(name string, f *filesend.Sender) {
	s.byName[name] = f
	s.closes = append(s.closes, func() { _ = f.Close() }) // each batch was written before it was answered
}

func newHTTPSender(d *core.Destination, f format.Format, resolve resolver, clock core.Clock) (*httpsend.Sender, error) {
	o := httpsend.Options{
		URL: d.URL, Format: f, Timeout: d.Timeout, AllowPrivate: d.AllowPrivate,
		Concurrency: d.Concurrency, Clock: clock,
	}
	for _, ref := range d.Secrets {
		secret, err := resolve(ref)
		if err != nil {
			return nil, err
		}
		o.Secrets = append(o.Secrets, secret)
		o.Redact = append(o.Redact, secret)
	}
	for _, h := range d.Headers {
		value := h.Value
		if h.Secret != "" {
			var err error
			if value, err = resolve(h.Secret); err != nil {
				return nil, err
			}
			o.Redact = append(o.Redact, value)
		}
		o.Headers = append(o.Headers, core.Header{Name: h.Name, Value: value})
	}
	return httpsend.New(o)
}

// sender is the sender of a destination, or nil.
func (s *senders) sender(name string) core.Sender { return s.byName[name] }

func (s *senders) close() {
	for _, c := range s.closes {
		c()
	}
}

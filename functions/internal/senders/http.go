package senders

import (
	"sluice/core"
	"sluice/core/format"
	"sluice/infra/httpsend"
)

// Resolver returns the value of a secret.
type Resolver func(core.Secret) (string, error)

// HTTP opens destinations of type http.
func HTTP(resolve Resolver, clock core.Clock) Opener {
	return func(d *core.Destination, f format.Format) (core.Sender, func(), error) {
		o := httpsend.Options{
			URL: d.URL, Format: f, Timeout: d.Timeout, AllowPrivate: d.AllowPrivate,
			Concurrency: d.Concurrency, Clock: clock,
		}
		if err := secrets(&o, d, resolve); err != nil {
			return nil, nil, err
		}
		h, err := httpsend.New(o)
		if err != nil {
			return nil, nil, err
		}
		return h, h.Close, nil
	}
}

// secrets fills in what is secret, and what else is sent with every batch.
func secrets(o *httpsend.Options, d *core.Destination, resolve Resolver) error {
	for _, ref := range d.Secrets {
		secret, err := resolve(ref)
		if err != nil {
			return err
		}
		o.Secrets = append(o.Secrets, secret)
		o.Redact = append(o.Redact, secret)
	}
	for _, h := range d.Headers {
		value := h.Value
		if h.Secret != "" {
			var err error
			if value, err = resolve(h.Secret); err != nil {
				return err
			}
			o.Redact = append(o.Redact, value)
		}
		o.Headers = append(o.Headers, core.Header{Name: h.Name, Value: value})
	}
	return nil
}

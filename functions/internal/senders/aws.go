package senders

import (
	"cmp"
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"sluice/core"
	"sluice/core/format"
	"sluice/infra/s3send"
	"sluice/infra/sqssend"
)

// maxIdle bounds the connections that are kept to a queue's host.
const maxIdle = 64

// SDK is how AWS is reached: with which credentials, in which region, and by
// which HTTP client, whose calls may last as long as their contexts. It is asked
// once for each destination that needs it.
type SDK func() (aws.Config, error)

// SQS opens destinations of type sqs.
func SQS(sdk SDK, resolve Resolver) Opener {
	return func(d *core.Destination, _ format.Format) (core.Sender, func(), error) {
		queue, err := named(d.Queue, resolve)
		if err != nil {
			return nil, nil, err
		}
		if problem := core.QueueProblem(queue, d.AllowPrivate); problem != "" {
			return nil, nil, core.Errorf(core.Invalid, "queue: what it refers to %s", problem)
		}
		c, err := sdk()
		if err != nil {
			return nil, nil, err
		}
		if b, ok := c.HTTPClient.(*awshttp.BuildableClient); ok {
			c.HTTPClient = b.WithTransportOptions(func(t *http.Transport) {
				t.MaxIdleConnsPerHost = min(sqssend.SideBySide*d.Concurrency, maxIdle)
			})
		}
		client, err := sqssend.NewClient(c, queue, d.Region)
		if err != nil {
			return nil, nil, err
		}
		s, err := sqssend.New(client, sqssend.Options{Queue: queue, Timeout: d.Timeout})
		if err != nil {
			return nil, nil, err
		}
		return s, nil, nil
	}
}

// S3 opens destinations of type s3.
func S3(sdk SDK, resolve Resolver, clock core.Clock) Opener {
	return func(d *core.Destination, f format.Format) (core.Sender, func(), error) {
		bucket, err := named(d.Bucket, resolve)
		if err != nil {
			return nil, nil, err
		}
		c, err := sdk()
		if err != nil {
			return nil, nil, err
		}
		endpoint, err := storeOf(&c, d)
		if err != nil {
			return nil, nil, err
		}
		o := s3send.Options{
			Bucket: bucket, Key: d.Key, Region: cmp.Or(d.Region, c.Region), Endpoint: endpoint, Format: f, Compression: d.Compression,
			Timeout: d.Timeout, Concurrency: d.Concurrency, Credentials: c.Credentials, Clock: clock,
			Transport: transport(&c, d),
		}
		s, err := s3send.New(o)
		if err != nil {
			return nil, nil, err
		}
		return s, s.Close, nil
	}
}

// named is a name, or what the reference to it leads to.
func named(value string, resolve Resolver) (string, error) {
	if core.IsReference(value) {
		return resolve(core.Secret(value))
	}
	return value, nil
}

// storeOf is the address of a destination's store, "" for AWS's: the
// destination's own, or the one at which the configuration has S3, as
// AWS_ENDPOINT_URL_S3 does.
func storeOf(c *aws.Config, d *core.Destination) (string, error) {
	if d.Endpoint != "" {
		return d.Endpoint, nil
	}
	for _, source := range c.ConfigSources {
		if s, ok := source.(interface {
			GetServiceBaseEndpoint(ctx context.Context, sdkID string) (string, bool, error)
		}); ok {
			if at, found, err := s.GetServiceBaseEndpoint(context.Background(), "S3"); err != nil || found {
				return at, core.Wrap(core.Invalid, err, "the settings for AWS cannot be read")
			}
		}
	}
	return aws.ToString(c.BaseEndpoint), nil
}

// transport is the SDK's own, which knows the certificates that the machine's
// settings name, with as many connections as the destination may use. nil: the
// SDK has another kind of client.
func transport(c *aws.Config, d *core.Destination) http.RoundTripper {
	b, ok := c.HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		return nil
	}
	t := b.GetTransport()
	t.MaxIdleConnsPerHost = max(d.Concurrency, 1)
	t.DisableCompression = true
	return t
}

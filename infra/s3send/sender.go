package s3send

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"sluice/core"
	"sluice/core/format"
	"sluice/core/objectkey"
	"sluice/infra/s3send/pack"
)

// defaultRegion is what stores other than AWS's go by when nothing is said.
const defaultRegion = "us-east-1"

const idleTimeout = 30 * time.Second

// Options is what a sender needs to know of its destination.
type Options struct {
	Bucket      string
	Key         string // template; "": objectkey.Default
	Region      string
	Endpoint    string // of a store other than AWS's: http or https, and a host
	Format      format.Format
	Compression string        // one of core's; "": none
	Timeout     time.Duration // of one send, from connecting to the answer's end
	Concurrency int           // connections kept open between sends, without a Transport
	Credentials aws.CredentialsProvider
	Transport   http.RoundTripper // nil: one of its own
	Clock       core.Clock
}

// Sender stores in one bucket. It is safe for concurrent use.
type Sender struct {
	base        *url.URL // of the bucket; ends in a slash
	key         *objectkey.Template
	region      string
	format      format.Format
	suffix      string
	packing     pack.Kind
	timeout     time.Duration
	credentials aws.CredentialsProvider
	signer      *v4.Signer
	transport   http.RoundTripper
	clock       core.Clock
}

var _ core.Sender = (*Sender)(nil)

// New makes a sender. What is wrong with o is core.Invalid.
func New(o Options) (*Sender, error) {
	if o.Timeout <= 0 || o.Clock == nil || o.Credentials == nil {
		return nil, core.Errorf(core.Invalid, "a sender needs a timeout above 0, a clock and credentials")
	}
	key, err := objectkey.Compile(cmp.Or(o.Key, objectkey.Default))
	if err != nil {
		return nil, core.Errorf(core.Invalid, "key: %v", err)
	}
	packing, ok := pack.Of(o.Compression)
	if !ok {
		return nil, core.Errorf(core.Invalid, "compression: %q is none of %s", o.Compression, strings.Join(core.Compressions(), ", "))
	}
	if o.Region == "" && o.Endpoint != "" {
		o.Region = defaultRegion
	}
	base, err := address(&o)
	if err != nil {
		return nil, err
	}
	if o.Transport == nil {
		o.Transport = newTransport(&o)
	}
	return &Sender{
		base: base, key: key, region: o.Region, format: o.Format, suffix: suffix(o.Format) + packing.Suffix, packing: packing,
		timeout: o.Timeout, credentials: o.Credentials, transport: o.Transport, clock: o.Clock,
		signer: v4.NewSigner(func(s *v4.SignerOptions) { s.DisableURIPathEscaping = true }), // as S3 has it
	}, nil
}

// address is the URL of the bucket.
func address(o *Options) (*url.URL, error) {
	switch {
	case !core.ValidBucket(o.Bucket):
		return nil, core.Errorf(core.Invalid, "bucket: not the name of a bucket")
	case o.Region == "":
		return nil, core.Errorf(core.Invalid, "region: not known; give the destination one, or set AWS_REGION")
	case o.Endpoint != "":
		u, err := url.Parse(o.Endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, core.Errorf(core.Invalid, "endpoint: not a URL; give one such as https://s3.example.com")
		}
		return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/" + o.Bucket + "/"}, nil
	}
	host := "s3." + o.Region + ".amazonaws.com"
	if strings.HasPrefix(o.Region, "cn-") {
		host += ".cn"
	}
	if strings.Contains(o.Bucket, ".") {
		return &url.URL{Scheme: "https", Host: host, Path: "/" + o.Bucket + "/"}, nil
	}
	return &url.URL{Scheme: "https", Host: o.Bucket + "." + host, Path: "/"}, nil
}

func newTransport(o *Options) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment, // as the SDK has it
		TLSHandshakeTimeout: o.Timeout,
		MaxIdleConnsPerHost: max(o.Concurrency, 1),
		IdleConnTimeout:     idleTimeout,
		DisableCompression:  true,
	}
}

// suffix is what files in a format are known by.
func suffix(f format.Format) string {
	if f == format.NDJSON {
		return ".ndjson"
	}
	return ".json"
}

// Close ends the connections that no send uses.
func (s *Sender) Close() {
	if t, ok := s.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Send stores the batch and reports the answer. The transport is used without
// an http.Client: no redirects.
func (s *Sender) Send(ctx context.Context, b *core.Batch) core.Response {
	if err := ctx.Err(); err != nil {
		return core.Response{Err: stopped(err)}
	}
	sending, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := s.request(sending, b)
	if err == nil {
		var answer *http.Response
		if answer, err = s.transport.RoundTrip(request); err == nil {
			defer func() { _ = answer.Body.Close() }() // all that matters has been read
			return read(answer)
		}
	}
	return core.Response{Err: s.mapError(ctx, err)}
}

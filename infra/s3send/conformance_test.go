package s3send

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/format"
	"sluice/core/sendertest"
	"sluice/infra/awstest"
)

// compressions are tried along with the formats.
var compressions = map[format.Format]string{
	format.NDJSON: core.CompressNone, format.JSONArray: core.CompressGzip, format.Envelope: core.CompressZstd,
}

// TestConformance passes the suite against another's S3, which checks every
// signature and checksum. A proxy before it takes requests and says nothing, or
// what S3 says that the stand-in does not: "slow down", "too large".
func TestConformance(t *testing.T) {
	t.Parallel()
	sendertest.Run(t, sendertest.Harness{Name: "s3send", Replaces: true, New: func(t *testing.T, f format.Format, timeout time.Duration) sendertest.Destination {
		t.Helper()
		bucket := awstest.Bucket(t)
		p := newProxy(t, bucket.Endpoint)
		o := options(bucket)
		o.Endpoint, o.Format, o.Compression, o.Timeout, o.Concurrency = p.url, f, compressions[f], timeout, 16
		return sendertest.Destination{
			Sender: newSender(t, o),
			Received: func() [][]byte {
				var got [][]byte
				for _, object := range bucket.Objects() {
					got = append(got, unpack(t, object))
				}
				return got
			},
			Stall:  p.stall,
			Refuse: bucket.Delete,
			Throttle: func(wait time.Duration) (told time.Duration) {
				p.say(http.StatusServiceUnavailable, "SlowDown", strconv.Itoa(int(wait.Seconds())))
				return wait
			},
			TooLarge: func() { p.say(http.StatusBadRequest, "EntityTooLarge", "") },
		}
	}})
}

var now = core.At(time.Date(2026, 3, 4, 5, 6, 7, 890e6, time.UTC))

// wall is the machine's clock: a store refuses signatures that are old.
var wall = core.ClockFunc(func() core.Millis { return core.At(time.Now()) })

func options(b *awstest.BucketRef) Options {
	return Options{
		Bucket: b.Name, Endpoint: b.Endpoint, Region: b.SDK.Region, Credentials: b.SDK.Credentials,
		Timeout: time.Minute, Clock: wall, Concurrency: 4,
	}
}

func newSender(t testing.TB, o Options) *Sender {
	t.Helper()
	s, err := New(o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// unpack is an object as its format wrote it.
func unpack(t testing.TB, o awstest.Object) []byte {
	t.Helper()
	var in io.Reader = bytes.NewReader(o.Body)
	switch o.Header.Get("Content-Encoding") {
	case "gzip":
		z, err := gzip.NewReader(in)
		require.NoError(t, err)
		in = z
	case "zstd":
		z, err := zstd.NewReader(in)
		require.NoError(t, err)
		defer z.Close()
		in = z
	}
	raw, err := io.ReadAll(in)
	require.NoError(t, err)
	return raw
}

// proxy passes requests on, host and all, until it is told to stall, or what to say.
type proxy struct {
	url     string
	mu      sync.Mutex
	reached chan struct{}    // not nil: it stalls
	answer  http.HandlerFunc // not nil: it answers by itself
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	target, err := url.Parse(to)
	require.NoError(t, err)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	pass := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
		r.Out.Host = r.In.Host // the signature has it
	}}
	p := &proxy{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		reached, answer := p.reached, p.answer
		p.mu.Unlock()
		if reached == nil && answer == nil {
			pass.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // else nobody sees the sender hang up
		if answer != nil {
			answer(w, r)
			return
		}
		select {
		case reached <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// say makes it answer with an error of S3, and a Retry-After that may be "".
func (p *proxy) say(status int, code, retryAfter string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = func(w http.ResponseWriter, _ *http.Request) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>no reason</Message></Error>")
	}
}

func (p *proxy) stall() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached = make(chan struct{}, 1)
	return p.reached
}

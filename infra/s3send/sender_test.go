package s3send

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/format"
	"sluice/infra/awstest"
)

func batchOf(n int) *core.Batch {
	b := &core.Batch{ID: "01HX.2", Buffer: "crm-orders", Group: "k/ä 1", Reason: core.ReasonItems, Attempt: 1}
	for i := range n {
		b.Items = append(b.Items, core.Item{Seq: uint64(i + 1), Event: core.Event{
			ID: fmt.Sprintf("ev-%d", i), ContentType: "application/json", ReceivedAt: now + core.Millis(i), Body: fmt.Appendf(nil, `{"n":%d}`, i),
		}})
	}
	return b
}

func credentials(secret string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "local", SecretAccessKey: secret}, nil
	})
}

func outcome(r *core.Response) string { return core.Classify(r, nil).String() }

// TestObject looks at what stands in the bucket.
func TestObject(t *testing.T) {
	t.Parallel()
	bucket := awstest.Bucket(t)
	o := options(bucket)
	o.Format, o.Compression = format.CloudEvents, core.CompressGzip
	o.Key = "ä +&=@:,$/%41/{{ .buffer }}/{{ .group }}/{{ .date }}T{{ .hour }}/{{ .id }}{{ .suffix }}"
	s := newSender(t, o)
	b := batchOf(3)
	for b.Attempt = range 3 {
		r := s.Send(t.Context(), b)
		require.Equal(t, "delivered", outcome(&r), "%+v", r)
		require.Equal(t, http.StatusOK, r.Status)
	}
	objects := bucket.Objects()
	require.Len(t, objects, 1, "the key is the same on every attempt")
	got := objects[0]
	require.Equal(t, "ä +&=@:,$/%41/crm-orders/k!2F!C3!A4!201/2026-03-04T05/01HX.2.json.gz", got.Key)
	require.Equal(t, string(format.Append(nil, format.CloudEvents, b)), string(unpack(t, got)))
	for name, want := range map[string]string{
		"Content-Type": "application/cloudevents-batch+json", "Content-Encoding": "gzip",
		"X-Amz-Meta-Sluice-Batch": "01HX.2", "X-Amz-Meta-Sluice-Buffer": "crm-orders", "X-Amz-Meta-Sluice-Group": "k%2F%C3%A4%201",
		"X-Amz-Meta-Sluice-Reason": "items", "X-Amz-Meta-Sluice-Items": "3",
	} {
		require.Equal(t, want, got.Header.Get(name), name)
	}
	sum, err := base64.StdEncoding.DecodeString(got.Header.Get("X-Amz-Checksum-Sha256"))
	require.NoError(t, err)
	require.Len(t, sum, 32)
}

// TestKeyOfWindow: a window's objects go by when it began.
func TestKeyOfWindow(t *testing.T) {
	t.Parallel()
	bucket := awstest.Bucket(t)
	s := newSender(t, options(bucket))
	b := batchOf(1)
	b.Window = &core.Window{ID: "w", Start: now.Add(-24 * time.Hour), End: now}
	r := s.Send(t.Context(), b)
	require.Equal(t, "delivered", outcome(&r), "%+v", r)
	require.Equal(t, "crm-orders/2026-03-03/01HX.2.ndjson", bucket.Objects()[0].Key)
}

// TestRefusals is what the store says itself.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*Options)
		status int
		code   string
		want   string
	}{
		{"no such bucket", func(o *Options) { o.Bucket = "another" }, 404, "NoSuchBucket", "permanent"},
		{"a wrong secret", func(o *Options) { o.Credentials = credentials("wrong") }, 403, "SignatureDoesNotMatch", "permanent"},
		{"a clock that is an hour behind", func(o *Options) {
			o.Clock = core.ClockFunc(func() core.Millis { return wall.Now().Add(-time.Hour) })
		}, 403, "RequestTimeTooSkewed", "retry"},
		{"a body that changed on its way", func(o *Options) { o.Transport = corrupting{} }, 400, "XAmzContentSHA256Mismatch", "retry"},
		{"another region", func(o *Options) { o.Region = "eu-west-1" }, 400, "AuthorizationHeaderMalformed", "permanent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bucket := awstest.Bucket(t)
			o := options(bucket)
			tt.change(&o)
			r := newSender(t, o).Send(t.Context(), batchOf(2))
			require.Equal(t, tt.status, r.Status, "%+v", r)
			require.True(t, strings.HasPrefix(r.Answer, tt.code+": "), "%+v", r)
			require.Equal(t, tt.want, outcome(&r))
			require.Empty(t, bucket.Objects())
		})
	}
}

// corrupting changes a byte of what it sends.
type corrupting struct{}

func (corrupting) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	body[0] ^= 1
	r.Body = io.NopCloser(bytes.NewReader(body))
	t := &http.Transport{DisableKeepAlives: true}
	return t.RoundTrip(r)
}

// TestAnswers goes from answers, as S3's reference has them, to what comes of
// the batch.
func TestAnswers(t *testing.T) {
	t.Parallel()
	xml := func(code string) string {
		return `<?xml version="1.0" encoding="UTF-8"?>` + "\n<Error><Code>" + code + "</Code><Message>Why.</Message><Token-0>hunter2</Token-0><RequestId>x</RequestId></Error>"
	}
	for _, tt := range []struct {
		status int
		body   string
		header []string
		want   string
		answer string
		wait   time.Duration
	}{
		{200, "", nil, "delivered", "", 0},
		{500, xml("InternalError"), nil, "retry", "InternalError: Why.", 0},
		{503, xml("SlowDown"), nil, "retry", "SlowDown: Why.", 0},
		{503, xml("ServiceUnavailable"), []string{"Retry-After", "7"}, "retry", "ServiceUnavailable: Why.", 7 * time.Second},
		{503, "", []string{"Retry-After", "soon"}, "retry", "", 0},
		{429, xml("TooManyRequests"), nil, "retry", "TooManyRequests: Why.", 0},
		{400, xml("RequestTimeout"), nil, "retry", "RequestTimeout: Why.", 0},
		{400, xml("ExpiredToken"), nil, "retry", "ExpiredToken: Why.", 0},
		{400, xml("BadDigest"), nil, "retry", "BadDigest: Why.", 0},
		{409, xml("OperationAborted"), nil, "retry", "OperationAborted: Why.", 0},
		{307, xml("TemporaryRedirect"), []string{"Location", "https://elsewhere.example.com/"}, "retry", "TemporaryRedirect: Why.", 0},
		{307, "", nil, "retry", "", 0},
		{301, xml("PermanentRedirect"), []string{"X-Amz-Bucket-Region", "eu-west-1"}, "permanent", "PermanentRedirect: Why. The bucket is in eu-west-1.", 0},
		{400, xml("InvalidRequest"), nil, "permanent", "InvalidRequest: Why.", 0},
		{400, xml("EntityTooLarge"), nil, "permanent", "EntityTooLarge: Why.", 0},
		{403, xml("AccessDenied"), nil, "permanent", "AccessDenied: Why.", 0},
		{403, xml("InvalidAccessKeyId"), nil, "permanent", "InvalidAccessKeyId: Why.", 0},
		{404, xml("NoSuchBucket"), nil, "permanent", "NoSuchBucket: Why.", 0},
		{404, "<html>not S3</html>", nil, "permanent", "", 0},
		{404, "<Code>open", nil, "permanent", "", 0},
	} {
		t.Run(fmt.Sprint(tt.status, " ", tt.answer), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for i := 0; i+1 < len(tt.header); i += 2 {
					w.Header().Set(tt.header[i], tt.header[i+1])
				}
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}))
			t.Cleanup(server.Close)
			s := newSender(t, Options{Bucket: "archive", Endpoint: server.URL, Credentials: credentials("s"), Timeout: time.Minute, Clock: wall})
			r := s.Send(t.Context(), batchOf(1))
			require.Equal(t, tt.status, r.Status)
			require.Equal(t, tt.want, outcome(&r), "%+v", r)
			require.Equal(t, tt.answer, r.Answer)
			require.Equal(t, tt.wait, r.RetryAfter)
			if r.Err != nil {
				require.Equal(t, core.Unavailable, core.CodeOf(r.Err))
			}
		})
	}
}

// TestRequests is where batches go, and what is signed.
func TestRequests(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ bucket, region, endpoint, url string }{
		{"archive", "eu-west-1", "", "https://archive.s3.eu-west-1.amazonaws.com/crm-orders/2026-03-04/01HX.2.ndjson"},
		{"archive", "cn-north-1", "", "https://archive.s3.cn-north-1.amazonaws.com.cn/crm-orders/2026-03-04/01HX.2.ndjson"},
		{"a.b", "eu-west-1", "", "https://s3.eu-west-1.amazonaws.com/a.b/crm-orders/2026-03-04/01HX.2.ndjson"},
		{"archive", "", "https://s3.example.com:8443", "https://s3.example.com:8443/archive/crm-orders/2026-03-04/01HX.2.ndjson"},
	} {
		var got *http.Request
		s := newSender(t, Options{
			Bucket: tt.bucket, Region: tt.region, Endpoint: tt.endpoint, Credentials: credentials("s"), Timeout: time.Minute,
			Clock: core.ClockFunc(func() core.Millis { return now }),
			Transport: transport(func(r *http.Request) (*http.Response, error) {
				got = r
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			}),
		})
		r := s.Send(t.Context(), batchOf(1))
		require.Equal(t, "delivered", outcome(&r))
		require.Equal(t, tt.url, got.URL.String())
		region := tt.region
		if region == "" {
			region = "us-east-1"
		}
		require.Contains(t, got.Header.Get("Authorization"), "Credential=local/20260304/"+region+"/s3/aws4_request, SignedHeaders=")
		require.Contains(t, got.Header.Get("Authorization"), "x-amz-checksum-sha256;x-amz-content-sha256;x-amz-date")
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestFailures(t *testing.T) {
	t.Parallel()
	none := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("no file, and a secret in its path")
	})
	refused := transport(func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") })
	o := Options{Bucket: "archive", Region: "eu-west-1", Credentials: none, Timeout: time.Minute, Clock: wall, Transport: refused}
	r := newSender(t, o).Send(t.Context(), batchOf(1))
	require.Equal(t, "retry", outcome(&r))
	require.Equal(t, "there are no credentials", core.DetailOf(r.Err))
	o.Credentials = credentials("s")
	r = newSender(t, o).Send(t.Context(), batchOf(1))
	require.Equal(t, "retry", outcome(&r))
	require.Equal(t, "no answer", core.DetailOf(r.Err))
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := Options{Bucket: "archive", Region: "eu-west-1", Credentials: credentials("s"), Timeout: time.Minute, Clock: wall}
	for want, change := range map[string]func(*Options){
		"a timeout above 0":     func(o *Options) { o.Timeout = 0 },
		"clock and credentials": func(o *Options) { o.Credentials = nil },
		"bucket: ":              func(o *Options) { o.Bucket = "No" },
		"region: not known":     func(o *Options) { o.Region = "" },
		"key: it lacks":         func(o *Options) { o.Key = "x" },
		"key: keys by it may":   func(o *Options) { o.Key = strings.Repeat("{{ .group }}", 6) + "{{ .id }}" },
		"compression: \"lzma\"": func(o *Options) { o.Compression = "lzma" },
		"endpoint: ":            func(o *Options) { o.Endpoint = "s3.example.com" },
	} {
		o := good
		change(&o)
		_, err := New(o)
		require.ErrorContains(t, err, want)
		require.Equal(t, core.Invalid, core.CodeOf(err))
	}
}

package senders

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/awstest"
)

var wall = core.ClockFunc(func() core.Millis { return core.At(time.Now()) })

// reference resolves env:NAME to what values has under NAME.
func reference(values map[string]string) Resolver {
	return func(s core.Secret) (string, error) {
		_, name, _ := s.Split()
		if v, ok := values[name]; ok {
			return v, nil
		}
		return "", core.Errorf(core.Invalid, "%s is not set", s)
	}
}

func destination(kind string) core.Destination {
	d := core.NewDestination("a")
	d.Type, d.AllowPrivate = kind, true
	return d
}

// TestSQS sends a batch by way of a configuration.
func TestSQS(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	queue := awstest.Queue(t, client, nil)
	d := destination(core.TypeSQS)
	d.Queue = "env:QUEUE_URL"
	sdk := func() (aws.Config, error) { return live(t, awstest.SQSURL(t)), nil }
	s, err := Open(&core.Config{Destinations: []core.Destination{d}}, map[string]Opener{
		core.TypeSQS: SQS(sdk, reference(map[string]string{"QUEUE_URL": queue.URL})),
	})
	require.NoError(t, err)
	defer s.Close()
	deliver(t, s.Sender("a"))
	got, err := client.ReceiveMessage(t.Context(), &awssqs.ReceiveMessageInput{QueueUrl: &queue.URL})
	require.NoError(t, err)
	require.Equal(t, "1", *got.Messages[0].Body)
}

// TestS3 stores a batch by way of a configuration.
func TestS3(t *testing.T) {
	t.Parallel()
	bucket := awstest.Bucket(t)
	d := destination(core.TypeS3)
	d.Bucket, d.Endpoint = "env:BUCKET", bucket.Endpoint
	sdk := func() (aws.Config, error) { return live(t, bucket.Endpoint), nil }
	s, err := Open(&core.Config{Destinations: []core.Destination{d}}, map[string]Opener{
		core.TypeS3: S3(sdk, reference(map[string]string{"BUCKET": bucket.Name}), wall),
	})
	require.NoError(t, err)
	defer s.Close()
	deliver(t, s.Sender("a"))
	objects := bucket.Objects()
	require.Len(t, objects, 1)
	require.Equal(t, "orders/1970-01-01/b.ndjson", objects[0].Key)
	require.Equal(t, "1\n", string(objects[0].Body))
}

// live is a configuration with the SDK's own HTTP client. Whatever it dials, it
// gets to the stand-in: queues have a host that not every machine resolves.
func live(t *testing.T, endpoint string) aws.Config {
	t.Helper()
	c := awstest.Config(t, endpoint)
	at, err := url.Parse(endpoint)
	require.NoError(t, err)
	c.HTTPClient = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, at.Host)
		}
	})
	return c
}

func deliver(t *testing.T, s core.Sender) {
	t.Helper()
	r := s.Send(t.Context(), &core.Batch{ID: "b", Buffer: "orders", Attempt: 1, Items: []core.Item{{Event: core.Event{ID: "e", Body: []byte("1"), ReceivedAt: 1}}}})
	require.Equal(t, core.Delivered, core.Classify(&r, nil), "%+v", r)
}

func TestAWSFaults(t *testing.T) {
	t.Parallel()
	fine := func() (aws.Config, error) {
		return aws.Config{Region: "eu-west-1", Credentials: aws.AnonymousCredentials{}}, nil
	}
	broken := func() (aws.Config, error) { return aws.Config{}, core.Errorf(core.Invalid, "no file") }
	nowhere := func() (aws.Config, error) { return aws.Config{}, nil }
	for name, tt := range map[string]struct {
		sdk    SDK
		change func(d *core.Destination)
		want   string // "": it opens
	}{
		"a queue":                {fine, func(d *core.Destination) { d.Type, d.Queue = core.TypeSQS, "https://sqs.eu-west-1.amazonaws.com/1/q" }, ""},
		"a bucket":               {fine, func(d *core.Destination) { d.Type, d.Bucket = core.TypeS3, "archive" }, ""},
		"a queue that is no URL": {fine, func(d *core.Destination) { d.Type, d.Queue = core.TypeSQS, "env:WORD" }, "queue: what it refers to has no scheme"},
		"a bucket that is none":  {fine, func(d *core.Destination) { d.Type, d.Bucket = core.TypeS3, "env:BAD" }, "bucket: not the name of a bucket"},
		"no reference to a queue": {fine, func(d *core.Destination) { d.Type, d.Queue = core.TypeSQS, "env:GONE" },
			"env:GONE is not set"},
		"no reference to a bucket": {fine, func(d *core.Destination) { d.Type, d.Bucket = core.TypeS3, "env:GONE" },
			"env:GONE is not set"},
		"no settings for a queue":  {broken, func(d *core.Destination) { d.Type, d.Queue = core.TypeSQS, "https://sqs.eu-west-1.amazonaws.com/1/q" }, "no file"},
		"no settings for a bucket": {broken, func(d *core.Destination) { d.Type, d.Bucket = core.TypeS3, "archive" }, "no file"},
		"no region for a queue":    {nowhere, func(d *core.Destination) { d.Type, d.Queue = core.TypeSQS, "http://127.0.0.1/1/q" }, "region: not known"},
		"no credentials":           {nowhere, func(d *core.Destination) { d.Type, d.Bucket = core.TypeS3, "archive" }, "credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := destination("")
			tt.change(&d)
			resolve := reference(map[string]string{"WORD": "word", "BAD": "No"})
			s, err := Open(&core.Config{Destinations: []core.Destination{d}}, map[string]Opener{
				core.TypeSQS: SQS(tt.sdk, resolve), core.TypeS3: S3(tt.sdk, resolve, wall),
			})
			if tt.want == "" {
				require.NoError(t, err)
				s.Close()
				return
			}
			require.ErrorContains(t, err, "destinations.a: ")
			require.ErrorContains(t, err, tt.want)
		})
	}
}

// TestEndpoints: the address of a store comes from the destination, from the
// setting for S3, or from the one for all of AWS.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	c := aws.Config{BaseEndpoint: new("http://all")}
	d := destination(core.TypeS3)
	for _, want := range []string{"http://all", "http://s3", "http://own"} {
		got, err := storeOf(&c, &d)
		require.NoError(t, err)
		require.Equal(t, want, got)
		if c.ConfigSources != nil {
			d.Endpoint = "http://own"
		}
		c.ConfigSources = []any{1, setting{}}
	}
}

type setting struct{}

func (setting) GetServiceBaseEndpoint(_ context.Context, sdkID string) (string, bool, error) {
	return "http://s3", sdkID == "S3", nil
}

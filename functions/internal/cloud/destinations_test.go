package cloud

import (
	"maps"
	"strings"
	"testing"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	vendor "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/awstest"
)

// onAWS has a destination of every type that a function can reach.
const onAWS = `
control: {tokens: [env:CONTROL]}
sources:
  orders: {type: http, auth: {bearer: [env:TOKEN]}}
destinations:
  crm: {type: http, url: "https://crm.example.com/"}
  work: {type: sqs, queue: env:QUEUE_URL, allowPrivate: true}
  archive: {type: s3, bucket: env:BUCKET, compression: gzip}
buffers:
  a: {from: [orders], to: crm}
  b: {from: [orders], to: work}
  c: {from: [orders], to: archive}
`

// Whatever type fits AWS can be opened there.
func TestEveryTypeHasAnOpener(t *testing.T) {
	t.Parallel()
	r := setUp(t, "sources: {in: {type: http, auth: none}}")
	for _, name := range core.DestinationTypes() {
		d := core.NewDestination("a")
		d.Type = name
		r.settings.config = &core.Config{Destinations: []core.Destination{d}}
		_, err := r.senders()
		require.Error(t, err, "it says nothing of where to send")
		unknown := strings.Contains(err.Error(), "are not known here")
		require.Equal(t, len(r.settings.config.Unfit(core.TargetAWS)) > 0, unknown, name)
	}
}

// Whatever sends starts with every type of destination, and calls nobody yet.
func TestDestinationsStart(t *testing.T) {
	t.Parallel()
	vars := variables(t, onAWS)
	vars["QUEUE_URL"], vars["BUCKET"] = "https://sqs.eu-west-1.amazonaws.com/123456789012/work", "archive"
	p := Process{Env: lookup(vars), Stdout: new(output)}
	_, err := Deliver(t.Context(), p)
	require.NoError(t, err)
	_, err = Flush(t.Context(), p)
	require.NoError(t, err)
	_, err = Control(t.Context(), p)
	require.NoError(t, err)
}

// What a reference leads to is checked, and not shown.
func TestDestinationsThatDoNotOpen(t *testing.T) {
	t.Parallel()
	vars := variables(t, onAWS)
	vars["QUEUE_URL"], vars["BUCKET"] = "hidden", "Hidden"
	_, err := Deliver(t.Context(), Process{Env: lookup(vars), Stdout: new(output)})
	require.Equal(t, core.Invalid, core.CodeOf(err))
	require.ErrorContains(t, err, "destinations.work: queue: ")
	require.ErrorContains(t, err, "destinations.archive: bucket: ")
	require.NotContains(t, err.Error(), "idden")
}

// Batches get to a queue and a bucket by the clients of a function.
func TestDestinations(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	queue, bucket := awstest.Queue(t, client, nil), awstest.Bucket(t)
	credentials, err := bucket.SDK.Credentials.Retrieve(t.Context())
	require.NoError(t, err)
	vars := variables(t, onAWS)
	maps.Copy(vars, map[string]string{
		"QUEUE_URL": queue.URL, "BUCKET": bucket.Name,
		"AWS_REGION":               awstest.Region,
		"AWS_ACCESS_KEY_ID":        credentials.AccessKeyID,
		"AWS_SECRET_ACCESS_KEY":    credentials.SecretAccessKey,
		"AWS_ENDPOINT_URL_SQS":     awstest.SQSURL(t),
		"AWS_ENDPOINT_URL_S3":      bucket.Endpoint,
		"SLUICE_DELIVER_QUEUE_URL": queue.URL,
	})
	f, err := setup(t.Context(), Process{Env: lookup(vars), Stdout: new(output), HTTP: new(fresh)}, destinationSecrets)
	require.NoError(t, err)
	open, err := f.senders()
	require.NoError(t, err)
	defer open.Close()
	batch := &core.Batch{ID: "B", Buffer: "b", Attempt: 1, Items: []core.Item{{Event: core.Event{ID: "e", Body: []byte(`{"n":1}`), JSON: true}}}}
	for _, name := range []string{"work", "archive"} {
		r := open.Sender(name).Send(t.Context(), batch)
		require.Equal(t, core.Delivered, core.Classify(&r, nil), "%s: %+v", name, r)
	}
	got, err := client.ReceiveMessage(t.Context(), &vendor.ReceiveMessageInput{QueueUrl: &queue.URL, WaitTimeSeconds: 5})
	require.NoError(t, err)
	require.Len(t, got.Messages, 1)
	require.Equal(t, `{"n":1}`, *got.Messages[0].Body)
	objects := bucket.Objects()
	require.Len(t, objects, 1)
	require.Equal(t, "b/1970-01-01/B.ndjson.gz", objects[0].Key)
}

// A send is bounded by its destination's timeout, not by what bounds a call.
func TestPatience(t *testing.T) {
	t.Parallel()
	e, err := ReadEnv(lookup(variables(t, "")))
	require.NoError(t, err)
	sdk, err := newClients(&e, nil).destinations("http://127.0.0.1:1")()
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:1", *sdk.BaseEndpoint)
	client, ok := sdk.HTTPClient.(*awshttp.BuildableClient)
	require.True(t, ok)
	require.Zero(t, client.GetTimeout())
}

package cloud

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"sluice/functions/internal/senders"
)

const (
	// A call takes milliseconds. One that hangs is given up and made again
	// while its invocation still has time.
	dialTimeout = time.Second
	tlsTimeout  = 2 * time.Second
	callTimeout = 5 * time.Second // a look at the dead letters waits a second for them

	attempts   = 4
	maxBackoff = time.Second

	// idleConnections is how many are kept to one service: as many calls as a
	// request of many groups, or an invocation of many messages, makes at a time.
	idleConnections = 64
)

// clients makes clients of AWS services. They take all from the environment
// that Lambda gives to a function, so that the SDK's config package, which knows
// many other places to look, is not needed: that makes a function some 2 MB
// smaller, and its start quicker.
type clients struct {
	config    aws.Config
	endpoints Endpoints
}

func newClients(e *Env, client aws.HTTPClient) clients {
	if client == nil {
		client = keeping()
	}
	credentials := aws.Credentials{
		AccessKeyID: e.Credentials.Key, SecretAccessKey: e.Credentials.Secret, SessionToken: e.Credentials.Token,
		Source: "environment",
	}
	return clients{
		config: aws.Config{
			Region: e.Region,
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return credentials, nil
			}),
			HTTPClient: client,
			Retryer: func() aws.Retryer {
				return retry.NewStandard(func(o *retry.StandardOptions) {
					o.MaxAttempts, o.MaxBackoff = attempts, maxBackoff
				})
			},
		},
		endpoints: e.Endpoints,
	}
}

// keeping is a client that keeps connections between calls and invocations.
func keeping() aws.HTTPClient {
	return awshttp.NewBuildableClient().WithTimeout(callTimeout).
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.TLSHandshakeTimeout = tlsTimeout
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 2*idleConnections, idleConnections
		})
}

// at is an endpoint as the options of a client have it: nil for AWS's own.
func at(endpoint string) *string {
	if endpoint == "" {
		return nil
	}
	return &endpoint
}

func (c clients) dynamoDB() *table {
	return tableOf(dynamodb.NewFromConfig(c.config, func(o *dynamodb.Options) { o.BaseEndpoint = at(c.endpoints.DynamoDB) }))
}

func (c clients) sqs() *queues {
	return queuesOf(sqs.NewFromConfig(c.config, func(o *sqs.Options) { o.BaseEndpoint = at(c.endpoints.SQS) }))
}

func (c clients) scheduler() *schedules {
	client := scheduler.NewFromConfig(c.config, func(o *scheduler.Options) { o.BaseEndpoint = at(c.endpoints.Scheduler) })
	return &schedules{client.CreateSchedule}
}

// parameterStore is the SDK's configuration for reading secrets.
func (c clients) parameterStore() aws.Config {
	sdk := c.config.Copy()
	sdk.BaseEndpoint = at(c.endpoints.SSM)
	return sdk
}

// lambda is the SDK's configuration for an invocation that is waited for.
func (c clients) lambda() aws.Config { return c.patient("") }

// patient is the SDK's configuration for calls that take as long as their
// callers' ctx lets them, at an endpoint.
func (c clients) patient(endpoint string) aws.Config {
	sdk := c.config.Copy()
	sdk.BaseEndpoint = at(endpoint)
	if b, ok := sdk.HTTPClient.(*awshttp.BuildableClient); ok {
		sdk.HTTPClient = b.WithTimeout(0)
	}
	return sdk
}

// destinations reaches queues or buckets that are destinations, with the
// credentials of the function.
func (c clients) destinations(endpoint string) senders.SDK {
	return func() (aws.Config, error) { return c.patient(endpoint), nil }
}

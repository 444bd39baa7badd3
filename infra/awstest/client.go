package awstest

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Region is where the stand-ins say they are.
const Region = "us-east-1"

// Option changes the configuration that a client is made of. [Meter.Option]
// and [Faults.Option] are two.
type Option func(*aws.Config)

// Attempts lets the SDK try a call so many times, a millisecond apart. The
// default is 1, so that a test sees every request that its code makes.
func Attempts(n int) Option {
	return func(c *aws.Config) {
		c.Retryer = func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts = n
				o.RateLimiter = ratelimit.None
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return time.Millisecond, nil })
			})
		}
	}
}

// Config is a configuration with an endpoint, invented credentials, and
// connections of its own, which end with the test.
func Config(t testing.TB, endpoint string, opts ...Option) aws.Config {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	c := aws.Config{
		Region:       Region,
		BaseEndpoint: &endpoint,
		HTTPClient:   plainBodies{&http.Client{Transport: transport}},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "local", SecretAccessKey: "local", Source: "awstest"}, nil
		}),
	}
	Attempts(1)(&c)
	for _, o := range opts {
		o(&c)
	}
	return c
}

// plainBodies sends bodies that can only be read. The SDK closes a request's
// body as soon as the answer begins. Its body then fails net/http's look for
// more to send, which takes the connection down with the answer half read, if
// the server is as near as this one.
type plainBodies struct{ client aws.HTTPClient }

// Do sends a request.
func (p plainBodies) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return p.client.Do(r)
}

// DynamoDB is a client of this test binary's DynamoDB.
func DynamoDB(t testing.TB, opts ...Option) *dynamodb.Client {
	t.Helper()
	return dynamodb.NewFromConfig(Config(t, DynamoDBURL(t), opts...))
}

// DynamoDBURL is where this test binary's DynamoDB listens, for processes that
// a test starts: AWS_ENDPOINT_URL_DYNAMODB.
func DynamoDBURL(t testing.TB) string {
	t.Helper()
	return dynalite.at(t)
}

// SQS is a client of this test binary's SQS.
func SQS(t testing.TB, opts ...Option) *sqs.Client {
	t.Helper()
	return sqs.NewFromConfig(Config(t, SQSURL(t), opts...))
}

// SQSURL is where this test binary's SQS listens, for processes that a test
// starts: AWS_ENDPOINT_URL_SQS.
func SQSURL(t testing.TB) string {
	t.Helper()
	return fauxqs.at(t)
}

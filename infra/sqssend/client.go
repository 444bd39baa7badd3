package sqssend

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"sluice/core"
)

// regionOf is the region that the host of a queue's URL names, or "":
// sqs.eu-west-1.amazonaws.com, the older eu-west-1.queue.amazonaws.com, and
// those of endpoints in a VPC.
func regionOf(host string) string {
	before, ok := strings.CutSuffix(strings.TrimSuffix(host, ".cn"), ".amazonaws.com")
	if !ok {
		before, _ = strings.CutSuffix(host, ".api.aws")
	}
	labels := strings.Split(strings.TrimSuffix(before, ".vpce"), ".")
	if len(labels) < 2 || before == host {
		return ""
	}
	switch last, name := labels[len(labels)-1], labels[len(labels)-2]; {
	case name == "sqs" || name == "sqs-fips":
		return last
	case last == "queue":
		return name
	}
	return ""
}

// NewClient makes a client for a queue, at the address that its URL names, or
// the one at which the configuration has SQS, as AWS_ENDPOINT_URL_SQS does. The
// region is the given one, the one in the URL, or that of the configuration.
// Each call is made once: a batch has attempts of its own. Invalid: the URL is
// none, or there is no region.
func NewClient(sdk aws.Config, queue, region string) (*sqs.Client, error) {
	u, err := url.Parse(queue)
	if err != nil || u.Host == "" {
		return nil, core.Errorf(core.Invalid, "queue: not a URL; give one such as https://sqs.eu-west-1.amazonaws.com/123456789012/orders")
	}
	if region == "" {
		region = cmp.Or(regionOf(u.Hostname()), sdk.Region)
	}
	if region == "" {
		return nil, core.Errorf(core.Invalid, "region: not known; give the destination one, or set AWS_REGION")
	}
	return sqs.NewFromConfig(sdk, func(o *sqs.Options) {
		o.Region, o.Retryer = region, aws.NopRetryer{}
		if o.BaseEndpoint == nil {
			o.BaseEndpoint = new(u.Scheme + "://" + u.Host)
		}
	}), nil
}

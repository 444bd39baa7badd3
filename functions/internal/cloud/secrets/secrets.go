// Package secrets reads the secrets of a configuration from AWS. It stands
// apart from package cloud because functions that need no secrets are a
// megabyte smaller, and start milliseconds sooner, without it.
package secrets

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	vendor "github.com/aws/aws-sdk-go-v2/service/ssm"

	"sluice/core"
	"sluice/infra/config"
	"sluice/infra/ssm"
)

// Fetch reads every secret that a configuration refers to and that stands in
// Parameter Store or Secrets Manager, with clients of a configuration of the SDK.
// The error, of code Unavailable or Canceled, says that AWS could not be asked.
func Fetch(ctx context.Context, sdk aws.Config, c *core.Config) (source config.Source, schemes []string, err error) {
	s, err := ssm.Fetch(ctx, &parameters{vendor.NewFromConfig(sdk).GetParameters}, c)
	if err != nil {
		return nil, nil, err
	}
	return s.Lookup, ssm.Schemes(), nil
}

// parameters is the client behind the one operation that is used, so that the
// linker leaves out all others.
type parameters struct {
	getParameters func(context.Context, *vendor.GetParametersInput, ...func(*vendor.Options)) (*vendor.GetParametersOutput, error)
}

// GetParameters calls the operation.
func (p *parameters) GetParameters(ctx context.Context, in *vendor.GetParametersInput, o ...func(*vendor.Options)) (*vendor.GetParametersOutput, error) {
	return p.getParameters(ctx, in, o...)
}

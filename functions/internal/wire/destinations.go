package wire

import (
	"context"
	"io"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"

	"sluice/core"
	"sluice/core/format"
	"sluice/functions/internal/senders"
	"sluice/functions/internal/system"
	"sluice/infra/config"
	"sluice/infra/filesend"
)

// openers are the destinations that this process knows: all of them.
func openers(resolve senders.Resolver, stdout io.Writer, clock core.Clock) map[string]senders.Opener {
	return map[string]senders.Opener{
		core.TypeHTTP: senders.HTTP(resolve, clock),
		core.TypeSQS:  senders.SQS(sdk, resolve),
		core.TypeS3:   senders.S3(sdk, resolve, clock),
		core.TypeFile: func(d *core.Destination, f format.Format) (core.Sender, func(), error) {
			s, err := filesend.NewFile(d.Path, f, filesend.Timeout(d.Timeout))
			if err != nil {
				return nil, nil, err
			}
			return s, closer(s), nil
		},
		core.TypeStdout: func(d *core.Destination, f format.Format) (core.Sender, func(), error) {
			s := filesend.NewWriter(stdout, f, filesend.Timeout(d.Timeout))
			return s, closer(s), nil
		},
	}
}

// sdk reaches AWS as every tool of AWS does: by the environment, the shared
// files, or the role of the machine. It reads those, and calls nobody yet. What
// fails is in the errors; the SDK's own log would be raw lines amid the program's.
func sdk() (aws.Config, error) {
	c, err := awsconfig.LoadDefaultConfig(context.Background(), awsconfig.WithLogger(logging.Nop{}))
	return c, core.Wrap(core.Invalid, err, "the settings for AWS cannot be read")
}

func closer(s *filesend.Sender) func() {
	return func() { _ = s.Close() } // each batch was written before it was answered
}

// OpenDestination opens one destination of a configuration, as a running system
// has it. done is to be called at the end. NotFound: there is none of that name.
func OpenDestination(c *core.Config, name string, env func(string) string, stdout io.Writer) (s core.Sender, done func(), err error) {
	i := slices.IndexFunc(c.Destinations, func(d core.Destination) bool { return d.Name == name })
	if i < 0 {
		return nil, nil, core.Errorf(core.NotFound, "there is no destination %q", name)
	}
	lookup := func(key string) (string, bool) {
		v := env(key)
		return v, v != ""
	}
	alone := &core.Config{Destinations: c.Destinations[i : i+1]}
	resolve := config.NewSecrets(lookup).Resolve
	if err := resolvable(alone, resolve); err != nil {
		return nil, nil, err
	}
	open, err := senders.Open(alone, openers(resolve, stdout, system.Clock()))
	if err != nil {
		return nil, nil, err
	}
	return open.Sender(name), open.Close, nil
}

package ssm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"sluice/core"
)

const (
	schemeParameter = "ssm"
	schemeSecret    = "secretsmanager"

	// referencePath is where Parameter Store passes names on to Secrets Manager.
	referencePath = "/aws/reference/secretsmanager/"

	// maxNames is how many names one call may ask for.
	maxNames = 10
)

// Schemes are the schemes of the references that are read here.
func Schemes() []string { return []string{schemeParameter, schemeSecret} }

// API is what is used of [ssm.Client].
type API interface {
	GetParameters(ctx context.Context, in *ssm.GetParametersInput, opts ...func(*ssm.Options)) (*ssm.GetParametersOutput, error)
}

// Secrets are the secrets of a configuration, as they were read. They do not
// change, and are safe for concurrent use.
type Secrets struct {
	values map[core.Secret]string
	faults map[core.Secret]core.Fault
}

// Fetch reads every secret that a configuration refers to by one of [Schemes],
// ten a call; it makes no call if there is none. The error, of code Unavailable or
// Canceled, says that the service could not be asked. What is wrong with single
// references is told by [Secrets.Lookup], so that all of it can be reported.
func Fetch(ctx context.Context, client API, c *core.Config) (*Secrets, error) {
	s := &Secrets{values: make(map[core.Secret]string), faults: make(map[core.Secret]core.Fault)}
	names := make(map[core.Secret]string)
	var wanted []string
	for _, ref := range c.Secrets() {
		scheme, id, ok := ref.Split()
		if !ok || !slices.Contains(Schemes(), scheme) {
			continue
		}
		name, fault := parameter(scheme, id)
		if fault.Problem != "" {
			s.faults[ref] = fault
			continue
		}
		names[ref] = name
		if !slices.Contains(wanted, name) { // a call that names one twice is refused
			wanted = append(wanted, name)
		}
	}
	r := reading{client: client, values: make(map[string]string), faults: make(map[string]core.Fault)}
	for some := range slices.Chunk(wanted, maxNames) {
		if err := r.read(ctx, some); err != nil {
			return nil, err
		}
	}
	for ref, name := range names {
		if value, ok := r.values[name]; ok {
			s.values[ref] = value
		} else {
			s.faults[ref] = r.faults[name]
		}
	}
	return s, nil
}

// Lookup is the secret that a reference names, or what is wrong with the
// reference; the fault has no path, and tells no value.
func (s *Secrets) Lookup(ref core.Secret) (string, core.Fault) {
	if value, ok := s.values[ref]; ok {
		return value, core.Fault{}
	}
	if fault, ok := s.faults[ref]; ok {
		return "", fault
	}
	return "", core.Fault{Problem: "was not read at the start", Right: "must stand in the configuration that the function started with"}
}

// Format implements [fmt.Formatter]: whatever prints them shows no value.
func (s *Secrets) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "%d secrets", len(s.values)) }

// parameter is the name by which Parameter Store knows what a reference names.
func parameter(scheme, id string) (string, core.Fault) {
	switch {
	case scheme == schemeSecret && strings.HasPrefix(id, "arn:"):
		return "", core.Fault{
			Problem: "is the ARN of a secret, which cannot be read through Parameter Store",
			Right:   "must be secretsmanager:NAME, for a secret of the function's own account and region",
		}
	case scheme == schemeSecret:
		return referencePath + id, core.Fault{}
	case strings.Contains(id, "/") && !strings.HasPrefix(id, "/"):
		return "", core.Fault{
			Problem: "names a parameter by a path that does not begin with /",
			Right:   "must be ssm:/" + id,
		}
	}
	return id, core.Fault{}
}

// reading is what has been read, by the names of parameters.
type reading struct {
	client API
	values map[string]string
	faults map[string]core.Fault
}

// read asks for some names. One that may not be read fails the call for all of
// them, so they are then asked for one by one, to tell which it is.
func (r *reading) read(ctx context.Context, names []string) error {
	out, err := r.client.GetParameters(ctx, &ssm.GetParametersInput{Names: names, WithDecryption: aws.Bool(true)})
	if err == nil {
		r.take(names, out)
		return nil
	}
	fault, single := faultOf(names[0], err)
	switch {
	case !single:
		return unavailable(err)
	case len(names) == 1:
		r.faults[names[0]] = fault
		return nil
	}
	for i := range names {
		if err := r.read(ctx, names[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// take takes what a call for some names has returned; a name that is not in it
// names nothing.
func (r *reading) take(names []string, out *ssm.GetParametersOutput) {
	returned := make(map[string]string, len(out.Parameters))
	for i := range out.Parameters {
		p := &out.Parameters[i]
		name := aws.ToString(p.Name)
		if version := strings.TrimPrefix(aws.ToString(p.Selector), ":"); version != "" {
			name += ":" + version
		}
		returned[name] = aws.ToString(p.Value)
	}
	for _, name := range names {
		switch value, ok := returned[name]; {
		case !ok:
			r.faults[name] = missing(name)
		case value == "":
			r.faults[name] = empty(name)
		default:
			r.values[name] = value
		}
	}
}

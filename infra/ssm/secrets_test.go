package ssm_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/core"
	"sluice/infra/ssm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is Parameter Store as far as it is asked: by the rules of GetParameters.
type store struct {
	values map[string]string // by name, version included
	errors map[string]error  // by name: what a call that names it gets
	down   error             // what every call gets
	calls  [][]string
}

func (s *store) GetParameters(
	ctx context.Context, in *awsssm.GetParametersInput, _ ...func(*awsssm.Options),
) (*awsssm.GetParametersOutput, error) {
	s.calls = append(s.calls, in.Names)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.down != nil {
		return nil, s.down
	}
	if n := len(in.Names); n == 0 || n > 10 || len(slices.Compact(slices.Sorted(slices.Values(in.Names)))) != n {
		return nil, &smithy.GenericAPIError{Code: "ValidationException", Message: "names"}
	}
	if !aws.ToBool(in.WithDecryption) {
		return nil, errors.New("without decryption the value is not the secret")
	}
	out := &awsssm.GetParametersOutput{}
	for _, name := range in.Names {
		if err := s.errors[name]; err != nil {
			return nil, err
		}
		value, ok := s.values[name]
		if !ok {
			out.InvalidParameters = append(out.InvalidParameters, name)
			continue
		}
		p := types.Parameter{Name: aws.String(name), Value: aws.String(value)}
		if plain, version, ok := strings.Cut(name, ":"); ok {
			p.Name, p.Selector = aws.String(plain), aws.String(":"+version)
		}
		out.Parameters = append(out.Parameters, p)
	}
	slices.Reverse(out.Parameters) // the order is the service's own
	return out, nil
}

// config refers to some secrets.
func config(refs ...core.Secret) *core.Config {
	c := core.NewConfig()
	c.Control.Tokens = refs
	return c
}

func denied(message string) error {
	return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: message}
}

func TestFetch(t *testing.T) {
	t.Parallel()
	s := &store{values: map[string]string{
		"/prod/token":                           "one",
		"plain":                                 "two",
		"/aws/reference/secretsmanager/crm":     `{"key":"three"}`,
		"/aws/reference/secretsmanager/a/b:old": "four",
		"/aws/reference/secretsmanager//rooted": "five",
	}}
	c := config("env:NOT_ASKED", "ssm:/prod/token", "ssm:plain", "secretsmanager:crm")
	c.Destinations = []core.Destination{{Name: "d", Secrets: []core.Secret{
		"secretsmanager:a/b:old", "secretsmanager:/rooted", "ssm:/prod/token", "ssm:/aws/reference/secretsmanager/crm",
	}}}
	secrets, err := ssm.Fetch(t.Context(), s, c)
	require.NoError(t, err)
	for ref, want := range map[core.Secret]string{
		"ssm:/prod/token":                       "one",
		"ssm:plain":                             "two",
		"secretsmanager:crm":                    `{"key":"three"}`,
		"secretsmanager:a/b:old":                "four",
		"secretsmanager:/rooted":                "five",
		"ssm:/aws/reference/secretsmanager/crm": `{"key":"three"}`,
	} {
		got, fault := secrets.Lookup(ref)
		require.Empty(t, fault)
		require.Equal(t, want, got)
	}
	require.Len(t, s.calls, 1, "one call for all of them")
	_, fault := secrets.Lookup("ssm:/later")
	require.Equal(t, "was not read at the start", fault.Problem)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, "6 secrets", fmt.Sprintf(verb, secrets))
	}
}

func TestNoCallWithoutNeed(t *testing.T) {
	t.Parallel()
	for name, refs := range map[string][]core.Secret{
		"no reference":            nil,
		"the environment only":    {"env:A", "env:B"},
		"what cannot be asked":    {"secretsmanager:arn:aws:secretsmanager:eu-west-1:1:secret:x-AbCdEf", "ssm:a/b"},
		"what is not a reference": {"hunter2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &store{down: errors.New("not to be asked")}
			_, err := ssm.Fetch(t.Context(), s, config(refs...))
			require.NoError(t, err)
			require.Empty(t, s.calls)
		})
	}
}

func TestTenNamesACall(t *testing.T) {
	t.Parallel()
	s := &store{values: map[string]string{}}
	var refs []core.Secret
	for i := range 23 {
		name := fmt.Sprintf("/p/%d", i)
		s.values[name] = name
		refs = append(refs, core.Secret("ssm:"+name))
	}
	secrets, err := ssm.Fetch(t.Context(), s, config(refs...))
	require.NoError(t, err)
	require.Len(t, s.calls, 3)
	for _, ref := range refs {
		value, fault := secrets.Lookup(ref)
		require.Empty(t, fault)
		require.Equal(t, string(ref), "ssm:"+value)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	const secret = "/aws/reference/secretsmanager/crm"
	role := "User: arn:aws:sts::1:assumed-role/deliver/x is not authorized to perform: "
	tests := []struct {
		name  string
		ref   core.Secret
		store store
		want  string // problem; right
	}{
		{
			"no such parameter", "ssm:/x", store{},
			"names the parameter /x, which Parameter Store does not have; create it in the account and region of the function, as a SecureString",
		},
		{
			"no such secret", "secretsmanager:crm", store{},
			"names the secret crm, which Secrets Manager does not have; create it in the account and region of the function",
		},
		{
			"a secret that is an error", "secretsmanager:crm",
			store{errors: map[string]error{secret: &types.ParameterNotFound{}}},
			"names the secret crm, which Secrets Manager does not have; create it in the account and region of the function",
		},
		{
			"no permission", "ssm:/x", store{errors: map[string]error{"/x": denied(role + "ssm:GetParameters on resource: y")}},
			"names the parameter /x, which the function may not read; its role needs ssm:GetParameters on it",
		},
		{
			"no permission for the secret", "secretsmanager:crm",
			store{errors: map[string]error{secret: denied(role + "secretsmanager:GetSecretValue on resource: crm")}},
			"names the secret crm, which the function may not read; its role needs secretsmanager:GetSecretValue on it",
		},
		{
			"no permission for the key", "ssm:/x", store{errors: map[string]error{"/x": denied(role + "kms:Decrypt on resource: y")}},
			"names the parameter /x, which the function may not read; its role needs kms:Decrypt on its key",
		},
		{
			"a permission that is not told", "ssm:/x", store{errors: map[string]error{"/x": denied("no")}},
			"names the parameter /x, which the function may not read; its role needs ssm:GetParameters on it, and kms:Decrypt if the key is not aws/ssm",
		},
		{
			"a permission for a secret that is not told", "secretsmanager:crm", store{errors: map[string]error{secret: denied("no")}},
			"names the secret crm, which the function may not read; its role needs secretsmanager:GetSecretValue and ssm:GetParameters on it, and kms:Decrypt if the key is not aws/secretsmanager",
		},
		{
			"a refused name", "ssm:ssm-x", store{errors: map[string]error{"ssm-x": &smithy.GenericAPIError{Code: "ValidationException"}}},
			"names the parameter ssm-x, a name that Parameter Store refuses; must be of letters, digits and _.-, with / before and between levels, and not begin with aws or ssm",
		},
		{
			"a refused name of a secret", "secretsmanager:a+b",
			store{errors: map[string]error{"/aws/reference/secretsmanager/a+b": &smithy.GenericAPIError{Code: "ValidationException"}}},
			"names the secret a+b, a name that Parameter Store refuses; must be of letters, digits and /_.-, with a colon and the version behind it if need be",
		},
		{
			"a key that is gone", "ssm:/x", store{errors: map[string]error{"/x": &types.InvalidKeyId{}}},
			"names the parameter /x, whose key is gone or disabled; enable the key, or store the secret again with another",
		},
		{
			"a binary secret", "secretsmanager:crm", store{values: map[string]string{secret: ""}},
			"names the secret crm, which holds no text; store the secret as text, not as binary",
		},
		{
			"an ARN", "secretsmanager:arn:aws:secretsmanager:eu-west-1:1:secret:crm-AbCdEf", store{},
			"is the ARN of a secret, which cannot be read through Parameter Store; must be secretsmanager:NAME, for a secret of the function's own account and region",
		},
		{
			"a path without its slash", "ssm:prod/x", store{},
			"names a parameter by a path that does not begin with /; must be ssm:/prod/x",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// the ones beside it are read all the same
			if tt.store.values == nil {
				tt.store.values = map[string]string{}
			}
			tt.store.values["/a"], tt.store.values["/z"] = "hunter2", "hunter3"
			secrets, err := ssm.Fetch(t.Context(), &tt.store, config("ssm:/a", tt.ref, "ssm:/z"))
			require.NoError(t, err)
			value, fault := secrets.Lookup(tt.ref)
			require.Empty(t, value)
			require.Empty(t, cmp.Diff(tt.want, fault.Problem+"; "+fault.Right))
			for ref, want := range map[core.Secret]string{"ssm:/a": "hunter2", "ssm:/z": "hunter3"} {
				value, fault := secrets.Lookup(ref)
				require.Empty(t, fault)
				require.Equal(t, want, value)
			}
		})
	}
}

func TestEveryFaultIsTold(t *testing.T) {
	t.Parallel()
	s := &store{
		values: map[string]string{"/ok": "x"},
		errors: map[string]error{"/no": denied("no"), "/never": denied("no")},
	}
	secrets, err := ssm.Fetch(t.Context(), s, config("ssm:/no", "ssm:/ok", "ssm:/gone", "ssm:/never"))
	require.NoError(t, err)
	for ref, want := range map[core.Secret]string{"ssm:/no": "may not read", "ssm:/never": "may not read", "ssm:/gone": "does not have"} {
		_, fault := secrets.Lookup(ref)
		require.Contains(t, fault.Problem, want)
	}
	require.Len(t, s.calls, 5, "all at once, then one by one")
}

func TestTheServiceIsDown(t *testing.T) {
	t.Parallel()
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name string
		ctx  context.Context
		err  error
		want core.Code
	}{
		{"throttled", t.Context(), &smithy.GenericAPIError{Code: "ThrottlingException"}, core.Unavailable},
		{"broken", t.Context(), &types.InternalServerError{}, core.Unavailable},
		{"unreachable", t.Context(), &net.OpError{Op: "dial", Err: errors.New("refused")}, core.Unavailable},
		{"too slow", t.Context(), context.DeadlineExceeded, core.Unavailable},
		{"stopped", stopped, nil, core.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &store{down: tt.err}
			_, err := ssm.Fetch(tt.ctx, s, config("ssm:/a", "ssm:/b"))
			require.Equal(t, tt.want, core.CodeOf(err))
			require.ErrorContains(t, err, "secrets cannot be read from Parameter Store")
			require.Len(t, s.calls, 1, "asking one by one would help nothing")
		})
	}
}

// TestItGoesDownInBetween shows that an error is not taken for a fault of the
// reference that was asked for then.
func TestItGoesDownInBetween(t *testing.T) {
	t.Parallel()
	s := &store{errors: map[string]error{"/a": denied("no"), "/b": &smithy.GenericAPIError{Code: "ThrottlingException"}}}
	_, err := ssm.Fetch(t.Context(), s, config("ssm:/a", "ssm:/b"))
	require.Equal(t, core.Unavailable, core.CodeOf(err))
}

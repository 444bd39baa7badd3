package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/core"
)

func env(name string) (string, bool) {
	v, ok := map[string]string{"SET": "hunter2", "EMPTY": ""}[name]
	return v, ok
}

func TestResolve(t *testing.T) {
	t.Parallel()
	tests := []struct {
		ref  core.Secret
		want string
		err  string
	}{
		{"env:SET", "hunter2", ""},
		{"env:EMPTY", "", "names the environment variable EMPTY, which is empty"},
		{"env:UNSET", "", "names the environment variable UNSET, which is not set"},
		{"ssm:/prod/x", "", "is one of ssm:, which is for AWS and not available here"},
		{"secretsmanager:x", "", "is one of secretsmanager:, which is for AWS and not available here"},
		{"hunter2", "", "is not of a known form"},
	}
	for _, tt := range tests {
		t.Run(string(tt.ref), func(t *testing.T) {
			t.Parallel()
			got, err := NewSecrets(env).Resolve(tt.ref)
			require.Equal(t, tt.want, got)
			if tt.err == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, core.Invalid, core.CodeOf(err))
			require.ErrorContains(t, err, tt.err)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestResolveAll(t *testing.T) {
	t.Parallel()
	c := fullConfig()
	c.Control.Tokens = []core.Secret{"env:SET"}
	c.Sources[0].Auth.Bearer = []core.Secret{"env:EMPTY"}
	values, faults := NewSecrets(env).ResolveAll(c)
	require.Equal(t, map[core.Secret]string{"env:SET": "hunter2"}, values)
	var got []string
	for _, f := range faults {
		got = append(got, f.Path+": "+f.Problem)
	}
	require.Empty(t, cmp.Diff([]string{
		"sources.orders.auth.bearer[0]: names the environment variable EMPTY, which is empty",
		"sources.hooks.auth.webhook.secrets[0]: names the environment variable S, which is not set",
		"destinations.crm.headers.authorization: names the environment variable CRM_AUTH, which is not set",
		"destinations.crm.secrets[0]: names the environment variable CRM_SECRET, which is not set",
		"destinations.crm.secrets[1]: is one of secretsmanager:, which is for AWS and not available here",
	}, got))
}

func TestOtherSources(t *testing.T) {
	t.Parallel()
	local := NewSecrets(env)
	vault := func(ref core.Secret) (string, core.Fault) {
		if ref == "ssm:/x" {
			return "from " + string(ref), core.Fault{}
		}
		return "", core.Fault{Problem: "names nothing", Right: "name something"}
	}
	cloud := local.With(vault, "ssm", "secretsmanager")

	for ref, want := range map[core.Secret]string{"env:SET": "hunter2", "ssm:/x": "from ssm:/x"} {
		got, err := cloud.Resolve(ref)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := cloud.Resolve("secretsmanager:y")
	require.Equal(t, core.Invalid, core.CodeOf(err))
	require.EqualError(t, err, "the reference names nothing; name something")
	_, err = local.Resolve("ssm:/x")
	require.ErrorContains(t, err, "not available here", "the one that it was made of stays as it was")

	c := fullConfig()
	c.Control.Tokens = []core.Secret{"env:EMPTY", "ssm:/x", "ssm:/y"}
	values, faults := cloud.ResolveAll(c)
	require.Equal(t, map[core.Secret]string{"ssm:/x": "from ssm:/x"}, values)
	require.Equal(t, core.Fault{Path: "control.tokens[2]", Problem: "names nothing", Right: "name something"}, faults[1])
}

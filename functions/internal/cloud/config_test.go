package cloud

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/config"
)

// vault is secrets of AWS. It notes what was asked for.
type vault struct {
	values map[core.Secret]string
	asked  []core.Secret
	region string
	err    error
}

func (v *vault) fetch(_ context.Context, sdk aws.Config, c *core.Config) (config.Source, []string, error) {
	v.region = sdk.Region
	for _, ref := range c.Secrets() {
		v.asked = append(v.asked, ref)
	}
	return func(ref core.Secret) (string, core.Fault) {
		if value, ok := v.values[ref]; ok {
			return value, core.Fault{}
		}
		return "", core.Fault{Problem: "names nothing", Right: "create it"}
	}, []string{"ssm"}, v.err
}

// load loads a configuration by the parts of it that a function needs.
func load(t *testing.T, text string, needed part, v *vault) (*settings, error) {
	t.Helper()
	vars := variables(t, text)
	e, err := ReadEnv(lookup(vars))
	require.NoError(t, err)
	s, err := loadSettings(t.Context(), &e, Process{Env: lookup(vars), Secrets: v.fetch}, needed)
	if err != nil { // where the file lies is the test's own affair
		err = core.Errorf(core.CodeOf(err), "%s", strings.ReplaceAll(err.Error(), vars["SLUICE_CONFIG"], "sluice.yaml"))
	}
	return s, err
}

const secretive = `
control: {tokens: [ssm:/control]}
sources:
  orders: {type: http, auth: {webhook: {secrets: [ssm:/sign]}}}
  work: {type: sqs, queue: "ssm:/queue"}
destinations:
  crm: {type: http, url: "https://crm.example.com/", secrets: [ssm:/crm], headers: {x-key: env:TOKEN}}
buffers:
  b: {from: [orders], to: crm}
`

// A function asks for no secret but those that it needs.
func TestSecretsThatAreNeeded(t *testing.T) {
	t.Parallel()
	values := map[core.Secret]string{"ssm:/control": "1", "ssm:/sign": "2", "ssm:/crm": "3", "ssm:/queue": "4", "env:TOKEN": "orders-token"}
	for _, tt := range []struct {
		name   string
		needed part
		want   []core.Secret
	}{
		{"ingest", requestSecrets, []core.Secret{"ssm:/sign"}},
		{"receive", queueSecrets, []core.Secret{"ssm:/queue"}},
		{"check, flush", noSecrets, nil},
		{"deliver", destinationSecrets, []core.Secret{"env:TOKEN", "ssm:/crm"}},
		{"control", controlSecrets, []core.Secret{"ssm:/control", "env:TOKEN", "ssm:/crm"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := &vault{values: values}
			s, err := load(t, secretive, tt.needed, v)
			require.NoError(t, err)
			require.Equal(t, tt.want, v.asked)
			require.Equal(t, "eu-central-1", v.region)
			require.Len(t, s.secrets, len(tt.want))
			for _, ref := range tt.want {
				got, err := s.resolve(ref)
				require.NoError(t, err)
				require.Equal(t, values[ref], got)
			}
			_, err = s.resolve("ssm:/other")
			require.Equal(t, core.Internal, core.CodeOf(err))
		})
	}
}

func TestSettingsThatDoNotWork(t *testing.T) {
	t.Parallel()
	down := core.Errorf(core.Unavailable, "Parameter Store does not answer")
	for _, tt := range []struct {
		name, text string
		err        error
		code       core.Code
		want       string
	}{
		{"faults of the file", "sources: {x: {type: https}}\nbuffer: {}\n", nil, core.Invalid, `
sluice.yaml:1:21: sources.x.type:
sluice.yaml:2:1: buffer:`},
		{"what AWS cannot do", `
store: {sync: false}
sources:
  a: {type: http, maxEventBytes: 351KiB}
  b: {type: http, maxEventBytes: 350KiB}
destinations:
  f: {type: file, path: /tmp/x}
  s: {type: stdout}
buffers:
  x: {from: [a], to: f, overflow: {maxBytes: 1MiB}}
  y: {from: [b], to: s}
`, nil, core.Invalid, `
sluice.yaml:4:34: sources.a.maxEventBytes: is 351KiB, more than an item of DynamoDB holds; must be at most 350KiB on AWS
sluice.yaml:7:13: destinations.f.type: is file, which is for one machine: a function keeps no files; must be http, sqs or s3 on AWS
sluice.yaml:8:13: destinations.s.type: is stdout, which is for one machine: a function keeps no files; must be http, sqs or s3 on AWS`},
		{"secrets", strings.ReplaceAll(secretive, "env:TOKEN", "env:GONE"), nil, core.Invalid, `
sluice.yaml:2:20: control.tokens[0]: names nothing; create it
sluice.yaml:4:51: sources.orders.auth.webhook.secrets[0]: names nothing; create it
sluice.yaml:5:28: sources.work.queue: names nothing; create it
sluice.yaml:7:64: destinations.crm.secrets[0]: names nothing; create it
sluice.yaml:7:92: destinations.crm.headers.x-key: names the environment variable GONE, which is not set; set it before the start; or better, use ssm:PATH or secretsmanager:ID`},
		{"AWS does not answer", secretive, down, core.Unavailable, "\nParameter Store does not answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, tt.text, whole, &vault{err: tt.err})
			require.Equal(t, tt.code, core.CodeOf(err))
			want := strings.Split(tt.want[1:], "\n")
			got := strings.Split(err.Error(), "\n")
			require.Len(t, got, len(want), err)
			for i := range want {
				require.True(t, strings.HasPrefix(got[i], want[i]), "%s\nmust begin with\n%s", got[i], want[i])
			}
		})
	}
}

func TestSettingsThatAreNotThere(t *testing.T) {
	t.Parallel()
	vars := variables(t, "")
	vars["SLUICE_CONFIG"] += ".gone"
	_, err := setup(t.Context(), Process{Env: lookup(vars), Stdout: new(output)}, noSecrets)
	require.Equal(t, core.NotFound, core.CodeOf(err))
}

// What has no effect on AWS is warned of in the log.
func TestSettingsWithoutEffect(t *testing.T) {
	t.Parallel()
	out := new(output)
	vars := variables(t, "store: {sync: false}\nsources: {s: {type: http}}\n")
	_, err := setup(t.Context(), Process{Env: lookup(maps.Clone(vars)), Stdout: out}, noSecrets)
	require.NoError(t, err)
	for _, path := range []string{"store.sync", "control.tokens", "sources.s.auth"} {
		require.Equal(t, "WARN", out.line(t, path)["level"])
	}
}

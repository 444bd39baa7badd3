package ssm_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/ssm"
)

// serve is a client of the SDK whose service is a handler of one operation.
func serve(t *testing.T, answer func(names []string) (status int, body any)) *awsssm.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Names          []string
			WithDecryption bool
		}
		if r.Header.Get("X-Amz-Target") != "AmazonSSM.GetParameters" || json.NewDecoder(r.Body).Decode(&in) != nil || !in.WithDecryption {
			w.WriteHeader(http.StatusNotImplemented)
			return
		}
		status, body := answer(in.Names)
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(server.Close)
	return awsssm.New(awsssm.Options{
		BaseEndpoint: aws.String(server.URL),
		Region:       "eu-west-1",
		HTTPClient:   server.Client(),
		Retryer:      aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "key"}, nil
		}),
	})
}

// TestTheSDK shows that what the SDK makes of the service's answers is what is
// expected of it: names with versions, and errors that its model does not have.
func TestTheSDK(t *testing.T) {
	t.Parallel()
	const forbidden = "/forbidden"
	client := serve(t, func(names []string) (int, any) {
		if slices.Contains(names, forbidden) {
			return http.StatusBadRequest, map[string]string{
				"__type":  "AccessDeniedException",
				"message": "User: x is not authorized to perform: ssm:GetParameters on resource: y because no identity-based policy allows it",
			}
		}
		found := []map[string]any{}
		invalid := []string{}
		for _, n := range names {
			switch n {
			case "/aws/reference/secretsmanager/crm:AWSPREVIOUS":
				found = append(found, map[string]any{
					"Name": "/aws/reference/secretsmanager/crm", "Selector": ":AWSPREVIOUS", "Type": "SecureString", "Value": "old",
				})
			case "/a":
				found = append(found, map[string]any{"Name": "/a", "Type": "SecureString", "Value": "new", "Version": 3})
			default:
				invalid = append(invalid, n)
			}
		}
		return http.StatusOK, map[string]any{"Parameters": found, "InvalidParameters": invalid}
	})
	secrets, err := ssm.Fetch(t.Context(), client, config("ssm:/a", "secretsmanager:crm:AWSPREVIOUS", "ssm:/gone", "ssm:"+forbidden))
	require.NoError(t, err)
	for ref, want := range map[core.Secret]string{"ssm:/a": "new", "secretsmanager:crm:AWSPREVIOUS": "old"} {
		value, fault := secrets.Lookup(ref)
		require.Empty(t, fault)
		require.Equal(t, want, value)
	}
	_, fault := secrets.Lookup("ssm:/gone")
	require.Contains(t, fault.Problem, "does not have")
	_, fault = secrets.Lookup("ssm:" + forbidden)
	require.Equal(t, "its role needs ssm:GetParameters on it", fault.Right)
}

func TestTheSDKIsThrottled(t *testing.T) {
	t.Parallel()
	client := serve(t, func([]string) (int, any) {
		return http.StatusBadRequest, map[string]string{"__type": "ThrottlingException", "message": "Rate exceeded"}
	})
	_, err := ssm.Fetch(t.Context(), client, config("ssm:/a"))
	require.Equal(t, core.Unavailable, core.CodeOf(err))
	require.ErrorContains(t, err, "Rate exceeded")
}

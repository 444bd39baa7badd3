package awstest

import (
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEndsWithItsStdin is what ends a stand-in when the test binary dies, be it
// by kill -9: the kernel closes the pipe.
func TestEndsWithItsStdin(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dynamodb", "sqs"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := launch(name)
			if missing, ok := errors.AsType[missingError](err); ok {
				t.Skip(missing.Error())
			}
			require.NoError(t, err)
			u, err := url.Parse(p.url)
			require.NoError(t, err)
			require.Equal(t, "127.0.0.1", u.Hostname())
			require.NoError(t, p.stdin.Close())
			require.NoError(t, p.cmd.Wait())
		})
	}
}

func TestUnknownStandin(t *testing.T) {
	t.Parallel()
	_, err := launch("s3")
	if missing, ok := errors.AsType[missingError](err); ok {
		t.Skip(missing.Error())
	}
	require.ErrorContains(t, err, "the stand-in for s3 did not start")
	require.ErrorContains(t, err, "exit status 2")
}

func TestWithoutNode(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := launch("dynamodb")
	var missing missingError
	require.ErrorAs(t, err, &missing)
	require.ErrorContains(t, err, "need Node.js")
}

func TestOneProcessForAll(t *testing.T) {
	t.Parallel()
	url := DynamoDBURL(t)
	require.Equal(t, url, DynamoDBURL(t))
	require.NotEqual(t, url, SQSURL(t))
}

// Command ingest is the Lambda function that takes events in over HTTP, makes them
// durable and arms their checks.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"sluice/functions/internal/cloud"
	"sluice/functions/internal/cloud/secrets"
	"sluice/functions/internal/language"
)

func main() {
	p := cloud.Process{Env: os.LookupEnv, Stdout: os.Stdout, Secrets: secrets.Fetch, Language: language.JQ}
	handle, err := cloud.Ingest(context.Background(), p)
	if err != nil {
		os.Exit(cloud.Fail(p, err))
	}
	lambda.Start(handle)
}

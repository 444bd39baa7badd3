// Command control is the Lambda function that shows what waits and what has failed, and
// replays dead letters.
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
	handle, err := cloud.Control(context.Background(), p)
	if err != nil {
		os.Exit(cloud.Fail(p, err))
	}
	lambda.Start(handle)
}

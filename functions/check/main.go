// Command check is the Lambda function that looks at groups at their deadlines and hands
// over those that are due.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"sluice/functions/internal/cloud"
)

func main() {
	p := cloud.Process{Env: os.LookupEnv, Stdout: os.Stdout}
	handle, err := cloud.Check(context.Background(), p)
	if err != nil {
		os.Exit(cloud.Fail(p, err))
	}
	lambda.Start(handle)
}

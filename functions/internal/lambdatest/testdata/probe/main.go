// Command probe is a function that does what its payload says.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type order struct {
	Do   string `json:"do"`
	Text string `json:"text"`
}

type report struct {
	Text     string `json:"text"`
	PID      int    `json:"pid"`
	Served   int    `json:"served"`
	Ticks    int    `json:"ticks"`
	Request  string `json:"request"`
	ARN      string `json:"arn"`
	Left     int64  `json:"left"`
	Function string `json:"function"`
	Trace    string `json:"trace"`
}

var served int

func main() {
	if os.Getenv("PROBE") == "exit" {
		os.Exit(3)
	}
	lambda.Start(handle)
}

func handle(ctx context.Context, o order) (report, error) {
	served++
	lc, _ := lambdacontext.FromContext(ctx)
	deadline, _ := ctx.Deadline()
	r := report{Text: o.Text, PID: os.Getpid(), Served: served, Request: lc.AwsRequestID, ARN: lc.InvokedFunctionArn,
		Left: time.Until(deadline).Milliseconds(), Function: os.Getenv("AWS_LAMBDA_FUNCTION_NAME"), Trace: os.Getenv("_X_AMZN_TRACE_ID")}
	switch o.Do {
	case "fail":
		return r, errors.New(o.Text)
	case "panic":
		panic(o.Text)
	case "exit":
		os.Exit(4)
	case "hang":
		<-make(chan struct{})
	case "large":
		r.Text = strings.Repeat("x", 7<<20)
	case "call":
		text, err := call(o.Text)
		r.Text = text
		return r, err
	case "write":
		fmt.Println(o.Text)
	}
	return r, nil
}

// call makes a call as the AWS SDK does: "service operation".
func call(what string) (string, error) {
	service, operation, _ := strings.Cut(what, " ")
	req, err := http.NewRequest(http.MethodPost, os.Getenv("AWS_ENDPOINT_URL_"+strings.ToUpper(service))+"/", strings.NewReader("{}"))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-Amz-Target", "Service_2012."+operation)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.Status + " " + string(body), err
}

package awstest

import (
	"context"
	"errors"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Call is a request that is about to be sent.
type Call struct {
	Op    string // the operation, as "PutItem"
	Nth   int    // which one of its operation, from 1
	Total int    // which one of all, from 1
	Input any    // of the SDK's type, as *dynamodb.PutItemInput; to read, not to change
}

// Fault is what happens to a call.
type Fault int

// The faults. Each looks to the caller as it would on AWS, and the SDK's own
// retries, if there are any, take each for worth another try.
const (
	None     Fault = iota
	Unsent         // it fails, and never was carried out
	Lost           // it is carried out, and its answer is lost
	Throttle       // it is refused, as there are too many
)

// Plan says what happens to a call. It runs before the call is sent, in the
// caller's goroutine, so whatever else it does (block, write as a rival with
// a client of its own) happens first. Several calls may be in it at once.
type Plan func(ctx context.Context, c Call) Fault

// Faults makes calls of the clients made with its option fail, or hooks into
// them. The zero value changes nothing.
type Faults struct {
	mu    sync.Mutex
	plan  Plan
	after Hook
	total int
	nth   map[string]int
}

// Option puts a client's calls under this plan.
func (f *Faults) Option(c *aws.Config) { c.APIOptions = append(c.APIOptions, f.install) }

// Set replaces the plan, and counts calls from 1 again. A nil plan changes
// nothing.
func (f *Faults) Set(p Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.total, f.nth = p, 0, nil
}

// Hook sees a call's answer before its caller does. It may change what out, of
// the SDK's type as *dynamodb.QueryOutput, points to, and so may make an answer
// stale or partial. out is empty when err is not nil.
type Hook func(ctx context.Context, c Call, out any, err error)

// After has h run after every call that was sent. A nil hook ends that.
func (f *Faults) After(h Hook) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after = h
}

// Calls is how many calls there were since the last Set, sent or not.
func (f *Faults) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total
}

// Nth is a plan for one call: the nth of an operation, or of all if op is "".
func Nth(op string, n int, fault Fault) Plan {
	return func(_ context.Context, c Call) Fault {
		if (op == "" && c.Total == n) || (c.Op == op && c.Nth == n) {
			return fault
		}
		return None
	}
}

// Crash is a plan in which the process dies at the nth call of all: that one
// meets the fault, and none after it is sent. With n from 1 to one more than
// the calls there are, and Unsent and Lost, a test goes through every point
// at which a process can die.
func Crash(n int, fault Fault) Plan {
	return func(_ context.Context, c Call) Fault {
		switch {
		case c.Total < n:
			return None
		case c.Total == n:
			return fault
		}
		return Unsent
	}
}

func (f *Faults) next(op string, input any) (Call, Plan, Hook) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nth == nil {
		f.nth = map[string]int{}
	}
	f.total++
	f.nth[op]++
	return Call{Op: op, Nth: f.nth[op], Total: f.total, Input: input}, f.plan, f.after
}

type inputKey struct{}

// install keeps a call's input where it begins, and acts on each attempt.
func (f *Faults) install(stack *middleware.Stack) error {
	keep := middleware.InitializeMiddlewareFunc("awstest.Faults.keep",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
			middleware.InitializeOutput, middleware.Metadata, error,
		) {
			return next.HandleInitialize(middleware.WithStackValue(ctx, inputKey{}, in.Parameters), in)
		})
	act := middleware.FinalizeMiddlewareFunc("awstest.Faults.act",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
			middleware.FinalizeOutput, middleware.Metadata, error,
		) {
			return f.act(ctx, in, next)
		})
	if err := stack.Initialize.Add(keep, middleware.After); err != nil {
		return err
	}
	return stack.Finalize.Insert(act, "Retry", middleware.After)
}

func (f *Faults) act(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	out middleware.FinalizeOutput, meta middleware.Metadata, err error,
) {
	call, plan, after := f.next(awsmiddleware.GetOperationName(ctx), middleware.GetStackValue(ctx, inputKey{}))
	fault := None
	if plan != nil {
		fault = plan(ctx, call)
	}
	switch fault {
	case Unsent:
		return out, meta, broken("the connection was refused")
	case Throttle:
		return out, meta, throttled(ctx)
	case None, Lost:
	}
	out, meta, err = next.HandleFinalize(ctx, in)
	if after != nil {
		after(ctx, call, out.Result, err)
	}
	if fault == Lost {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, broken("the answer was lost")
	}
	return out, meta, err
}

// broken is what the SDK says of a connection that fails.
func broken(why string) error {
	return &smithyhttp.RequestSendError{Err: errors.New("awstest: " + why)}
}

// throttled is what the call's service says when there are too many calls.
func throttled(ctx context.Context) error {
	const why = "awstest: too many requests"
	if awsmiddleware.GetServiceID(ctx) == dynamodb.ServiceID {
		return &types.ProvisionedThroughputExceededException{Message: aws.String(why)}
	}
	return &smithy.GenericAPIError{Code: "ThrottlingException", Message: why}
}

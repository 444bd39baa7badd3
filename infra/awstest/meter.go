package awstest

import (
	"context"
	"maps"
	"reflect"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// Usage is what calls have cost.
type Usage struct {
	Requests int     // that were sent, each attempt of the SDK counted
	Failed   int     // those among them that were answered with an error, or not at all
	Read     float64 // capacity units; a request that failed says none, though AWS charges for a condition that does not hold
	Write    float64
}

func (u Usage) add(v Usage) Usage {
	return Usage{u.Requests + v.Requests, u.Failed + v.Failed, u.Read + v.Read, u.Write + v.Write}
}

// Meter counts what the clients made with its option send. The stand-in says
// what a request costs in the table; it counts no writes to indexes.
type Meter struct {
	mu sync.Mutex
	by map[string]Usage
}

// Option makes a client count here.
func (m *Meter) Option(c *aws.Config) { c.APIOptions = append(c.APIOptions, m.install) }

// Usage is the sum over all operations since the last reset.
func (m *Meter) Usage() Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sum Usage
	for _, u := range m.by {
		sum = sum.add(u)
	}
	return sum
}

// Of is the usage of one operation, as "PutItem".
func (m *Meter) Of(op string) Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.by[op]
}

// Operations is the usage of every operation that was called.
func (m *Meter) Operations() map[string]Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.by)
}

// Reset forgets all.
func (m *Meter) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.by = nil
}

func (m *Meter) count(op string, u Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.by == nil {
		m.by = map[string]Usage{}
	}
	m.by[op] = m.by[op].add(u)
}

// install asks for the consumed capacity where a call begins, and counts next
// to the wire, below the retries and below the faults.
func (m *Meter) install(stack *middleware.Stack) error {
	ask := middleware.InitializeMiddlewareFunc("awstest.Meter.ask",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
			middleware.InitializeOutput, middleware.Metadata, error,
		) {
			in.Parameters = asking(in.Parameters)
			return next.HandleInitialize(ctx, in)
		})
	count := middleware.DeserializeMiddlewareFunc("awstest.Meter.count",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
			middleware.DeserializeOutput, middleware.Metadata, error,
		) {
			out, meta, err := next.HandleDeserialize(ctx, in)
			u := consumed(out.Result)
			u.Requests = 1
			if err != nil {
				u.Failed = 1
			}
			m.count(awsmiddleware.GetOperationName(ctx), u)
			return out, meta, err
		})
	if err := stack.Initialize.Add(ask, middleware.Before); err != nil {
		return err
	}
	return stack.Deserialize.Add(count, middleware.Before)
}

// asking is a copy of a DynamoDB request that asks what it costs. A request
// that can't ask is returned as it is.
func asking(params any) any {
	const field = "ReturnConsumedCapacity"
	in := reflect.Indirect(reflect.ValueOf(params))
	if in.Kind() != reflect.Struct || !in.FieldByName(field).IsValid() {
		return params
	}
	c := reflect.New(in.Type())
	c.Elem().Set(in)
	c.Elem().FieldByName(field).Set(reflect.ValueOf(types.ReturnConsumedCapacityTotal))
	return c.Interface()
}

// consumed is what an answer says that it has cost.
func consumed(result any) Usage {
	switch r := result.(type) {
	case *dynamodb.GetItemOutput:
		return Usage{Read: units(r.ConsumedCapacity)}
	case *dynamodb.BatchGetItemOutput:
		return Usage{Read: sum(r.ConsumedCapacity)}
	case *dynamodb.QueryOutput:
		return Usage{Read: units(r.ConsumedCapacity)}
	case *dynamodb.ScanOutput:
		return Usage{Read: units(r.ConsumedCapacity)}
	case *dynamodb.PutItemOutput:
		return Usage{Write: units(r.ConsumedCapacity)}
	case *dynamodb.UpdateItemOutput:
		return Usage{Write: units(r.ConsumedCapacity)}
	case *dynamodb.DeleteItemOutput:
		return Usage{Write: units(r.ConsumedCapacity)}
	case *dynamodb.BatchWriteItemOutput:
		return Usage{Write: sum(r.ConsumedCapacity)}
	}
	return Usage{}
}

func units(c *types.ConsumedCapacity) float64 {
	if c == nil || c.CapacityUnits == nil {
		return 0
	}
	return *c.CapacityUnits
}

func sum(cs []types.ConsumedCapacity) float64 {
	var n float64
	for i := range cs {
		n += units(&cs[i])
	}
	return n
}

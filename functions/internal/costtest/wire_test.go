package costtest

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"sluice/infra/scheduler/schedulertest"
	"sluice/infra/sqs/sqstest"
)

// The hosts of the services that are in this process.
const (
	sqsHost       = "sqs.test"
	schedulerHost = "scheduler.test"
)

// wire is the network of the functions: it carries every request to its
// stand-in, and counts it.
type wire struct {
	table     http.Client      // to the stand-in for DynamoDB
	look      *dynamodb.Client // the same, uncounted
	name      string           // of the table
	queues    *sqstest.SQS
	schedules *schedulertest.Fake

	mu sync.Mutex // also held while a record is looked at before and after its write
	usage
}

// Do carries a request.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	switch r.URL.Host {
	case sqsHost:
		return w.send(r)
	case schedulerHost:
		return w.schedule(r)
	}
	return w.dynamo(r)
}

// since is what was counted after an earlier count.
func (w *wire) since(before usage) usage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.add(before, -1)
}

func (w *wire) count(u usage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.usage = w.add(u, 1)
}

// schedule carries a request to Scheduler.
func (w *wire) schedule(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	w.schedules.Handler().ServeHTTP(answer, r)
	w.count(usage{schedules: 1})
	return answer.Result(), nil
}

// send carries a request to SQS. Functions on the way of an event only send.
func (w *wire) send(r *http.Request) (*http.Response, error) {
	if op := operation(r); op != "SendMessage" {
		return nil, fmt.Errorf("costtest: a function calls %s of SQS, which is not counted", op)
	}
	var in sqs.SendMessageInput
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	out, err := w.queues.SendMessage(r.Context(), &in)
	if err != nil {
		return nil, err
	}
	w.count(usage{sent: math.Ceil(float64(len(*in.MessageBody)) / sqsChunk)})
	sum := md5.Sum([]byte(*in.MessageBody)) // the SDK checks it
	return reply(r, map[string]string{"MessageId": *out.MessageId, "MD5OfMessageBody": hex.EncodeToString(sum[:])})
}

func reply(r *http.Request, v any) (*http.Response, error) {
	body, err := json.Marshal(v)
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, err
}

// operation is what a request asks for.
func operation(r *http.Request) string {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	return op
}

// dynamo carries a request to DynamoDB, which is made to say what it costs.
func (w *wire) dynamo(r *http.Request) (*http.Response, error) {
	var in map[string]json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return nil, err
	}
	in["ReturnConsumedCapacity"] = json.RawMessage(`"TOTAL"`)
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	before, err := w.entries(r.Context(), in["Key"])
	if err != nil {
		return nil, err
	}
	answer, err := w.table.Do(r)
	if err != nil {
		return nil, err
	}
	after, err := w.entries(r.Context(), in["Key"])
	if err != nil {
		return nil, err
	}
	u, err := charged(operation(r), answer)
	if err != nil {
		return nil, err
	}
	u.indexed = moves(before, after)
	u.kept = itemSize(in["Item"])
	w.usage = w.add(u, 1)
	return answer, nil
}

// charged is what an answer says that its request has cost. One that failed
// says nothing, and there is none on the way of an event.
func charged(op string, answer *http.Response) (usage, error) {
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return usage{}, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(data))
	if answer.StatusCode != http.StatusOK {
		return usage{}, fmt.Errorf("costtest: %s failed, and what that costs is not counted: %s", op, data)
	}
	var one struct{ ConsumedCapacity capacity }
	var many struct{ ConsumedCapacity []capacity }
	u := usage{calls: 1}
	if op == "BatchGetItem" {
		err = json.Unmarshal(data, &many)
	} else {
		err = json.Unmarshal(data, &one)
	}
	units := one.ConsumedCapacity.CapacityUnits
	for _, c := range many.ConsumedCapacity {
		units += c.CapacityUnits
	}
	if op == "PutItem" || op == "UpdateItem" {
		u.write = units
	} else {
		u.read = max(units, leastRead)
	}
	return u, err
}

type capacity struct{ CapacityUnits float64 }

// leastRead is what any read costs at least: half a unit, as it may be stale.
const leastRead = 0.5

// entries are the entries of an item in the two due indexes, by the index.
func (w *wire) entries(ctx context.Context, rawKey json.RawMessage) (map[string]string, error) {
	if rawKey == nil {
		return nil, nil // a query, or an item of the log, which is in no index
	}
	var key map[string]struct{ S, N string }
	if err := json.Unmarshal(rawKey, &key); err != nil {
		return nil, err
	}
	out, err := w.look.GetItem(ctx, &dynamodb.GetItemInput{TableName: &w.name, ConsistentRead: new(true), Key: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: key["pk"].S}, "sk": &types.AttributeValueMemberN{Value: key["sk"].N},
	}})
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, at := range []string{"checkAt", "claimDue"} {
		if n, ok := out.Item[at].(*types.AttributeValueMemberN); ok && out.Item["due"] != nil {
			found[at] = n.Value
		}
	}
	return found, nil
}

// moves is how many units it costs to bring entries of indexes from one state
// to another. What an entry holds beside its time never changes.
func moves(before, after map[string]string) float64 {
	units := 0.0
	for _, at := range []string{"checkAt", "claimDue"} {
		was, is := before[at], after[at]
		switch {
		case was == is:
		case was == "" || is == "":
			units++
		default:
			units += 2
		}
	}
	return units
}

// itemSize is about how many bytes an item takes that is put.
func itemSize(raw json.RawMessage) float64 {
	if raw == nil {
		return 0
	}
	var item map[string]struct{ S, N, B string }
	if err := json.Unmarshal(raw, &item); err != nil {
		return 0
	}
	n := itemOverhead
	for name, v := range item {
		n += len(name) + len(v.S) + len(v.N)/2 + 1 + base64.StdEncoding.DecodedLen(len(v.B))
	}
	return float64(n)
}

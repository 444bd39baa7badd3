package sqstest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// SQS holds queues. Its fields are set before it is used.
type SQS struct {
	// Now is the time. nil: time.Now, which in a bubble is the bubble's. One
	// that is set by hand goes with short polls only: long ones wait for
	// time to pass.
	Now func() time.Time

	// Disorder has messages come in an order drawn from it. nil: in the order
	// sent, though message groups take turns.
	Disorder *rand.Rand

	// Sampling has short polls look at every other message only, as SQS
	// samples its servers.
	Sampling bool

	// Fault, if not nil, is asked what happens to each call.
	Fault func(c Call) Fault

	// Refuse, if not nil, is asked whether an entry of a batch fails: with its
	// answer's code, unless that is "". Nth counts the entries of an operation from 1.
	Refuse func(op string, nth int) (code string, senderFault bool)

	mu      sync.Mutex
	queues  map[string]*queue
	changed chan struct{} // closed when a message comes
	calls   map[string]int
	entries map[string]int
	ids     int
}

// Call is a call under way.
type Call struct {
	Op  string // as "SendMessage"
	Nth int    // which one of its operation, from 1
}

// Fault is what happens to a call.
type Fault int

// The faults.
const (
	None   Fault = iota
	Unsent       // it fails, and is not carried out
	Lost         // it is carried out, and fails
)

// queue is a standard queue.
type queue struct {
	messages []*message          // in the order sent
	flown    map[string]*message // by each receipt handle
	groups   map[string]int      // how many messages of each message group
	served   map[string]int      // the newest turn of each
	turn     int
}

// message is one message of a queue.
type message struct {
	id, body, group string
	sent            time.Time
	visible         time.Time // from when on
	inFlight        bool      // received, and not made visible again since
	handle          string    // of the newest receive
	received        int
	before          int // its group's turn before that
	deleted         bool
}

// Queue makes an empty queue, and returns its URL.
func (s *SQS) Queue(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues == nil {
		s.queues, s.calls, s.entries = map[string]*queue{}, map[string]int{}, map[string]int{}
		s.changed = make(chan struct{})
	}
	url := "https://sqs.test/000000000000/" + name
	s.queues[url] = &queue{flown: map[string]*message{}, groups: map[string]int{}, served: map[string]int{}}
	return url
}

// Len is how many messages a queue holds, seen or not.
func (s *SQS) Len(url string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queues[url].messages)
}

// Bodies are the bodies of a queue's messages, in the order sent.
func (s *SQS) Bodies(url string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, m := range s.queues[url].messages {
		out = append(out, m.body)
	}
	return out
}

// Calls is how often an operation was called.
func (s *SQS) Calls(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[op]
}

func (s *SQS) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// do carries an operation out on a queue, under the plan of faults.
func (s *SQS) do(op string, url *string, run func(q *queue) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	fault := None
	if url == nil || s.queues[*url] == nil {
		return &types.QueueDoesNotExist{}
	}
	s.calls[op]++
	if s.Fault != nil {
		fault = s.Fault(Call{op, s.calls[op]})
	}
	if fault == Unsent {
		return fmt.Errorf("sqstest: %s was not sent", op)
	}
	err := run(s.queues[*url])
	if fault == Lost {
		return fmt.Errorf("sqstest: the answer to %s was lost", op)
	}
	return err
}

// refused asks whether the next entry of an operation fails.
func (s *SQS) refused(op string, id *string) *types.BatchResultErrorEntry {
	s.entries[op]++
	if s.Refuse == nil {
		return nil
	}
	code, senderFault := s.Refuse(op, s.entries[op])
	if code == "" {
		return nil
	}
	return &types.BatchResultErrorEntry{Id: id, Code: &code, Message: new("sqstest: refused"), SenderFault: senderFault}
}

func invalid(format string, args ...any) *smithy.GenericAPIError {
	return &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: fmt.Sprintf(format, args...), Fault: smithy.FaultClient}
}

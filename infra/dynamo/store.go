package dynamo

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"sluice/core"
)

// API is what the store calls of a [dynamodb.Client].
type API interface {
	GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
}

// Options says how a store is to be.
type Options struct {
	Table     string
	Clock     core.Clock
	Retention time.Duration // how long items outlive their last deadline at most, in whole seconds

	// HoleTimeout is how long the numbers of a writer that has not written yet
	// are waited for; 0: two seconds.
	HoleTimeout time.Duration

	// DueShards is how many partitions the due indexes are spread over, the
	// same for all who use the table, as long as it is used; 0: 16. Looking
	// for what is due takes two queries for each.
	DueShards int

	// OnLoss is told of items that the table has deleted before they were
	// delivered. nil: nobody is. It may be told of one loss more than once, and
	// of numbers that a dead writer has left behind items of half the
	// retention's age, which look the same.
	OnLoss func(Loss)
}

// Loss is a range of a group's log that is gone.
type Loss struct {
	Ref      core.Ref
	Life     string
	From, To uint64
}

const (
	// holeTimeout is [Options.HoleTimeout] when it is not given.
	holeTimeout = 2 * time.Second
	// longestWait is the latest deadline that an item may have: what is kept
	// for the retention is kept for it from then on. A time window, or what
	// leaves by flushes alone, may have to wait for up to half of the retention.
	longestWait = 10 * time.Minute
	// lanes is how many calls one request makes at a time.
	lanes = 16
)

// Store is a [core.Store] on one table. It is safe for concurrent use.
type Store struct {
	api   API
	opts  Options
	sizes sizes

	mu     sync.RWMutex // held for reading during a call
	closed bool
}

var _ core.Store = (*Store)(nil)

// New makes a store of a table that exists.
func New(api API, o Options) *Store {
	if o.HoleTimeout == 0 {
		o.HoleTimeout = holeTimeout
	}
	if o.DueShards == 0 {
		o.DueShards = dueShards
	}
	return &Store{api: api, opts: o, sizes: sizes{known: make(map[string]*size)}}
}

// enter begins a call, which leave ends.
func (s *Store) enter() error {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return core.Errorf(core.Unavailable, "the store is closed")
	}
	return nil
}

func (s *Store) leave() { s.mu.RUnlock() }

// Close ends the store when the calls under way have; the table stays. Later
// calls fail as Unavailable.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Group reads a group's record.
func (s *Store) Group(ctx context.Context, ref core.Ref) (core.Group, error) {
	if err := s.enter(); err != nil {
		return core.Group{}, err
	}
	defer s.leave()
	r, err := s.read(ctx, ref)
	return r.Group, err
}

// read reads a record as it is now.
func (s *Store) read(ctx context.Context, ref core.Ref) (record, error) {
	pk, _ := place(ref)
	consistent := true
	out, err := s.api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.opts.Table, Key: key(pk, 0), ConsistentRead: &consistent,
	})
	if err != nil {
		return record{}, failure(err, "read a group")
	}
	return decode(out.Item)
}

// key is the key of an item; records have the sort key 0.
func key(pk string, sk uint64) attrs {
	return attrs{attrPartition: text(pk), attrSort: number(sk)}
}

// expiry is when an item that is written or last needed at a time may be
// deleted, in Unix seconds.
func (s *Store) expiry(at core.Millis) int64 {
	return seconds(at.Add(longestWait + s.opts.Retention))
}

// seconds is the first whole second behind a time.
func seconds(at core.Millis) int64 { return int64(at)/1000 + 1 }

// token makes a value that nobody else makes.
func token() []byte {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return b
}

// each calls fn for 0 to n-1, so many at a time as a request may, and returns
// the first error. All calls have ended when it returns.
func each(n int, fn func(i int) error) error {
	if n == 1 {
		return fn(0)
	}
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	slots := make(chan struct{}, lanes)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := fn(i); err != nil {
				once.Do(func() { first = err })
			}
		})
	}
	wg.Wait()
	return first
}

package dynamo

import (
	"bytes"
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sluice/core"
	pack "sluice/infra/dynamo/segment"
)

const (
	// maxSegmentItems bounds how many items a segment holds.
	maxSegmentItems = 1000
	// maxSegmentBytes bounds what they add up to before compression: under the
	// 400 KB of an item, with room for what it has besides. A single event of
	// more is refused: [core.MaxEventBytesAWS] and [core.MaxHeaderBytes] are less.
	maxSegmentBytes = 390_000
)

// segment is a stored item of a group's log: n numbers from first on, with
// their events, or void. It is written once and never changed.
type segment struct {
	first   uint64
	n       int
	at      core.Millis // when it was numbered, or fenced
	offset  int64       // the log's payload bytes before it; not known of a tombstone
	data    []byte      // nil: its numbers are void
	tomb    bool        // it stands for a writer of which nothing is known
	token   []byte      // who has written it
	expires int64       // Unix seconds
}

func (g *segment) last() uint64 { return g.first + uint64(g.n) - 1 }

// known reports whether its offset is.
func (g *segment) known() bool { return !g.tomb }

func decodeSegment(item attrs) (segment, error) {
	f := fields{item: item}
	g := segment{
		first: f.uint(attrSort), n: int(f.int("n")), at: f.millis("at"), offset: f.int("off"),
		data: f.bytes("data"), token: f.bytes("by"), expires: f.int(attrExpires),
	}
	_, g.tomb = item["tomb"]
	if f.err == nil && (g.n < 1 || g.n > 1<<40) {
		f.wrong("n")
	}
	return g, f.err
}

// write puts a part's segments where its numbers say. Numbers that were fenced
// meanwhile are gone: from there on it is numbered again. If the group is closed
// by then, the answer says how much of it lies before them.
func (s *Store) write(ctx context.Context, w *writing) error {
	rest := w.Events
	for try := 1; ; try++ {
		wrote, err := s.writeAll(ctx, w, rest)
		w.stored += wrote
		if err != nil {
			return failure(err, "store an event")
		}
		if rest = rest[wrote:]; len(rest) == 0 {
			return nil
		}
		if try == attempts {
			return core.Errorf(core.Unavailable, "cannot store an event: its place was given away %d times; try again", try)
		}
		again := *w.Part
		again.Events = rest
		w.Part, w.bytes, w.unsure = &again, payload(rest), true
		w.now = max(w.now, s.opts.Clock.Now())
		w.split = w.stored > 0
		if err := s.number(ctx, w); err != nil {
			return partly(err)
		}
		if w.answer.Closed {
			return nil
		}
	}
}

// partly is what kept a request from being stored as a whole, when some of it
// may be: a group that is full by now is no refusal of all of it.
func partly(err error) error {
	if core.CodeOf(err) != core.Full {
		return err
	}
	return &core.Error{Code: core.Unavailable, RetryAfter: time.Second, Err: err,
		Detail: "cannot store an event: its place was given away, and its group is full; try again in a moment"}
}

// writeAll puts events, segment by segment, and returns how many it has put
// before it met a place that was fenced.
func (s *Store) writeAll(ctx context.Context, w *writing, events []core.Event) (wrote int, err error) {
	offset := w.offset
	for wrote < len(events) {
		n := chunk(events[wrote:])
		batch := events[wrote : wrote+n]
		g := segment{first: w.answer.First + uint64(wrote), n: n, at: w.now, offset: offset, data: pack.Pack(batch, w.now)}
		done, err := s.putFor(ctx, w, &g)
		if err != nil || !done {
			return wrote, err
		}
		wrote += n
		offset += payload(batch)
	}
	return wrote, nil
}

// putFor writes a segment of a part. What has marked ids insists, so that it
// can say what became of them.
func (s *Store) putFor(ctx context.Context, w *writing, g *segment) (done bool, err error) {
	if w.ticket == "" {
		return s.put(ctx, w.answer.Life, g, w.repeats()...)
	}
	sure, err := insist(ctx, w.tries(), func() (err error) {
		done, err = s.put(ctx, w.answer.Life, g, once)
		return err
	})
	w.unclear = !sure && err != nil
	return done, err
}

// chunk is how many of the first events go into one segment.
func chunk(events []core.Event) int {
	n, size := 0, 0
	for n < len(events) && n < maxSegmentItems {
		if size += pack.Size(&events[n]); n > 0 && size > maxSegmentBytes {
			break
		}
		n++
	}
	return n
}

// put writes a segment, unless something is in its place: then done is false,
// or true if it was this very put, or an earlier one of the same segment, whose
// answer was lost.
func (s *Store) put(ctx context.Context, life string, g *segment, o ...func(*dynamodb.Options)) (done bool, err error) {
	if g.token == nil {
		g.token = token()
	}
	item := key(logPlace(life, g.first), g.first)
	item["n"], item["by"] = number(g.n), binary(g.token)
	item[attrExpires] = number(s.expiry(max(g.at, s.opts.Clock.Now())))
	optional(item, "at", g.at)
	optional(item, "off", g.offset)
	if g.data != nil {
		item["data"] = binary(g.data)
	}
	if g.tomb {
		item["tomb"] = number(1)
	}
	_, err = s.api.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &s.opts.Table, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, o...)
	met, conditional := refused(err)
	switch {
	case err == nil:
		return true, nil
	case !conditional:
		return false, err
	case met == nil:
		consistent := true
		out, err := s.api.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.opts.Table,
			Key: key(logPlace(life, g.first), g.first), ConsistentRead: &consistent})
		if err != nil {
			return false, err
		}
		met = out.Item
	}
	there, err := decodeSegment(met)
	return bytes.Equal(there.token, g.token), err
}

// payload is the payload of events.
func payload(events []core.Event) int64 {
	var n int64
	for i := range events {
		n += events[i].Size()
	}
	return n
}

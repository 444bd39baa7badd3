package dynamo

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sluice/core"
)

var _ core.Coordinator = (*Store)(nil)

// shared is a record of the coordinator, as it was read. One that was removed
// stays for a while, without a value: a removal whose answer was lost shows by
// its nonce.
type shared struct {
	value []byte // nil: there is none
	nonce []byte // of the last change; nil: there never was one
}

const (
	// sharedRaces is how often a change is made anew after a lost race.
	sharedRaces = 200
	// raceWait is the longest that it then waits, so that many who want the same
	// record all get it.
	raceWait = 320 * time.Millisecond
	// sharedRest is how long a record stays that was removed, or that waits: far
	// longer than a change is made anew, or anybody waits.
	sharedRest = time.Hour
	// waiting begins the names of records of those who wait for the outcome of an
	// event. They may die before they remove them.
	waiting = "wait/"
)

// Change implements [core.Coordinator]: a reading, and a write on condition that
// nothing has changed since. Like a transition of a group it knows its own
// writing, if its first answer was lost, by its nonce.
func (s *Store) Change(ctx context.Context, name string, fn func(old []byte) ([]byte, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	for try := range sharedRaces {
		was, err := s.readShared(ctx, name)
		if err != nil {
			return err
		}
		next, err := fn(bytes.Clone(was.value))
		if same := (next == nil) == (was.value == nil) && bytes.Equal(next, was.value); err != nil || same {
			return err
		}
		mine := token()
		if won, err := s.saveShared(ctx, name, was, shared{next, mine}); err != nil || won {
			return err
		}
		if err := pause(ctx, raceWait/16*time.Duration(min(try*try, 16))*time.Duration(mine[0])/256); err != nil {
			return failure(err, "change what processes share")
		}
	}
	return core.Errorf(core.Unavailable, "cannot change %s: %d others were faster; try again", name, sharedRaces)
}

func (s *Store) readShared(ctx context.Context, name string) (shared, error) {
	out, err := s.api.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.opts.Table, Key: key(sharedPlace(name), 0), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return shared{}, failure(err, "read what processes share")
	}
	return decodeShared(out.Item)
}

func decodeShared(item attrs) (shared, error) {
	f := fields{item: item}
	return shared{value: f.bytes("value"), nonce: f.bytes("nonce")}, f.err
}

// saveShared writes a record, unless another was faster.
func (s *Store) saveShared(ctx context.Context, name string, was, next shared) (won bool, err error) {
	item := key(sharedPlace(name), 0)
	item["nonce"] = binary(next.nonce)
	if next.value != nil {
		item["value"] = binary(next.value)
	}
	if next.value == nil || strings.HasPrefix(name, waiting) {
		item[attrExpires] = number(seconds(s.opts.Clock.Now().Add(sharedRest)))
	}
	in := &dynamodb.PutItemInput{
		TableName: &s.opts.Table, Item: item, ConditionExpression: aws.String("attribute_not_exists(pk)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if was.nonce != nil {
		in.ConditionExpression = aws.String("nonce = :was")
		in.ExpressionAttributeValues = attrs{":was": binary(was.nonce)}
	}
	_, err = s.api.PutItem(ctx, in)
	met, conditional := refused(err)
	var now shared
	switch {
	case err == nil:
		return true, nil
	case !conditional:
		return false, failure(err, "change what processes share")
	case met == nil:
		now, err = s.readShared(ctx, name)
	default:
		now, err = decodeShared(met)
	}
	return bytes.Equal(now.nonce, next.nonce), err
}

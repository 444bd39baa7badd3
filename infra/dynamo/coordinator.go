package dynamo

import (
	"bytes"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sluice/core"
)

var _ core.Coordinator = (*Store)(nil)

// shared is a record of the coordinator, as it was read. One that was removed
// stays, without a value: a removal whose answer was lost shows by its nonce.
type shared struct {
	value []byte // nil: there is none
	nonce []byte // of the last change; nil: there never was one
}

// Change implements [core.Coordinator]: a reading, and a write on condition that
// nothing has changed since. Like a transition of a group it knows its own
// writing, if its first answer was lost, by its nonce.
func (s *Store) Change(ctx context.Context, name string, fn func(old []byte) ([]byte, error)) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	was, err := s.readShared(ctx, name)
	if err != nil {
		return err
	}
	for range maxRaces {
		next, err := fn(bytes.Clone(was.value))
		if same := (next == nil) == (was.value == nil) && bytes.Equal(next, was.value); err != nil || same {
			return err
		}
		now, won, err := s.saveShared(ctx, name, was, next)
		if err != nil || won {
			return err
		}
		was = now
	}
	return core.Errorf(core.Unavailable, "cannot change %s: %d others were faster; try again", name, maxRaces)
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

// saveShared writes a value, unless another was faster. It returns the record
// as it is then.
func (s *Store) saveShared(ctx context.Context, name string, was shared, value []byte) (now shared, won bool, err error) {
	mine := token()
	item := key(sharedPlace(name), 0)
	item["nonce"] = binary(mine)
	if value != nil {
		item["value"] = binary(value)
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
	switch {
	case err == nil:
		return shared{}, true, nil
	case !conditional:
		return shared{}, false, failure(err, "change what processes share")
	case met == nil:
		now, err = s.readShared(ctx, name)
	default:
		now, err = decodeShared(met)
	}
	return now, bytes.Equal(now.nonce, mine), err
}

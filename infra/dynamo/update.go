package dynamo

import (
	"context"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sluice/core"
)

// maxRaces is how often a transition is made anew after a lost race. Each race
// is won by another, so something else has got on.
const maxRaces = 64

// Update implements [core.Store]: a conditional write of what the transition
// has changed, and of nothing else. It is safe against appends in between,
// whose fields it never writes; the record that it returns has them.
func (s *Store) Update(ctx context.Context, ref core.Ref, seen *core.Group, fn func(*core.Group) error) (core.Group, error) {
	if err := s.enter(); err != nil {
		return core.Group{}, err
	}
	defer s.leave()
	return s.update(ctx, ref, seen, fn)
}

func (s *Store) update(ctx context.Context, ref core.Ref, g *core.Group, fn func(*core.Group) error) (core.Group, error) {
	newest := false // whether g was so a moment ago
	for range maxRaces {
		if g == nil || g.Life == "" && !newest {
			r, err := s.read(ctx, ref)
			if err != nil {
				return core.Group{}, err
			}
			g, newest = &r.Group, true
		}
		next := g.Clone()
		err := fn(&next)
		same := reflect.DeepEqual(normal(g), normal(&next))
		switch {
		case (err != nil || same) && !newest:
			g = nil // it may have changed since it was seen, and then this means nothing
			continue
		case err != nil:
			return core.Group{}, err
		case same:
			return next, nil
		}
		after, won, err := s.save(ctx, ref, g, &next)
		if err != nil || won {
			return after.Group, err
		}
		g, newest = &after.Group, true
	}
	return core.Group{}, core.Errorf(core.Unavailable, "cannot change %s: %d others were faster; try again", ref, maxRaces)
}

// normal is a record as it is compared: no claims are no claims.
func normal(g *core.Group) core.Group {
	n := *g
	if len(n.Claims) == 0 {
		n.Claims = nil
	}
	return n
}

// save writes what a transition has changed, unless another was faster. It
// returns the record as it is then.
func (s *Store) save(ctx context.Context, ref core.Ref, was, next *core.Group) (now record, won bool, err error) {
	if was.Life == "" || next.Life != was.Life || next.Tail != was.Tail || next.TailBytes != was.TailBytes {
		return record{}, false, core.Errorf(core.Internal, "a transition of %s made up items", ref)
	}
	next.Rev = max(next.Rev, was.Rev+1)
	pk, _ := place(ref)
	c := s.changes(was, next)
	mine := token()
	c.set("nonce", binary(mine))
	out, err := s.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.opts.Table, Key: key(pk, 0),
		UpdateExpression: aws.String(c.expression()), ConditionExpression: aws.String(c.condition),
		ExpressionAttributeValues: c.values, ReturnValues: types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	item, conditional := refused(err)
	switch {
	case err == nil:
		now, err = decode(out.Attributes)
		return now, true, err
	case !conditional:
		return record{}, false, failure(err, "change a group")
	case item == nil:
		now, err = s.read(ctx, ref)
	default:
		now, err = decode(item)
	}
	// by the nonce, it was this very call, whose first answer was lost
	return now, now.nonce == string(mine), err
}

// changes is an update expression in the making.
type changes struct {
	sets, removes, adds []string
	values              attrs
	condition           string
}

// changes are those between two states of a record. A transition that leaves
// nothing pending takes away what would wake the group again, so it holds only
// if nothing was appended meanwhile.
func (s *Store) changes(was, next *core.Group) *changes {
	c := &changes{values: attrs{":wasLife": text(was.Life), ":wasRev": number(was.Rev)}}
	c.condition = "life = :wasLife AND rev = :wasRev"
	c.set("rev", number(next.Rev))
	c.number("head", int64(was.Head), int64(next.Head))
	c.number("headBytes", was.HeadBytes, next.HeadBytes)
	c.number("firstAt", int64(was.FirstAt), int64(next.FirstAt))
	c.number(attrCheckAt, int64(was.CheckAt), int64(next.CheckAt))
	c.number(attrClaimDue, int64(was.ClaimDue()), int64(next.ClaimDue()))
	c.number("voids", int64(was.Void), int64(next.Void))
	c.number("voidBytes", was.VoidBytes, next.VoidBytes)
	c.number("mark", int64(was.Mark), int64(next.Mark))
	c.number("heldUntil", int64(was.Hold), int64(next.Hold))
	c.number("closed", int64(was.Closed), int64(next.Closed))
	c.claims(was.Claims, next.Claims)
	limited := c.room(was, next)
	if next.Empty() {
		c.set(attrExpires, number(max(s.expiry(s.opts.Clock.Now()), seconds(next.Closed))))
	}
	if limited || next.Pending() == 0 {
		c.condition += " AND tail = :wasTail"
		c.values[":wasTail"] = number(next.Tail)
	}
	return c
}

func (c *changes) claims(was, next []core.Claim) {
	switch {
	case len(was) == 0 && len(next) == 0, reflect.DeepEqual(was, next):
	case len(next) == 0:
		c.removes = append(c.removes, "claims")
	default:
		c.set("claims", encodeClaims(next))
	}
}

// room changes how many numbers may still be handed out, by what a transition
// frees. Appends take theirs at the same time, so it is added, never set; only
// a first limit is set, and holds if nothing was appended meanwhile.
func (c *changes) room(was, next *core.Group) (first bool) {
	switch {
	case was.Ceiling == next.Ceiling:
	case next.Ceiling == 0:
		c.removes = append(c.removes, "room")
	case was.Ceiling == 0:
		c.set("room", number(int64(next.Ceiling)-int64(next.Tail)))
		return true
	default:
		c.adds = append(c.adds, "room :room")
		c.values[":room"] = number(int64(next.Ceiling) - int64(was.Ceiling))
	}
	return false
}

func (c *changes) set(name string, v types.AttributeValue) {
	c.sets = append(c.sets, name+" = :"+name)
	c.values[":"+name] = v
}

// number sets a number that has changed; one that is zero is not kept.
func (c *changes) number(name string, was, next int64) {
	switch {
	case was == next:
	case next == 0:
		c.removes = append(c.removes, name)
	default:
		c.set(name, number(next))
	}
}

func (c *changes) expression() string {
	e := "SET " + strings.Join(c.sets, ", ")
	if len(c.removes) > 0 {
		e += " REMOVE " + strings.Join(c.removes, ", ")
	}
	if len(c.adds) > 0 {
		e += " ADD " + strings.Join(c.adds, ", ")
	}
	return e
}

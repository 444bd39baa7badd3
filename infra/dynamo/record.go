package dynamo

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sluice/core"
)

// record is a group with what the table keeps beside it.
type record struct {
	core.Group
	nonce string // of the last transition
	pk    string
}

// decode reads a record. A nil item is an empty one.
func decode(item attrs) (record, error) {
	f := fields{item: item}
	r := record{pk: f.text(attrPartition), nonce: string(f.bytes("nonce")), Group: core.Group{
		Life: f.text("life"), Rev: f.uint("rev"),
		Head: f.uint("head"), Tail: f.uint("tail"), HeadBytes: f.int("headBytes"), TailBytes: f.int("tailBytes"),
		FirstAt: f.millis("firstAt"), LastAt: f.millis("lastAt"), CheckAt: f.millis(attrCheckAt),
		Void: f.uint("voids"), VoidBytes: f.int("voidBytes"), Mark: f.uint("mark"),
		Hold: f.millis("heldUntil"), Closed: f.millis("closed"),
	}}
	if _, capped := item["room"]; capped {
		r.Ceiling = ceiling(r.Tail, f.int("room"))
	}
	for _, v := range f.list("claims") {
		m, ok := v.(*types.AttributeValueMemberM)
		if !ok {
			f.wrong("claims")
			break
		}
		r.Claims = append(r.Claims, decodeClaim(&f, m.Value))
	}
	return r, f.err
}

// ceiling is the number up to which there is room behind tail. Room is below
// zero when the limit was lowered under what waits.
func ceiling(tail uint64, room int64) uint64 {
	return uint64(max(1, int64(tail)+room))
}

func decodeClaim(outer *fields, m attrs) core.Claim {
	f := fields{item: m}
	c := core.Claim{
		From: f.uint("from"), To: f.uint("to"), Mark: f.uint("mark"), Done: f.bytes("done"), Residue: int(f.int("residue")),
		Reason: core.Reason(f.text("reason")), Attempt: int(f.int("attempt")), Lease: f.uint("lease"),
		Due: f.millis("at"), FirstErrorAt: f.millis("firstErrorAt"), Error: f.text("error"),
		ID: f.text("id"), Fold: f.text("fold"), Sent: int(f.int("sent")),
		Hop: int(f.int("hop")), Token: f.int("token") != 0,
	}
	if f.err != nil {
		outer.err = f.err
	}
	return c
}

func encodeClaims(claims []core.Claim) types.AttributeValue {
	l := make([]types.AttributeValue, len(claims))
	for i := range claims {
		c := &claims[i]
		m := attrs{
			"id": text(c.ID), "from": number(c.From), "to": number(c.To), "reason": text(string(c.Reason)),
			"attempt": number(c.Attempt), "lease": number(c.Lease), "at": number(c.Due),
		}
		optional(m, "mark", c.Mark)
		optional(m, "residue", c.Residue)
		optional(m, "firstErrorAt", c.FirstErrorAt)
		optional(m, "sent", c.Sent)
		optional(m, "hop", c.Hop)
		if c.Token {
			m["token"] = number(1)
		}
		if c.Fold != "" {
			m["fold"] = text(c.Fold)
		}
		if len(c.Done) > 0 {
			m["done"] = binary(c.Done)
		}
		if c.Error != "" {
			m["error"] = text(strings.ToValidUTF8(c.Error, "?"))
		}
		l[i] = &types.AttributeValueMemberM{Value: m}
	}
	return &types.AttributeValueMemberL{Value: l}
}

// optional sets a number that is not zero.
func optional[N ~int | ~int64 | ~uint64](m attrs, name string, n N) {
	if n != 0 {
		m[name] = number(n)
	}
}

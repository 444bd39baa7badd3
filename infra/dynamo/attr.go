package dynamo

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"sluice/core"
)

// attrs is an item, or a part of one.
type attrs = map[string]types.AttributeValue

func number[N ~int | ~int64 | ~uint64](n N) types.AttributeValue {
	if n < 0 {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(n), 10)}
	}
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(uint64(n), 10)}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func binary(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }

// fields takes values out of an item. What is missing is zero; what is of
// another type than it must be is noted in err.
type fields struct {
	item attrs
	err  error
}

func (f *fields) int(name string) int64 {
	v, ok := f.item[name]
	if !ok {
		return 0
	}
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		f.wrong(name)
		return 0
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		f.wrong(name)
	}
	return i
}

func (f *fields) uint(name string) uint64 {
	n := f.int(name)
	if n < 0 {
		f.wrong(name)
		return 0
	}
	return uint64(n)
}

func (f *fields) millis(name string) core.Millis { return core.Millis(f.int(name)) }

func (f *fields) text(name string) string {
	v, ok := f.item[name]
	if !ok {
		return ""
	}
	s, ok := v.(*types.AttributeValueMemberS)
	if !ok {
		f.wrong(name)
		return ""
	}
	return s.Value
}

func (f *fields) bytes(name string) []byte {
	v, ok := f.item[name]
	if !ok {
		return nil
	}
	b, ok := v.(*types.AttributeValueMemberB)
	if !ok {
		f.wrong(name)
		return nil
	}
	return b.Value
}

func (f *fields) list(name string) []types.AttributeValue {
	v, ok := f.item[name]
	if !ok {
		return nil
	}
	l, ok := v.(*types.AttributeValueMemberL)
	if !ok {
		f.wrong(name)
		return nil
	}
	return l.Value
}

func (f *fields) wrong(name string) {
	f.err = core.Errorf(core.Internal, "the attribute %s of item %v is not of its type", name, f.item[attrPartition])
}

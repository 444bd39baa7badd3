package sqssend

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"sluice/core"
	"sluice/core/sqsmessage"
)

const (
	stringType    = "String"
	maxAttribute  = 256 // bytes that an attribute keeps of its value
	maxGroupBytes = 128
)

// attribute is a message attribute.
type attribute struct{ name, value string }

// message is an item on its way: what has been found out of it.
type message struct {
	at         int // the item's position in its batch
	encoding   string
	attributes []attribute
	size       int // what it counts against SQS's limits, in bytes
}

func newMessage(b *core.Batch, i int) message {
	it := &b.Items[i]
	m := message{at: i}
	m.encoding, m.size = sqsmessage.Encoding(it.Body)
	m.attributes = attributes(b, it, m.encoding)
	for _, a := range m.attributes {
		m.size += len(a.name) + len(stringType) + len(a.value)
	}
	return m
}

// attributes are a message's attributes: ten at most, which is all SQS allows.
func attributes(b *core.Batch, it *core.Item, encoding string) []attribute {
	all := []attribute{
		{"id", it.ID}, {"source", it.Source}, {"content-type", it.ContentType},
		{"sluice-batch", b.ID}, {"sluice-buffer", b.Buffer}, {"sluice-group", b.Group},
		{"sluice-reason", string(b.Reason)}, {"sluice-attempt", strconv.Itoa(b.Attempt)},
		{sqsmessage.EncodingAttribute, encoding},
	}
	if b.Window != nil {
		all = append(all, attribute{"sluice-window", b.Window.ID})
	}
	set := all[:0]
	for _, a := range all {
		if a.value != "" {
			set = append(set, attribute{a.name, core.Cut(sqsmessage.Readable(a.value), maxAttribute)})
		}
	}
	return set
}

// entry is a message as SQS takes it. Its id is the item's position.
func (s *Sender) entry(b *core.Batch, m *message) types.SendMessageBatchRequestEntry {
	it := &b.Items[m.at]
	e := types.SendMessageBatchRequestEntry{
		Id: new(strconv.Itoa(m.at)), MessageBody: new(sqsmessage.Encode(it.Body, m.encoding)),
		MessageAttributes: make(map[string]types.MessageAttributeValue, maxEntries),
	}
	for _, a := range m.attributes {
		e.MessageAttributes[a.name] = types.MessageAttributeValue{DataType: new(stringType), StringValue: &a.value}
	}
	if s.fifo {
		e.MessageGroupId = new(messageGroup(b))
		e.MessageDeduplicationId = new(hash(it.ID + "\x00" + b.Buffer))
	}
	return e
}

// messageGroup is the group within which a FIFO queue keeps a batch's order.
func messageGroup(b *core.Batch) string {
	if b.Group == "" {
		return b.Buffer
	}
	if len(b.Group) > maxGroupBytes || strings.ContainsFunc(b.Group, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return hash(b.Group)
	}
	return b.Group
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

package sqssend

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"sluice/core"
)

const (
	stringType    = "String"
	maxAttribute  = 256 // bytes that an attribute keeps of its value
	maxGroupBytes = 128
)

// The encodings of bodies that SQS does not take as they are.
const (
	inBase64    = "base64"
	insteadOf   = "empty"
	placeholder = " "
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
	m := message{at: i, encoding: encoding(it.Body), size: len(it.Body)}
	switch m.encoding {
	case insteadOf:
		m.size = len(placeholder)
	case inBase64:
		m.size = base64.StdEncoding.EncodedLen(m.size)
	}
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
		{"sluice-encoding", encoding},
	}
	if b.Window != nil {
		all = append(all, attribute{"sluice-window", b.Window.ID})
	}
	set := all[:0]
	for _, a := range all {
		if a.value != "" {
			set = append(set, attribute{a.name, core.Cut(readable(a.value), maxAttribute)})
		}
	}
	return set
}

// encoding is how a body is encoded, or "".
func encoding(body []byte) string {
	switch {
	case len(body) == 0:
		return insteadOf
	case !allowed(body):
		return inBase64
	}
	return ""
}

// entry is a message as SQS takes it. Its id is the item's position.
func (s *Sender) entry(b *core.Batch, m *message) types.SendMessageBatchRequestEntry {
	it := &b.Items[m.at]
	body := string(it.Body)
	switch m.encoding {
	case insteadOf:
		body = placeholder
	case inBase64:
		body = base64.StdEncoding.EncodeToString(it.Body)
	}
	e := types.SendMessageBatchRequestEntry{
		Id: new(strconv.Itoa(m.at)), MessageBody: &body,
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

// allowed reports whether SQS takes a body as it is.
func allowed(body []byte) bool {
	for i := 0; i < len(body); {
		if c := body[i]; c < utf8.RuneSelf {
			if !character(rune(c)) {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && size == 1 || !character(r) {
			return false
		}
		i += size
	}
	return true
}

// character reports whether SQS takes a character.
func character(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || ' ' <= r && r <= 0xD7FF || 0xE000 <= r && r <= 0xFFFD || r >= 0x10000
}

// readable is s with U+FFFD for what SQS would not take.
func readable(s string) string {
	return strings.Map(func(r rune) rune {
		if character(r) {
			return r
		}
		return utf8.RuneError
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

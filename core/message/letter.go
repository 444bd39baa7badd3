package message

import "sluice/core"

// letter is a [core.DeadLetter] as it travels.
type letter struct {
	V            int         `json:"v"`
	ID           *text       `json:"id"`
	Batch        *text       `json:"batch"`
	Buffer       *text       `json:"buffer"`
	Group        *text       `json:"group"`
	Destination  *text       `json:"destination"`
	Reason       *text       `json:"reason"`
	Status       int         `json:"status,omitempty"`
	Answer       text        `json:"answer,omitempty"`
	Attempts     int         `json:"attempts,omitempty"`
	FirstErrorAt core.Millis `json:"firstErrorAt,omitempty"`
	LastErrorAt  core.Millis `json:"lastErrorAt,omitempty"`
	LastError    text        `json:"lastError,omitempty"`
	Item         *item       `json:"item"`
}

// item is a [core.Item] as it travels.
type item struct {
	Seq         uint64      `json:"seq"`
	ID          *text       `json:"id"`
	Source      text        `json:"source,omitempty"`
	ContentType text        `json:"contentType,omitempty"`
	Headers     []header    `json:"headers,omitempty"`
	ReceivedAt  core.Millis `json:"receivedAt,omitempty"`
	JSON        bool        `json:"json,omitempty"`
	Body        *text       `json:"body"`
}

// header is a [core.Header] as it travels.
type header struct {
	Name  text `json:"name"`
	Value text `json:"value"`
}

func (l *letter) versioned() int { return l.V }

func (l *letter) fields() []field {
	return []field{
		{"id", l.ID != nil},
		{"batch", l.Batch != nil},
		{"buffer", l.Buffer != nil},
		{"group", l.Group != nil},
		{"destination", l.Destination != nil},
		{"reason", l.Reason != nil},
		{"item", l.Item != nil},
		{"item.id", l.Item != nil && l.Item.ID != nil},
		{"item.body", l.Item != nil && l.Item.Body != nil},
	}
}

// EncodeLetter writes a dead letter with its item, but not its receipt.
// TooLarge: it is over [MaxLetter].
func EncodeLetter(l *core.DeadLetter) (string, error) {
	return letters.encode(&letter{
		V: version, ID: ptr(l.ID), Batch: ptr(l.Batch), Buffer: ptr(l.Buffer), Group: ptr(l.Group),
		Destination: ptr(l.Destination), Reason: ptr(l.Reason), Status: l.Status, Answer: text(l.Answer),
		Attempts: l.Attempts, FirstErrorAt: l.FirstErrorAt, LastErrorAt: l.LastErrorAt,
		LastError: text(l.LastError), Item: itemOf(&l.Item),
	})
}

func itemOf(i *core.Item) *item {
	out := &item{
		Seq: i.Seq, ID: ptr(i.ID), Source: text(i.Source), ContentType: text(i.ContentType),
		ReceivedAt: i.ReceivedAt, JSON: i.JSON, Body: ptr(string(i.Body)),
	}
	for _, h := range i.Headers {
		out.Headers = append(out.Headers, header{text(h.Name), text(h.Value)})
	}
	return out
}

// DecodeLetter reads a dead letter. Invalid: it is none.
func DecodeLetter(data []byte) (core.DeadLetter, error) {
	var l letter
	if err := letters.decode(data, &l); err != nil {
		return core.DeadLetter{}, err
	}
	return core.DeadLetter{
		ID: string(*l.ID), Batch: string(*l.Batch), Buffer: string(*l.Buffer), Group: string(*l.Group),
		Destination: string(*l.Destination), Reason: string(*l.Reason), Status: l.Status,
		Answer: string(l.Answer), Attempts: l.Attempts, FirstErrorAt: l.FirstErrorAt,
		LastErrorAt: l.LastErrorAt, LastError: string(l.LastError), Item: l.Item.core(),
	}, nil
}

func (i *item) core() core.Item {
	out := core.Item{Seq: i.Seq, Event: core.Event{
		ID: string(*i.ID), Source: string(i.Source), ContentType: string(i.ContentType),
		ReceivedAt: i.ReceivedAt, JSON: i.JSON, Body: []byte(*i.Body),
	}}
	for _, h := range i.Headers {
		out.Headers = append(out.Headers, core.Header{Name: string(h.Name), Value: string(h.Value)})
	}
	return out
}

package sqs

import (
	"cmp"
	"encoding/base64"
	"encoding/json"

	"sluice/core"
)

// place is a letter's place in the order: by age, each batch together.
type place struct {
	At    core.Millis
	Batch string
	Seq   uint64
	ID    string
}

func placeOf(l *core.DeadLetter) place { return place{l.LastErrorAt, l.Batch, l.Item.Seq, l.ID} }

func (p place) compare(o place) int {
	return cmp.Or(cmp.Compare(p.At, o.At), cmp.Compare(p.Batch, o.Batch), cmp.Compare(p.Seq, o.Seq), cmp.Compare(p.ID, o.ID))
}

// cursor is a place as List returns it. Its strings may be of any bytes.
type cursor struct {
	At    core.Millis `json:"at"`
	Batch []byte      `json:"batch"`
	Seq   uint64      `json:"seq"`
	ID    []byte      `json:"id"`
}

func (p place) String() string {
	b, _ := json.Marshal(cursor{p.At, []byte(p.Batch), p.Seq, []byte(p.ID)}) //nolint:errchkjson // nothing in it can fail
	return base64.RawURLEncoding.EncodeToString(b)
}

func parsePlace(s string) (*place, error) {
	var c cursor
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return nil, core.Wrap(core.Invalid, err, "%q is no place in the list; take one from an earlier answer's next", s)
	}
	return &place{c.At, string(c.Batch), c.Seq, string(c.ID)}, nil
}

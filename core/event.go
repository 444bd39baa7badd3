package core

// Event is one message accepted from a source.
type Event struct {
	ID          string
	Source      string
	ContentType string
	Headers     []Header // names in lower case, in the order received
	Body        []byte   // as received, byte for byte; may be empty
	ReceivedAt  Millis
	Unit        string // what its source keeps in order, such as a message group; not stored
	JSON        bool   // the body was found to be one JSON value; false: it was not looked at
}

// Header is one header of an event.
type Header struct {
	Name  string
	Value string
}

// Item is an event stored in one group, under its place in the group's log.
type Item struct {
	Event
	Seq uint64 // from 1, in the order accepted
}

// Size is what the event counts against byte limits: its payload.
func (e *Event) Size() int64 { return int64(len(e.Body)) }

package fold

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"sluice/core/render"
)

// Window is a time window of a buffer: from its start to before its end, in
// milliseconds since 1970 UTC.
type Window struct {
	Buffer  string
	Shard   int // of the window, when it is spread: each makes rows of its own
	StartMs int64
	EndMs   int64
}

// Row is a finished row.
type Row struct {
	ID      string // a hash of buffer, key and window; 32 hexadecimal digits
	Key     string // as it was added
	Body    []byte // one JSON object
	FirstAt int64  // when the earliest of its events arrived, in milliseconds since 1970 UTC
	Events  int64  // how many were folded into it, at least 1
}

// Table is a fold under way. It is not for concurrent use.
type Table struct {
	fold   *Fold
	window Window
	rows   []*row
	byKey  map[string]*row
	values []value // one for each read of the fold
}

type row struct {
	key     string
	cells   []cell
	firstAt int64
	events  int64
}

// Table begins a table without rows.
func (f *Fold) Table(w Window) *Table {
	return &Table{fold: f, window: w, byKey: map[string]*row{}, values: make([]value, len(f.reads))}
}

// itself is an event where it is counted by itself.
var itself = value{there: true}

// Add folds an event into the row of key, which it makes if there is none. The
// event arrived at that many milliseconds since 1970 UTC. Nothing of it is kept
// but copies. Add reports whether all of the event was folded; where it was not,
// [Fold.Check] says why, and what can't be folded counts as absent: a value that
// is no number still counts for count, first and last.
func (t *Table) Add(key string, in render.Input, at int64) (whole bool) {
	r, ok := t.byKey[key]
	if !ok {
		r = t.newRow(key, at)
	}
	r.events++
	r.firstAt = min(r.firstAt, at)
	event := render.Read(in)
	whole = true
	for i := range t.values {
		var err error
		if t.values[i], err = t.fold.reads[i].of(&event); err != nil {
			whole = false
		}
	}
	for i := range t.fold.columns {
		v := &itself
		if at := t.fold.columns[i].read; at >= 0 {
			v = &t.values[at]
		}
		r.cells[i].add(v)
	}
	clear(t.values)
	return whole
}

func (t *Table) newRow(key string, at int64) *row {
	r := &row{key: strings.Clone(key), cells: make([]cell, len(t.fold.columns)), firstAt: at}
	for i := range r.cells {
		r.cells[i] = t.fold.columns[i].cell()
	}
	t.byKey[r.key] = r
	t.rows = append(t.rows, r)
	return r
}

// Rows is the rows so far, in the order in which their keys first came.
func (t *Table) Rows() []Row {
	rows := make([]Row, len(t.rows))
	start, end := timestamp(t.window.StartMs), timestamp(t.window.EndMs)
	for i, r := range t.rows {
		id := t.window.rowID(r.key)
		b := append([]byte(`{"id":"`), id...)
		b = appendText(append(b, `","key":`...), r.key)
		b = append(b, `,"windowStart":"`+start+`","windowEnd":"`+end+`"`...)
		for j, c := range r.cells {
			b = c.append(append(b, t.fold.columns[j].prefix...))
		}
		rows[i] = Row{ID: id, Key: r.key, Body: append(b, '}'), FirstAt: r.firstAt, Events: r.events}
	}
	return rows
}

// timestamp is a time as RFC 3339 has it, in UTC with milliseconds.
func timestamp(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

// idBytes is how much of the hash an id has: as much as a UUID.
const idBytes = 16

// rowID is the hash of length and text of buffer and key, start and end, all
// numbers as 8 bytes with the highest first; of a shard other than 0, also its
// number: a key is in one shard, unless the settings changed meanwhile.
func (w *Window) rowID(key string) string {
	b := make([]byte, 0, 4*8+len(w.Buffer)+len(key))
	for _, s := range []string{w.Buffer, key} {
		b = append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(w.StartMs))
	b = binary.BigEndian.AppendUint64(b, uint64(w.EndMs))
	if w.Shard > 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(w.Shard))
	}
	hash := sha256.Sum256(b)
	return hex.EncodeToString(hash[:idBytes])
}

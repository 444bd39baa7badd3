// Package objectkey makes the keys under which batches are stored as objects,
// by templates such as "{{ .buffer }}/{{ .date }}/{{ .id }}{{ .suffix }}".
//
//	.id      the batch's id, the same on every attempt
//	.buffer  the buffer's name
//	.group   the group's key
//	.reason  why the batch left: items, bytes, wait, idle, window, flush, replay
//	.date    2026-01-31, .year, .month, .day, .hour and .minute: when the batch's
//	         oldest item arrived, or its time window began; UTC
//	.suffix  what the format and the compression are known by, such as .ndjson.gz
//
// A template is literals and these fields, and has .id in it: without, one
// batch would replace another. One by which a key could get longer than stores
// take is refused. All of them are the same on every attempt, and so
// is the key.
//
// What comes of events is made safe for keys: letters, digits and -_.*'() stay
// as they are, any other byte is ! and two hexadecimal digits, so a slash in a
// group opens no folder. A group that is nothing but dots has no dot left, and
// an empty one is !. One of more than 200 bytes is cut, and ends in a hash of the
// whole.
package objectkey

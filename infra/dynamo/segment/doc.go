// Package segment packs events into the bytes of one stored item, and unpacks
// them.
//
//	first byte  what follows
//	0           the events, one behind the other
//	1           the same, compressed by zstd
//
// An event is its flags, id, source, content type, arrival, headers and body,
// each behind its length; numbers are varints. The arrival counts from the
// segment's own. Compression is used only when it makes the whole smaller.
package segment

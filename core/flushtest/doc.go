// Package flushtest is the conformance suite of flushes: what each option does
// in each state of a buffer, on a store and with its coordinator. Every adapter
// of a store runs the very same cases.
//
// A case is a state of one buffer, and for each set of options a line of what
// follows:
//
//	k1×2#1 k2×1#1 | rows 3 | here 54s | there 54s, last 0s
//
// that is what was sent (group or start of the window, how many, which attempt);
// the report; when this process may ship the buffer again; and, where a
// coordinator is shared, when another may, and what its turn record says.
package flushtest

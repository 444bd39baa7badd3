// Package fold makes rows of events: of the events of one time window, one row
// per row key, with columns such as "count" or "sum .json.amount".
//
//	columns --Compile--> Fold --Check--> may this event be folded? (at ingest)
//	                      |
//	                    Table(window) --Add, Add, …--> Rows
//
// # Columns
//
// A column is a function and a path. The paths are [render.CompilePath]'s.
//
//	count               the events
//	count .json.a       the events in which it is there
//	sum   .json.a       the sum; 0 when there is none
//	min   .json.a       the least; null when there is none
//	max   .json.a       the greatest; null when there is none
//	avg   .json.a       the mean; null when there is none
//	first .json.a       the value of the event that was added first and has one; else null
//	last  .json.a       the value of the event that was added last and has one; else null
//
// What is missing or null counts for no function, as in SQL; so does an empty
// header. A body that is no JSON is null. sum, min, max and avg are of JSON
// numbers; first and last keep any JSON value, compact, or a text as a string.
// They keep none that is nested more than 1,000 deep, so that a row can be read.
//
// # Numbers
//
// Sums are of exact decimals: 0.1 and 0.2 are 0.3, integers may have any size,
// and the order of events makes no difference. So that this needs little memory,
// a number has at most 100 significant digits, is 0 or between 1e-400 and 1e401
// in size, and is written in at most 512 bytes. A sum is written plainly, or with
// an exponent where it would need zeros to more than 21 digits.
//
// min and max compare exactly and keep the number as it was written; of equal
// ones, that which was added first.
//
// avg is the exact sum divided by how many there are, rounded once, to the
// nearest float64, in the shortest form that reads back as it. Beyond what a
// float64 holds in full (2.2e-308 to 1.8e308) it has 17 significant digits.
//
// # Rows
//
//	{"id":"…","key":"…","windowStart":"2026-11-30T10:00:00.000Z","windowEnd":"…",<columns>}
//
// The id is a hash of buffer, key and window: the same on every retry. Adding the
// same events in the same order makes the same bytes. Text that is not UTF-8 has
// U+FFFD in its place; the id is of the key's bytes, so that two keys have two.
//
// # Memory
//
// A table grows with its rows and the values that they keep (a number of 512
// bytes for each min and max, any value for first and last), never with how many
// events were added. Add neither fails nor panics: the columns may have changed
// since an event was accepted, and then it takes of the event what there is.
package fold

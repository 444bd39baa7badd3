// Package sqsreceive reads a source's events from a queue of Amazon SQS.
//
//	long poll ─▶ up to 10 messages ─▶ take ─┬▶ taken: deleted
//	                                        ├▶ refused: left to the queue
//	                                        └▶ no room yet: kept hidden, taken again
//
// One poll is always under way. While answers come full there are more, side by
// side, up to [Options].Pollers; each extra one ends with an empty answer, so
// that an idle queue costs one request in 20 seconds.
//
// A message leaves the queue when its event is durable. What is not deleted in
// time comes again, with the same id, by which `dedupe` knows it.
//
// Of a batch that was not taken whole, what is left is tried message by message,
// in order: each has a cause of its own, and one holds back only those behind
// it in its message group.
//
//   - What is refused (too large, no time where there must be one) stays hidden
//     for the queue's own visibility timeout and comes again; the queue's redrive
//     policy takes it away in the end, and those that were received behind it in
//     its group count as received too.
//   - What has no room (a full buffer or group, a store that does not answer) is
//     not given back, as every time that it is received counts towards
//     maxReceiveCount. It is kept hidden and tried again, after 1 to 30 seconds.
//     The messages of eight answers may wait so; then pollers stop receiving, each
//     with what it has. A FIFO queue holds the rest of a group back meanwhile.
//
// At the end of a run the poll under way is cut off, what was received is
// finished with, and what still waits becomes visible at once. Messages in an
// answer that was cut off come again after the queue's visibility timeout.
package sqsreceive

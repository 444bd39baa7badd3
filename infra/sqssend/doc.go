// Package sqssend sends batches to a queue of Amazon SQS, one message for each
// item.
//
//	batch ─▶ messages ─▶ calls of at most 10 messages and 1 MiB ─▶ core.Response
//
// A message's body is the item's, byte for byte, or, where SQS would not take
// that, as [sluice/core/sqsmessage] encodes it.
//
// The other attributes, each a string, are absent when there is nothing to say:
//
//	id, source, content-type       of the item
//	sluice-batch, sluice-buffer, sluice-group, sluice-reason,
//	sluice-attempt, sluice-window  of its batch
//
// What SQS says of each message is the outcome of its item: only what was not
// taken is sent again, and what SQS will never take is refused for good. Calls
// to a standard queue are made side by side.
//
// A FIFO queue, whose name ends in .fifo, gets one message a call, one after the
// other, as SQS may take the last of a call and not the first. Behind a message
// that is to be sent again nothing more is sent. The message group is the batch's
// group, or its buffer when that is empty, hashed where it is longer than SQS
// allows or has other characters. A message that is sent again within SQS's five
// minutes is dropped there, by a hash of its item's id and its buffer.
package sqssend

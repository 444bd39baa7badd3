// Package sqsmessage says how an event and a message of Amazon SQS are made of
// each other, once for everything that reads or writes such messages.
//
// SQS takes only the characters that XML 1.0 allows, and no empty body. A body
// that it would not take is in base64, and in place of an empty one stands a
// space; the message attribute [EncodingAttribute] says so: base64, or empty.
// Reading undoes this, so that what one end has sent the other gets byte for byte.
package sqsmessage

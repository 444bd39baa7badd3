// Package awstest is the one way in which tests get stand-ins for AWS:
// dynalite for DynamoDB, fauxqs for SQS and versitygw for S3, at the versions that
// the lock file in .ci/standins and the module in .ci/s3 pin, listening on
// 127.0.0.1 alone.
//
//	test binary ──stdin──▶ node standin.mjs dynamodb   one for each binary, started by the
//	     │                      ▲                      first test that asks; ends with the
//	     └── a client and ──────┘                      binary, as its stdin then closes
//	         a table of its own, for each test
//
// A test takes what it needs and cleans up nothing:
//
//	meter, faults := &awstest.Meter{}, &awstest.Faults{}
//	client := awstest.DynamoDB(t, meter.Option, faults.Option)
//	store := dynamo.New(client, dynamo.Options{Table: awstest.Table(t, client)})
//	...
//	require.Equal(t, 2, meter.Usage().Requests)
//
// [Meter] counts requests and capacity units, [Faults] makes chosen calls fail
// before or after they were carried out. Both work on the clients of every
// service. Without Node.js, or before `make standins`, a test that asks for a
// stand-in is skipped.
//
// versitygw was chosen because it checks what a mock lets pass: signatures, their
// hashes and times, checksums, lengths, names. It keeps objects as files, and so
// is wrong where files are not objects: "a" and "a/b" cannot both be there, a
// part of a key has at most 255 bytes, and a double slash counts as one. It
// throttles nobody, and redirects nobody to another region.
//
// fauxqs checks what a queue's order, its visibility timeouts and its limits by
// call make of messages, and which characters a body has. It is wrong in that it takes
// an empty body, any number and content of attributes, and group and
// deduplication ids of any length and characters, refuses characters above U+FFFF,
// and throttles nobody.
//
// What the stand-ins do over the network takes real time, so they are of no
// use inside a bubble of testing/synctest.
package awstest

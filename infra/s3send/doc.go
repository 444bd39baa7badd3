// Package s3send stores batches in Amazon S3, or a store that speaks its
// protocol, one object for each batch.
//
//	batch ─▶ encode ─▶ compress ─▶ SHA-256 ─▶ sign ─▶ PUT ─▶ answer ─▶ core.Response
//
// An object's key is the same on every attempt, so a batch that is sent again
// replaces itself. What is compressed says so twice: in Content-Encoding, and by
// .suffix in its key. The batch's id, buffer, group, reason and number of items
// are the object's metadata (x-amz-meta-sluice-...).
//
// The store checks the object against its SHA-256, which is part of the
// signature and kept as its checksum. The hash has to be known before the first
// byte is sent, so a batch is in memory as a whole, twice while it is compressed;
// overflow.maxBytes and the destination's concurrency bound how much that is.
//
// Requests go to bucket.s3.region.amazonaws.com; to the path /bucket/ when the
// bucket has a dot in its name, which no certificate covers, or the store is
// another's. They are signed by the SDK's signer, without its client for S3,
// which would make a function a megabyte larger. Redirects are not followed:
// a bucket in another region is an error that names it.
package s3send

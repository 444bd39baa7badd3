// Package format materialises a batch as the body that its destination takes.
//
//	ndjson       one item a line
//	json_array   [item,item,...]
//	envelope     {"id":...,"buffer":...,...,"items":[{"id":...,...,"body":item}]}
//	cloudevents  [{"specversion":"1.0","id":...,...,"data":item},...]
//
// The envelope of a part of a time window has, behind its group,
// "window":{"id":...,"start":...,"end":...}.
//
// A body that is JSON goes out byte for byte, numbers, duplicate keys and all,
// unless it spans lines: then it is compacted, so that no format but ndjson
// holds a line break inside a batch, and ndjson none inside an item. JSON here
// means RFC 8259: one value, in UTF-8, nested at most 10,000 deep.
//
// Any other body becomes a JSON string when it is UTF-8, and
// {"base64":"..."} otherwise. The envelope, which has room for both, gives
// JSON as "body" and everything else as "bodyBase64".
//
// The last format is a batch of CloudEvents 1.0 in their JSON format. An event
// that came as a CloudEvent keeps its attributes, extensions too: one in the JSON
// format goes out as it is, and of one in HTTP's binary mode each ce- header is an
// attribute again. Any other event gets its id, the source "/sources/<its
// source>", the type "sluice.event", and as time the moment of its arrival. A
// payload is "data": JSON where the content type promises it, else a string; what
// is neither, or not UTF-8, is "data_base64".
package format

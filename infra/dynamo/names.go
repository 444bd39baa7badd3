package dynamo

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"unicode/utf8"

	"sluice/core"
)

// The attributes that are keys of the table or of its indexes.
const (
	attrPartition = "pk"
	attrSort      = "sk"
	attrDue       = "due"
	attrCheckAt   = "checkAt"
	attrClaimDue  = "claimDue"
	attrExpires   = "expires"
)

// index is one of the two due indexes. An item without its time is not in it.
type index struct{ name, at string }

var indexes = [...]index{{"byCheck", attrCheckAt}, {"byClaim", attrClaimDue}}

const (
	// dueShards is [Options.DueShards] when it is not given.
	dueShards = 16
	// bucket is how many sequence numbers share a partition of the log.
	bucket = 256
	// maxPlainKey is the longest group key, in bytes, that stands in a
	// partition key as it is.
	maxPlainKey = 512
)

// place is where a group's record lies. A key that can't stand in the
// partition key, as it is long or no text, is hashed there and kept in the record.
//
//	g/<buffer>/<shard>/=<key>
//	g/<buffer>/<shard>/#<hash>
func place(ref core.Ref) (pk string, hashed bool) {
	prefix := bufferPrefix(ref.Buffer) + strconv.Itoa(ref.Shard) + "/"
	if len(ref.Key) <= maxPlainKey && utf8.ValidString(ref.Key) {
		return prefix + "=" + ref.Key, false
	}
	sum := sha256.Sum256([]byte(ref.Key))
	return prefix + "#" + base64.RawURLEncoding.EncodeToString(sum[:]), true
}

// bufferPrefix begins the partition keys of a buffer's records.
func bufferPrefix(buffer string) string { return "g/" + buffer + "/" }

// refAt is the group whose record lies at a place; key is what the record
// keeps for a hashed one.
func refAt(pk, key string) (core.Ref, error) {
	parts := strings.SplitN(pk, "/", 4)
	if len(parts) != 4 || parts[0] != "g" || parts[3] == "" {
		return core.Ref{}, core.Errorf(core.Internal, "%q is no place of a group", pk)
	}
	shard, err := strconv.Atoi(parts[2])
	if err != nil {
		return core.Ref{}, core.Wrap(core.Internal, err, "%q is no place of a group", pk)
	}
	ref := core.Ref{Buffer: parts[1], Key: parts[3][1:], Shard: shard}
	if parts[3][0] == '#' {
		ref.Key = key
	}
	return ref, nil
}

// dueShard is the one of n parts of the due indexes that a record is in.
func dueShard(pk string, n int) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(pk)) // never fails
	return dueShardName(int(h.Sum32() % uint32(n)))
}

func dueShardName(n int) string { return fmt.Sprintf("%02d", n) }

// logPlace is the partition of a life's log in which a segment lies whose
// first number is seq.
func logPlace(life string, seq uint64) string {
	return "s/" + life + "/" + strconv.FormatUint(seq/bucket, 10)
}

// lastOfBucket is the last number whose segment would lie in seq's partition.
func lastOfBucket(seq uint64) uint64 { return seq/bucket*bucket + bucket - 1 }

// sizePlace is where the size of a buffer is noted.
func sizePlace(buffer string) string { return "b/" + buffer }

// markPlace is where the id of a buffer's event is marked.
func markPlace(buffer, id string) string {
	prefix := "d/" + buffer + "/"
	if len(id) <= maxPlainKey && utf8.ValidString(id) {
		return prefix + "=" + id
	}
	sum := sha256.Sum256([]byte(id))
	return prefix + "#" + base64.RawURLEncoding.EncodeToString(sum[:])
}

// ticketPlace is where it says what became of the ids that a part has marked.
func ticketPlace(ticket string) string { return "t/" + ticket }

// sharedPlace is where a record lies that processes share.
func sharedPlace(name string) string {
	if utf8.ValidString(name) {
		return "c/=" + name
	}
	return "c/#" + base64.RawURLEncoding.EncodeToString([]byte(name))
}

// Package embed is the store of a single machine: one append-only log in files
// of one size, and an index of it in memory.
//
//	Append, Update,        commit that fills        commit on its way        disk
//	Put, Settle ──▶ memory ──▶ [record|record|…] ──▶ [record|…] ──▶ pwrite, fdatasync
//	                  ▲                                                       │
//	                  └──────────────── the callers hear of it ◀──────────────┘
//
//	0000000007.log   header │ begin │ record │ record │ … │ end
//	0000000008.log   header │ begin │ record │ record │ zeros, or stale bytes
//	0000000009.log   header │ a spare
//	checkpoint       all groups, the places of their items, the dead letters, what is closed, ids
//	lock             flock; holds the owner's pid
//
// A call changes memory under one mutex and puts one record into the commit
// that fills, in the same order. Then it waits: one goroutine takes commit
// after commit to the disk, and while one is on its way the next one fills, so
// the writers that wait share an fdatasync. What a later commit says never
// becomes durable without what it rests on. A change of hints alone is not
// waited for; a crash may lose the newest ones.
//
// A record of groups holds each group as it is then, not what has changed, and
// the items that it files. So any record makes sense without the ones before
// it, reading one twice does no harm, and damage costs what was damaged.
//
// Of a closed group with nothing left, memory and checkpoints keep no more than
// its name and until when it refuses more; an append at that time forgets it.
//
// A buffer that leaves out doubles has the hashes of the ids that it has stored
// within its window in memory, about 46 bytes for each, and in the checkpoints,
// 20 bytes for each. Those of later events a start reads out of the log. So a
// double is known as long as its window lasts, whatever has become of the event,
// and is answered for when the event is durable. Other buffers have none of this.
//
// Segments are dead when nothing in them is live and the last checkpoint lies
// behind them; a dead one becomes a spare under a new generation, which is a
// part of every checksum: a stale record never verifies. Rewriting a file
// leaves its metadata alone, so that an fdatasync is one write. Items that keep
// an otherwise dead segment are copied to the log's end.
//
// # What a crash leaves
//
// A start reads the checkpoint, then the log from the place where that began.
// The checkpoint is written while the store works on: each group in it carries
// the place of the log that it reflects, and records before that are skipped
// for it. It takes the old one's place only when the log up to its own end is
// durable, and only then do segments before it die. A segment is used again
// only when the record that emptied it is durable. So at any moment the disk
// has either the old checkpoint with all its segments, or the new one with its.
//
// Records carry the number of their commit. A commit begins when the one
// before it is durable; so a record that does not verify is, in the last
// commit, what a crash has torn, and nobody was told of it; in any other it is
// rot. The former is cut or covered up; the latter is skipped, what follows is
// kept, and [Report] says which range is gone and, as the groups' next records
// tell, which numbers. What verifies, and yet is nothing that this version
// reads, is neither: the start fails, and nothing is cut. Payloads have checksums
// of their own, in the record and in memory: rot in one is noticed when it is
// read, at the latest.
//
// A write or an fsync that fails ends the store for good: see [Store.Failed].
// Room on the disk is taken when a segment is made, never when it is written:
// so a full disk is met there only, where appends are refused with core.Full.
// Claims, acks and copies still have a spare of their own, and a checkpoint may
// take the room of another; so delivery goes on, segments die, and room comes
// back.
//
// An fsync that failed may leave pages in the system's cache that look written;
// a start in the same boot believes them. They belong to commits of which
// nobody was told that they are stored.
package embed

// Package dynamo is the [core.Store] on one DynamoDB table: a shared log with
// a sequencer, after CORFU (Balakrishnan et al., NSDI 2012), for each group.
//
//	g/<buffer>/<shard>/=<key>          the record: life, head, tail, claims, …
//	                                   UpdateItem numbers, and makes transitions
//
//	s/<life>/0   1 ███████ 8 ██ 10 ░░░ 13 ███████████████ 240 ███████████→
//	s/<life>/1   (256 begins in the segment that reaches past the edge) 301 ███
//	             └ segments: write-once, packed; ░ void: a tombstone at each number
//
//	byCheck, byClaim                   sparse indexes of the records by checkAt
//	                                   and by claimDue, for the sweep
//	b/<buffer>                         how many items it holds, if that is limited
//	c/=<name>                          a record that processes share, as a turn
//	d/<buffer>/=<id>                   a marker: who has this event in hand, or has had
//	t/<ticket>                         what became of the events that a part has marked
//
// # Appending: two writes, no read, no transaction
//
//  1. UpdateItem on the record adds n to tail. The answer says which numbers
//     these are, where the log's bytes stand, and whether this append opened
//     the group or filled it. The client does not repeat the call, for it counts
//     each time; we do, and what a lost answer has numbered is a hole.
//  2. PutItem of the segment at its first number, if nothing is there.
//
// Only then the caller arms the timer and answers its source.
//
// # Leaving doubles out
//
// A part that wants no doubles takes four writes in place of two:
//
//  1. PutItem of a marker for each id, if there is none, side by side. It names
//     the part's ticket and the event's position, and has a lease.
//  2. and 3. as above, with what was not a double. If nothing is left, nothing is
//     numbered.
//  4. PutItem of the ticket: so many of the part's first events are stored, and
//     the ids of the others are free. Then comes the answer.
//
// So one ticket turns all markers of a part into "done", or frees them when the
// request was refused, or its window closed under it. Who meets a marker reads
// its ticket: what is stored within the window is a double; what is free it takes
// over, on condition that the marker still names that ticket. Without a ticket
// the request is under way while the lease lasts (40 seconds, and the request gives
// up after 30), and others are told to come again in a second; later it has died,
// and is taken over, too.
//
// That is one unit for each event and one for each part, a request each, of which
// 16 are made at a time: a single event costs 4 units in place of 2; a hundred for
// one group 101 more, and seven round trips. A transaction would cost two for
// each event, take at most a hundred, and refuse all for one double; a batch of
// writes has no conditions; a marker that is itself set to done costs two. A
// double costs the refused write and the reading of a ticket.
//
// The writer of a segment insists: its put is made again until an answer is
// there, which tells whether it is stored. Doubles are left out unless a process
// dies, or the table fails it five times, just between the segment and the ticket:
// then the id is free after the lease, and its event, sent again, stored again.
// Markers and tickets are left to the TTL once their window and a lease have passed.
//
// # Reading: holes
//
// A writer that dies between the two leaves a hole. A reader takes a contiguous
// prefix. A hole that is younger than two seconds ends it, and the page says
// when to come again; an older one is fenced, by a tombstone at each of its
// numbers, put on the same condition as a segment. So for every number exactly
// one of the two puts succeeds, whatever the clocks say: a writer that wakes up
// late fails, and appends again under new numbers; a fencer that loses reads
// again. Time decides only who is likely to win.
//
// A segment is filed under its first number, so a reader goes on behind it, at
// first + n, whatever tombstones lie inside: they lost against it. Because a
// claim may cut a segment, a group keeps a mark of where to begin to look for
// head + 1, and each claim one for its first item.
//
// An append that is refused in one of its groups puts void segments into the
// numbers that it got in the others, so that nobody waits for them.
//
// # Transitions: one conditional write
//
// Claim, ack, release and the others read the record (or are handed it), run
// core's pure function, and write the fields that it changed on condition of
// life and rev. They never write what an append does (tail, tailBytes, lastAt,
// life), so appends in between do no harm: a deadline that was computed from an
// older lastAt is early. One that leaves nothing pending takes checkAt away, so
// it also needs tail as it was; if that fails, it is computed anew on the record
// that it met. Room for more items, which appends take and claims give back, is
// added to by both, and set by neither. What is returned is the record as
// written: whether an append slipped in and filled the group shows there, and
// whoever wrote hands it over.
//
// Each carries a nonce. A failed condition that meets its own nonce is a success
// whose first answer was lost.
//
// # Closing a time window
//
// A window is shipped once and whole. Close is a transition like any other; an
// append to a window is numbered on condition that the record is not closed. So
// the table puts every append before the close, and then it is below the tail
// that the closer gets to see, or refuses it. The closer then waits for the
// holes of what is below, or fences them, and claims. That costs one update more
// than any delivery; appends to other groups have no condition, and pay nothing.
//
// A refused append is answered as closed, and its request goes on with its other
// parts; the caller moves it on to a later window. A writer that was fenced
// numbers again, and so may meet the close too, with the first segments of a
// large part stored: the answer says how many items they hold, and only the
// others are moved on. A numbering whose answer was lost before the close leaves
// a hole, as ever.
//
// Large claims are read page by page. Each page says where to look for what
// follows it, so none is read from the begin of the claim.
//
// # What processes share
//
// The store is a [core.Coordinator], too. A change is a read and a put on
// condition of the nonce that was read, so taking a turn and giving it back are
// four requests. A removed record stays for an hour, without a value, so that a
// removal whose answer was lost is known by its nonce. What somebody who waits for
// an outcome has written expires an hour later, as he may die before he removes it.
//
// # What a crash leaves
//
//	after                          left behind              found by
//	numbering                      a hole; checkAt is set   the sweep, or whoever comes next; readers fence it
//	putting, before the timer      items; checkAt is set    the sweep
//	marking, before the ticket     markers with a lease     whoever sends the ids again
//	a close                        checkAt is now           the sweep
//	a claim                        a lease                  claimDue: the sweep, or the hint for its end
//	a send, before it is settled   the same                 the same; sent again under the same batch id
//	an ack, before the next hint   checkAt at the deadline  the sweep
//	some tombstones of a hole      a smaller hole           the next reader
//	a void segment, its note       void numbers             the next reader, who notes them
//
// Nothing acknowledged is lost: a segment is put before the answer, is never
// overwritten, lies above head until a claim covers it, and is kept in a claim
// until that is settled. Nothing is doubled: claims are made on condition of rev,
// begin at head + 1 and move head; a batch's members are fixed by its range, as
// all its numbers are filled or fenced when it is claimed. Nothing is overtaken:
// numbers are handed out in order, and no claim passes a hole. Settling names
// the lease that it holds, so a deliverer that was given up changes nothing.
// Package [sluice/infra/dynamo/model] explores all of this exhaustively, and
// shows for each rule what breaks without it.
//
// # Expiry
//
// What was delivered is left to the table's TTL. A segment expires a retention
// after its last possible deadline, and is kept longer when it is read in the
// second half of that, or found waiting by [Store.Maintain]. A record expires
// only when it is empty, set by the very update that empties it; an append takes
// it back. That of a closed window expires no sooner than events may be for it;
// until then it is in no index, and only refuses. A window, or what leaves by
// flushes alone, may wait for days: as long as that is no more than half of the
// retention, a segment has the other half left when its time has come, and what
// waits longer is kept like anything else. A gap behind items that are older
// than half the retention may have had items: it is reported as a loss, and
// waited for and fenced like any other, as a writer that is still at work leaves
// one that looks the same.
//
// # What differs from the embedded store
//
// A request of several groups that fails as Unavailable may be stored in part. A
// refused one may leave void numbers behind. A part that may be shed is shed by any
// failure of its own as well, be it that its ids are in another request's hands:
// its calls are made once, so that nobody waits for a copy. The size of a buffer is counted
// every minute, and so holds only about, be it to refuse or to shed;
// overflow.maxItems holds exactly. What leaves doubles out may, after a crash, store
// one. A request some of whose parts are closed is stored but for these at once.
// Listing groups and summing them up costs a read for each that is not empty.
package dynamo

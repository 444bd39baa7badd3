package model

// Bounds of a state. A state is one comparable value without pointers, so that
// it can be hashed as it lies in memory.
const (
	maxNumbers = 7
	maxWriters = 3
	maxActors  = 2
	maxClaims  = 2
	maxLives   = 2
)

// none is the time of what is not set. It is later than every other.
const none int8 = 99

// claim is a leased range of the log. Its id is its first number.
type claim struct {
	from, to int8 // from 0: the slot is free
	mark     int8 // where the segment starts that holds from
	items    int8 // real items among the members
	lease    int8 // odd while a deliverer holds it
	due      int8 // when the lease ends, or the retry is due
}

func (c *claim) held() bool { return c.lease%2 == 1 }

// record is the group's one record.
type record struct {
	life       int8 // 0: there is none
	rev        int8
	tail, head int8
	mark       int8 // where the segment starts that holds head + 1
	firstAt    int8
	lastAt     int8
	checkAt    int8
	room       int8 // how many numbers may still be handed out
	void       int8 // pending numbers known to hold no item
	expires    int8
	closed     bool
	due        int8 // the single index, without Rules.TwoIndexes
	claims     [maxClaims]claim
}

func (r *record) pending() int8 { return r.tail - r.head }

func (r *record) claimed() int {
	n := 0
	for i := range r.claims {
		if r.claims[i].from > 0 {
			n++
		}
	}
	return n
}

func (r *record) claimDue() int8 {
	due := none
	for i := range r.claims {
		if r.claims[i].from > 0 {
			due = min(due, r.claims[i].due)
		}
	}
	return due
}

// find is the index of the claim that starts at a number, or -1.
func (r *record) find(from int8) int {
	for i := range r.claims {
		if from > 0 && r.claims[i].from == from {
			return i
		}
	}
	return -1
}

// slot is what lies in the log at one number.
type slot struct {
	kind   slotKind
	writer int8
	n      int8 // how many numbers it covers
	at     int8 // arrival
}

type slotKind int8

const (
	nothing slotKind = iota
	segment
	tombstone
	voidSegment
)

// journal is one life's log, by number.
type journal [maxNumbers + 1]slot

type writerPC int8

const (
	toNumber writerPC = iota
	toPut
	toHand
	written
	gone
)

// writer appends one request's items for this group.
type writer struct {
	pc      writerPC
	n       int8
	tries   int8
	life    int8 // under which it has numbered
	seq     int8
	at      int8
	unsure  bool // it has numbered before, and does not know how
	reached bool // its append made the group full
	acked   bool
}

type actorPC int8

const (
	asleep actorPC = iota
	toClose
	toQuery
	toFence
	toClaim
	toSkip
	toArrive
	toNote
	toPark
	toRearm
	toRecover
	toSend
	toSettle
)

// actor is a check, a deliverer or a flush, one after another.
type actor struct {
	pc   actorPC
	seen record

	flush bool // it takes whatever is there
	late  bool // idle or wait made the group due when its log was read
	sent  bool // the send succeeded
	from  int8 // first number of its claim, or of what it would do
	to    int8
	items int8
	mark  int8
	at    int8 // a time, as pc needs it
	lease int8 // the lease it holds, and its end
	ends  int8
}

// message is a delivery that was handed over.
type message struct {
	there bool
	seen  record // the record as its sender saw it; no life: it saw none
}

// state is everything, and what the invariants need to know of the past.
type state struct {
	now     int8
	record  record
	logs    [maxLives]journal
	lives   int8 // given so far
	queue   message
	writers [maxWriters]writer
	actors  [maxActors]actor
	runs    int8 // what may still happen, as Size bounds it
	doubles int8
	fails   int8
	crashes int8
	losses  int8

	delivered [maxWriters]uint8 // by writer, a bit for each item
	taken     bool              // a lease has been taken over
	shipped   bool              // the time window has been claimed
	dropped   bool              // a crash or a lost delivery may have left a full group behind
	fault     Kind              // what an action itself has seen go wrong
}

func (s *state) log(life int8) *journal { return &s.logs[life-1] }

package model

import "reflect"

// Rules are the protocol's rules. Each can be switched off to see what breaks
// without it; [AllRules] is the protocol.
type Rules struct {
	// The log.

	WriteOnce       bool // a segment is put only where nothing is
	HeedFence       bool // a put that finds a tombstone has failed: its writer numbers again
	KnowOwnPut      bool // a put that finds its own segment has succeeded
	VoidOnce        bool // a void segment is put only where nothing is
	SkipWhole       bool // a segment of n at s ends at s + n, whatever tombstones lie inside
	Mark            bool // record and claims say where the segment starts that holds their first number
	HoleEndsPrefix  bool // nothing behind a hole is taken before it is fenced
	FenceEach       bool // a tombstone at every missing number, not at the first alone
	FirstCheckBoth  bool // the first check is armed at the earlier of idle and wait
	RoomCondition   bool // an append needs room for all its items
	AppendKeeps     bool // an append removes expires
	ReachedHands    bool // the append that makes the group full hands it over
	RefusedHands    bool // ... even if its request was refused elsewhere
	UnsureHands     bool // ... or by numbers whose answer its writer has lost
	FreshLife       bool // a record that is created again has another life
	LogOutlives     bool // a life's log is kept until none of its writers can live
	ExpireSettled   bool // a record with claims does not expire
	OneClaimInOrder bool // an ordered group has one claim at a time

	// A time window.

	CloseFirst    bool // it is closed before anything of it is claimed
	ClosedRefuses bool // an append to a closed group is refused
	WholeWaits    bool // it is claimed once all its holes are filled or fenced
	ClosedStays   bool // it is not forgotten while there may be events for it

	// The transitions.

	ConditionLife  bool // on the life that was read
	ConditionRev   bool // on the rev that was read
	ConditionTail  bool // and on the tail when nothing is left behind
	OwnFieldsOnly  bool // never tail and lastAt, which are the appends'
	RoomAdds       bool // room is raised by what is freed, not set
	TrailFromRead  bool // what is behind an emptied group has arrived since the lastAt that was read
	TwoIndexes     bool // checkAt and claimDue are indexed each for itself
	LeaseToSettle  bool // settling names the lease
	LookAgain      bool // a deliverer that lost a race looks at the record again
	HandWritten    bool // whether to hand over is judged on the record as written
	ConfirmCount   bool // a full group is claimed when as many real items are in its prefix
	RecordVoid     bool // numbers known to be void are recorded, so that they count no more
	ClaimResetVoid bool // a claim forgets them
}

// AllRules is the protocol as it is.
func AllRules() Rules {
	var r Rules
	for _, field := range reflect.ValueOf(&r).Elem().Fields() {
		field.SetBool(true)
	}
	return r
}

// Without is the protocol without the rule of that name, and false if there is
// none of that name.
func Without(name string) (Rules, bool) {
	r := AllRules()
	f := reflect.ValueOf(&r).Elem().FieldByName(name)
	if !f.IsValid() {
		return r, false
	}
	f.SetBool(false)
	return r, true
}

// Names lists the rules.
func Names() []string {
	var names []string
	for field := range reflect.TypeFor[Rules]().Fields() {
		names = append(names, field.Name)
	}
	return names
}

// Package model is an exhaustive model of the protocol by which the dynamo
// store keeps a group: one record that numbers, and a log of write-once
// segments beside it.
//
//	writer   number ▶ put ▶ hand over, if its append made the group full
//	check    read the record ▶ hand over, or re-arm
//	deliver  the record seen ▶ read the log ▶ fence | claim | record void ▶ send ▶ settle
//
// Every request to the table is one step. The explorer takes the steps of all
// writers and actors in every order, lets each of them crash at each step,
// loses answers, loses, doubles and ages deliveries, lets requests be refused
// elsewhere, lets time pass and settled records expire, and holds every state
// that can be reached against what must never be broken (the [Kind] list).
// From every state it also lets everything die, and sweeps: what was
// acknowledged must then still be delivered. What it finds comes with the
// shortest trace that leads there.
//
// The rules of the protocol are the fields of [Rules]. The tests switch each of
// them off in turn and name what breaks without it, so none is there in vain.
//
// # What it takes for granted
//
//   - Clocks agree. A lease has a margin for those that do not.
//   - A writer ends long before the log of its life does ([Rules].LogOutlives):
//     a put that arrived after its tombstone had expired would be acknowledged
//     under a life that nobody reads. A function lives for minutes, the log for
//     the retention.
//   - The record expires by a delete that reads expires as it is then.
//   - Hints come at any time, so timers are not modelled: a check may begin
//     whenever it likes, and what no hint leads to is left to the sweep.
//
// # What it shows about a record that expires
//
// A record with something pending does not vanish: its head reaches its tail
// only over numbers whose items are claimed or that are fenced, expires is set
// by the very update that leaves it settled, on condition of the tail, and an
// append removes it. So a writer that has numbered under a life that is gone
// finds a tombstone at its number, and appends again under the new life.
//
// # What it shows about a time window
//
// With [Size].Ship the group is a time window: it is closed, all its holes are
// filled or fenced, and then it is claimed as a whole, once. A writer that meets
// the close, or comes when there can be no more events for the window, moves on
// to another group, which is not modelled; each writes one segment, so nothing of
// it stays behind. A flush closes a window before its time.
//
// # Sizes
//
// The tests explore a handful of small sizes completely, and walk at random
// through a large one:
//
//	go test -v ./infra/dynamo/model                             # as in every build
//	go test -v ./infra/dynamo/model -model.states 40000000      # larger sizes too, up to so many states each
//	go test -v ./infra/dynamo/model -model.seed 7 -model.walks 1000000
//
// A million states take two or three seconds and about 120 MB. Under the race
// detector, which has nothing to find here, the small sizes are only begun.
package model

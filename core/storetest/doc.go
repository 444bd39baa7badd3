// Package storetest is the conformance suite of [core.Store]. Every adapter
// runs the very same cases; where adapters may differ, the [Harness] declares
// how, and no case is ever skipped.
//
// It asserts what the contract promises and no more. So it holds for a store
// that runs a transition several times, that leaves numbers without an item,
// that keeps the record of an emptied group, or whose indexes lag; and for one
// that stores the other parts of a request beside a closed one, or does not.
//
//	func TestStore(t *testing.T) {
//		h := storetest.Harness{Name: "memory", Open: ..., Reopen: ..., Model: ...}
//		storetest.Run(t, h)
//		storetest.Histories(t, h)
//	}
//
// [Run] has the cases, racing goroutines and a crash between any two calls
// among them. [Histories] drives random calls against the store and a model
// of it side by side, and compares all that can be seen after each.
package storetest

// Package coordinatortest is the conformance suite of [core.Coordinator].
// Every adapter runs the very same cases.
//
//	func TestCoordinator(t *testing.T) {
//		coordinatortest.Run(t, coordinatortest.Harness{Name: "memory", Open: ...})
//	}
//
// It asserts what the contract promises and no more. So it holds for a
// coordinator that runs a change several times, each time on the newest record.
package coordinatortest

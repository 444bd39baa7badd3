package sqs

import "sync"

// abreast is how many batch requests of one call are under way at a time. One
// takes some 15 ms, so that 10,000 entries take a second, not fifteen.
const abreast = 16

// flight is requests that are made side by side, [abreast] at a time at most,
// in any order, until one fails.
type flight struct {
	lanes  chan struct{} // holds one for each request under way
	failed chan error    // holds the first error
	all    sync.WaitGroup
}

func newFlight() *flight {
	return &flight{lanes: make(chan struct{}, abreast), failed: make(chan error, 1)}
}

// add begins a request when there is room for it, and reports whether it did:
// behind one that has failed none is begun.
func (f *flight) add(request func() error) bool {
	f.lanes <- struct{}{}
	if len(f.failed) > 0 {
		<-f.lanes
		return false
	}
	f.all.Go(func() {
		defer func() { <-f.lanes }()
		f.fail(request())
	})
	return true
}

// fail keeps an error if it is the first.
func (f *flight) fail(err error) {
	if err == nil {
		return
	}
	select {
	case f.failed <- err:
	default:
	}
}

// end returns when all requests are through, with the first error.
func (f *flight) end() error {
	f.all.Wait()
	select {
	case err := <-f.failed:
		return err
	default:
		return nil
	}
}

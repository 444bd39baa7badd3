// Package observers puts observers together.
package observers

import "sluice/core"

// Join tells each of the observers what happens, in their order. Any of them,
// and any of their functions, may be nil.
func Join(all ...*core.Observer) *core.Observer {
	return &core.Observer{
		Events: counts(all, func(o *core.Observer) count { return o.Events }),
		Late: func(buffer string, n int) {
			for _, o := range all {
				if o != nil && o.Late != nil {
					o.Late(buffer, n)
				}
			}
		},
		Breaker: func(destination string, open bool) {
			for _, o := range all {
				if o != nil && o.Breaker != nil {
					o.Breaker(destination, open)
				}
			}
		},
		Shadow: counts(all, func(o *core.Observer) count { return o.Shadow }),
		Attempt: func(a *core.Attempt) {
			for _, o := range all {
				if o != nil && o.Attempt != nil {
					o.Attempt(a)
				}
			}
		},
		DeadLetters: func(l *core.DeadLetter, n int) {
			for _, o := range all {
				if o != nil && o.DeadLetters != nil {
					o.DeadLetters(l, n)
				}
			}
		},
		Failed: func(op string, err error) {
			for _, o := range all {
				if o != nil && o.Failed != nil {
					o.Failed(op, err)
				}
			}
		},
	}
}

// count tells of n things by two names.
type count = func(a, b string, n int)

func counts(all []*core.Observer, of func(*core.Observer) count) count {
	return func(a, b string, n int) {
		for _, o := range all {
			if o == nil {
				continue
			}
			if tell := of(o); tell != nil {
				tell(a, b, n)
			}
		}
	}
}

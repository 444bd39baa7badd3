// Package observers puts observers together.
package observers

import "sluice/core"

// Join tells each of the observers what happens, in their order. Any of them,
// and any of their functions, may be nil.
func Join(all ...*core.Observer) *core.Observer {
	return &core.Observer{
		Events: func(source, outcome string, n int) {
			for _, o := range all {
				if o != nil && o.Events != nil {
					o.Events(source, outcome, n)
				}
			}
		},
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
		Shadow: func(buffer, outcome string, n int) {
			for _, o := range all {
				if o != nil && o.Shadow != nil {
					o.Shadow(buffer, outcome, n)
				}
			}
		},
		Attempt: func(a *core.Attempt) {
			for _, o := range all {
				if o != nil && o.Attempt != nil {
					o.Attempt(a)
				}
			}
		},
		DeadLetters: func(buffer, reason string, n int) {
			for _, o := range all {
				if o != nil && o.DeadLetters != nil {
					o.DeadLetters(buffer, reason, n)
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

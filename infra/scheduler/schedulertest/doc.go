// Package schedulertest is an EventBridge Scheduler for tests: no public
// stand-in fires schedules or is strict about them.
//
//	         in process, also in a bubble of testing/synctest
//	code ──▶ Fake.CreateSchedule ─┐
//	                              ├─▶ validate ─▶ keep ─▶ time ─▶ Options.Fire(input)
//	code ──▶ SDK ──HTTP──▶ Serve ─┘                                  │
//	         AWS_ENDPOINT_URL_SCHEDULER                ActionAfterCompletion: DELETE
//
// It knows one-time schedules, which are all that the project creates: at()
// expressions, create, get and delete, and schedule groups. It takes what the
// service's API reference allows and refuses the rest with the service's own
// errors. Where that is silent, it does what hurts a careless caller most:
//
//   - a client token is remembered for ever, and with other parameters it is a
//     ValidationException;
//   - a schedule is deleted only after its target has answered, so a target
//     that arms the same name again meets a conflict;
//   - a moment that is not ahead is refused, or with [Options.FirePast] fires at once.
//
// Time is time.Now and what [Fake.Advance] adds to it.
package schedulertest

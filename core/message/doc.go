// Package message writes what travels through queues and schedules as JSON:
// hints, deliveries and dead letters, each to be read again exactly as it was.
//
//	{"v":1,"buffer":"orders","key":"c-17","life":"01J…","at":1767225600000,"check":3}
//	{"v":1,"buffer":"orders","key":{"base64":"/wA="},"destination":"crm"}
//
// The text is a valid SQS message body, and a valid input of an EventBridge
// schedule, whatever bytes a group's key, a header or an event's body holds:
//
//   - SQS takes only the characters that XML 1.0 allows, and a key may hold any
//     bytes. A string travels as it is when that is exact, and else, or when
//     its escapes would make it longer, as base64 in an object of its own.
//   - EventBridge Scheduler replaces <aws.scheduler.…> in an input by values of
//     its own. Angle brackets are always escaped, so a key that holds such a
//     word comes back as it was.
//
// Reading is strict: another version, an unknown or missing field, or a
// text over its bound is an error of code [core.Invalid]. A change of what is
// written is a new version, but for a field that is left out when it is zero:
// readers that do not know it refuse the messages that have it, and no others.
// So while functions of two versions run, or when an older one comes back, what
// uses no new feature passes between them both ways; a hint or a delivery that
// is refused is found by the sweep.
package message

package core

// Sampled reports whether a buffer gets an event of some id: a shadow does not
// get all of them.
func (s *Subscription) Sampled(id string) bool { return !s.Buffer.Shadow || s.sampled(id) }

// Due is until when the buffer holds an event, as it is after the buffer's
// transform; 0: it does not. Invalid: its time is none.
func (s *Subscription) Due(e *Event) (Millis, error) { return s.dueAt(e) }

package core

import (
	"errors"
	"fmt"
	"time"
)

// Code is the kind of an error. Callers act on the code, never on the text;
// adapters map what their vendor says to one of these, once.
type Code uint8

// The closed set of codes.
const (
	Internal     Code = iota // a fault of ours, and the code of any error that carries none
	Invalid                  // the request or configuration is wrong: 400
	Unauthorized             // no token, or a wrong one: 401
	Forbidden                // not from here: 403
	NotFound                 // no such source, buffer or group: 404
	TooLarge                 // over a size limit: 413
	Unsupported              // a content type or encoding that is not understood: 415
	Full                     // a limit on what may wait is reached; try later: 503
	Unavailable              // the store, or what is behind it, does not work now: 503
	Conflict                 // a race was lost, a lease has passed on, or a slot is taken: re-read
	Canceled                 // the caller went away, or the process stops
)

var codeNames = [...]string{
	Internal: "internal", Invalid: "invalid", Unauthorized: "unauthorized", Forbidden: "forbidden",
	NotFound: "not_found", TooLarge: "too_large", Unsupported: "unsupported", Full: "full",
	Unavailable: "unavailable", Conflict: "conflict", Canceled: "canceled",
}

// String is the code's stable name.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return codeNames[Internal]
}

// Error is an error with a code.
type Error struct {
	Code       Code
	Detail     string        // says what is wrong and what would be right; safe to show a client
	RetryAfter time.Duration // with Full and Unavailable: when to try again; 0 when unknown
	Err        error         // the cause, for logs only
}

// Error is the detail, then the cause.
func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return e.Detail
	case e.Detail == "":
		return e.Err.Error()
	}
	return e.Detail + ": " + e.Err.Error()
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error of a code. Its text is shown to clients.
func Errorf(code Code, format string, args ...any) error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Wrap gives err a code and a detail that its reader may see; err itself is
// for logs only. It returns nil for a nil err.
func Wrap(code Code, err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...), Err: err}
}

// CodeOf is the code that err carries, or Internal.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// DetailOf is the detail that err carries for its reader, or "".
func DetailOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Detail
	}
	return ""
}

// RetryAfterOf is when to try again after err, or 0.
func RetryAfterOf(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

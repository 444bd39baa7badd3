package lambdatest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
)

// Invocable is a function as Lambda's own API has it invoked: a POST whose
// caller waits for the answer. It does not look at signatures.
func Invocable(invoke func(ctx context.Context, payload []byte) ([]byte, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payload, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxPayload))
		if err != nil || r.Method != http.MethodPost {
			refuse(w, http.StatusBadRequest, "no invocation")
			return
		}
		// The invocation goes on when its caller is gone.
		answer, err := invoke(context.WithoutCancel(r.Context()), payload)
		if err != nil {
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			answer = told(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(answer) // the caller may be gone
	})
}

// told is an error as Lambda tells of it.
func told(err error) []byte {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{reflect.Indirect(reflect.ValueOf(err)).Type().Name(), err.Error()}
	}
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings can be encoded
	}
	return text
}

package lambdatest

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// Handler is a function as Lambda calls it, in the process of the test.
type Handler func(ctx context.Context, event []byte) (any, error)

// Handle makes a Handler of a function of one typed event.
func Handle[In, Out any](h func(context.Context, In) (Out, error)) Handler {
	return func(ctx context.Context, event []byte) (any, error) {
		var in In
		if err := json.Unmarshal(event, &in); err != nil {
			return nil, err
		}
		return h(ctx, in)
	}
}

// Answer is a function's answer to an event as indented text, without what is
// not set, and as if it had taken no time: what it returns, or its error as Lambda
// tells of it.
func (h Handler) Answer(t *testing.T, event []byte) []byte {
	t.Helper()
	out, err := h(t.Context(), event)
	if err != nil {
		out = map[string]string{"errorMessage": err.Error(), "errorType": reflect.Indirect(reflect.ValueOf(err)).Type().Name()}
	}
	text, err := json.Marshal(out)
	require.NoError(t, err)
	var members map[string]any
	require.NoError(t, json.Unmarshal(text, &members))
	for name, v := range members {
		switch {
		case v == nil:
			delete(members, name)
		case name == "durationMs":
			members[name] = 0
		}
	}
	var pretty bytes.Buffer
	enc := json.NewEncoder(&pretty)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(members))
	return pretty.Bytes()
}

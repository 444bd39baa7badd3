package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func TestClassifyStatus(t *testing.T) {
	t.Parallel()
	retried := map[int]bool{408: true, 425: true, 429: true}
	for status := range 1000 {
		want := core.Permanent
		switch {
		case status >= 200 && status < 300:
			want = core.Delivered
		case retried[status], status >= 500, status < 200:
			want = core.Retry
		}
		require.Equal(t, want, core.Classify(&core.Response{Status: status}, nil), "%d", status)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	failed := core.Bits(nil).With(1)
	for _, c := range []struct {
		name string
		r    core.Response
		on   []int
		want core.Outcome
	}{
		{"an added status", core.Response{Status: 404}, []int{403, 404}, core.Retry},
		{"an added redirect", core.Response{Status: 302}, []int{302}, core.Retry},
		{"not the added one", core.Response{Status: 404}, []int{403}, core.Permanent},
		{"success stays success, though added", core.Response{Status: 200}, []int{200}, core.Delivered},
		{"some items failed", core.Response{Status: 207, Failed: failed}, nil, core.Partial},
		{"an empty list of failed items", core.Response{Status: 200, Failed: core.Bits{0, 0}}, nil, core.Delivered},
		{"failed items of a refused batch", core.Response{Status: 400, Failed: failed}, nil, core.Permanent},
		{"failed items of a failed batch", core.Response{Status: 500, Failed: failed}, nil, core.Retry},
		{"nothing at all", core.Response{}, nil, core.Retry},
		{"an answer that can't be read", core.Response{Status: 200, Failed: failed, Err: errors.New("cut off")}, nil, core.Retry},
		{"a refusal that can't be read", core.Response{Status: 400, Err: errors.New("cut off")}, nil, core.Retry},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, core.Classify(&c.r, c.on))
		})
	}
}

func TestClassifyError(t *testing.T) {
	t.Parallel()
	want := map[core.Code]core.Outcome{
		core.Internal: core.Retry, core.Invalid: core.Permanent, core.Unauthorized: core.Retry,
		core.Forbidden: core.Permanent, core.NotFound: core.Retry, core.TooLarge: core.Permanent,
		core.Unsupported: core.Permanent, core.Full: core.Retry, core.Unavailable: core.Retry,
		core.Conflict: core.Retry, core.Canceled: core.Interrupted,
	}
	for code := core.Internal; code <= core.Canceled; code++ {
		err := fmt.Errorf("send: %w", core.Errorf(code, "no"))
		require.Equal(t, want[code], core.Classify(&core.Response{Err: err}, []int{0}), "%s", code)
	}
	for _, err := range []error{errors.New("unknown"), context.DeadlineExceeded, context.Canceled} {
		require.Equal(t, core.Retry, core.Classify(&core.Response{Err: err}, nil), "%v carries no code", err)
	}
}

func TestOutcomeNames(t *testing.T) {
	t.Parallel()
	var names []string
	for o := core.Retry; o <= core.Interrupted; o++ {
		names = append(names, o.String())
	}
	require.Equal(t, []string{"retry", "delivered", "partial", "permanent", "interrupted"}, names)
}

package core_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func TestCodeNames(t *testing.T) {
	t.Parallel()
	for code, name := range map[core.Code]string{
		core.Internal: "internal", core.Invalid: "invalid", core.Unauthorized: "unauthorized",
		core.Forbidden: "forbidden", core.NotFound: "not_found", core.TooLarge: "too_large",
		core.Unsupported: "unsupported", core.Full: "full", core.Unavailable: "unavailable",
		core.Conflict: "conflict", core.Canceled: "canceled", core.Code(200): "internal",
	} {
		require.Equal(t, name, code.String())
	}
	seen := map[string]bool{}
	for code := core.Internal; code <= core.Canceled; code++ {
		require.False(t, seen[code.String()], "two codes named %s", code)
		seen[code.String()] = true
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	full := &core.Error{Code: core.Full, Detail: "no room", RetryAfter: 3 * time.Second}
	for _, c := range []struct {
		name   string
		err    error
		code   core.Code
		detail string
		after  time.Duration
		text   string
	}{
		{"no code", io.EOF, core.Internal, "", 0, "EOF"},
		{"made", core.Errorf(core.NotFound, "no buffer %q", "b"), core.NotFound, `no buffer "b"`, 0, `no buffer "b"`},
		{"wrapping", core.Wrap(core.Unavailable, io.EOF, "read of %d", 7), core.Unavailable, "read of 7", 0, "read of 7: EOF"},
		{"wrapping without a detail", core.Wrap(core.Canceled, context.Canceled, ""), core.Canceled, "", 0, "context canceled"},
		{"wrapped by others", fmt.Errorf("append: %w", full), core.Full, "no room", 3 * time.Second, "append: no room"},
		{"of two, the outer", core.Wrap(core.Conflict, full, "raced"), core.Conflict, "raced", 0, "raced: no room"},
		{"joined", errors.Join(io.EOF, full), core.Full, "no room", 3 * time.Second, "EOF\nno room"},
		{"empty", &core.Error{}, core.Internal, "", 0, ""},
		{"nil", nil, core.Internal, "", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.code, core.CodeOf(c.err))
			require.Equal(t, c.detail, core.DetailOf(c.err))
			require.Equal(t, c.after, core.RetryAfterOf(c.err))
			if c.err != nil {
				require.Equal(t, c.text, c.err.Error())
			}
		})
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	require.NoError(t, core.Wrap(core.Unavailable, nil, "read"), "nothing to wrap")
	require.ErrorIs(t, core.Wrap(core.Unavailable, io.EOF, "read"), io.EOF, "the cause stays to be found")
}

package coordinatortest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// Harness is how the suite gets at the coordinators of one adapter.
type Harness struct {
	Name string // of the adapter

	// Open opens a coordinator without records. t's cleanup ends it.
	Open func(t testing.TB) core.Coordinator
}

// test is one case of the suite.
type test struct {
	name string
	run  func(t *testing.T, p *probe)
}

// Run runs every case against new coordinators of h, and logs how many there were.
func Run(t *testing.T, h Harness) {
	t.Helper()
	var ran atomic.Int64
	t.Cleanup(func() { t.Logf("coordinatortest: %s: %d cases", h.Name, ran.Load()) })
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, &probe{t: t, c: h.Open(t)})
			ran.Add(1)
		})
	}
}

// probe is a coordinator under test.
type probe struct {
	t *testing.T
	c core.Coordinator
}

func (p *probe) change(name string, fn func(old []byte) ([]byte, error)) {
	p.t.Helper()
	require.NoError(p.t, p.c.Change(context.Background(), name, fn), "change of %q", name)
}

// put makes a record what is said.
func (p *probe) put(name string, record []byte) {
	p.t.Helper()
	p.change(name, func([]byte) ([]byte, error) { return record, nil })
}

// is checks what a record is; nil: there is none.
func (p *probe) is(name string, want []byte) {
	p.t.Helper()
	var got []byte
	err := p.c.Change(context.Background(), name, func(old []byte) ([]byte, error) {
		got = old
		return nil, errLook
	})
	require.Same(p.t, errLook, err, "an error comes back as it is")
	require.Equal(p.t, want, got, "record %q", name)
}

// errLook keeps a change from being one.
var errLook = core.Errorf(core.Conflict, "only a look")

package observers_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/observers"
)

func TestJoin(t *testing.T) {
	t.Parallel()
	var told []string
	tell := func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	whole := func(name string) *core.Observer {
		return &core.Observer{
			Events:      func(source, outcome string, n int) { tell("%s events %s %s %d", name, source, outcome, n) },
			Late:        func(buffer string, n int) { tell("%s late %s %d", name, buffer, n) },
			Breaker:     func(destination string, open bool) { tell("%s breaker %s %t", name, destination, open) },
			Shadow:      func(buffer, outcome string, n int) { tell("%s shadow %s %s %d", name, buffer, outcome, n) },
			Attempt:     func(a *core.Attempt) { tell("%s attempt %s", name, a.Batch) },
			DeadLetters: func(l *core.DeadLetter, n int) { tell("%s dead %s %s %d", name, l.Buffer, l.Reason, n) },
			Failed:      func(op string, err error) { tell("%s failed %s %v", name, op, err) },
		}
	}
	part := &core.Observer{Attempt: func(a *core.Attempt) { tell("part attempt %s", a.Batch) }}
	o := observers.Join(whole("a"), nil, part, &core.Observer{}, whole("b"))
	o.Events("web", "accepted", 3)
	o.Late("minutes", 4)
	o.Breaker("crm", true)
	o.Shadow("copy", "dropped", 5)
	o.Attempt(&core.Attempt{Batch: "x"})
	o.DeadLetters(&core.DeadLetter{Buffer: "orders", Reason: core.DeadPermanent}, 2)
	o.Failed("arm", errors.New("down"))
	require.Equal(t, []string{
		"a events web accepted 3", "b events web accepted 3",
		"a late minutes 4", "b late minutes 4",
		"a breaker crm true", "b breaker crm true",
		"a shadow copy dropped 5", "b shadow copy dropped 5",
		"a attempt x", "part attempt x", "b attempt x",
		"a dead orders permanent 2", "b dead orders permanent 2",
		"a failed arm down", "b failed arm down",
	}, told)
}

// TestJoinKnowsEveryFunction fails when an observer learns to tell of more.
func TestJoinKnowsEveryFunction(t *testing.T) {
	t.Parallel()
	v := reflect.ValueOf(*observers.Join())
	for i := range v.NumField() {
		require.Falsef(t, v.Field(i).IsNil(), "%s is not passed on", v.Type().Field(i).Name)
	}
}

func TestJoiningCostsNothing(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the whole process
	n := 0
	count := &core.Observer{Attempt: func(*core.Attempt) { n++ }}
	o := observers.Join(count, nil, count)
	a := core.Attempt{}
	require.Zero(t, testing.AllocsPerRun(100, func() { o.Attempt(&a) }))
	require.Positive(t, n)
}

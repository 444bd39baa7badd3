package awse2e

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/functions/internal/lambdatest"
	"sluice/functions/internal/scenario"
	"sluice/infra/awstest"
)

// The scenarios that Sluice passes wherever it runs, on AWS.
func TestE2EScenarios(t *testing.T) {
	awstest.DynamoDBURL(t) // or the test is skipped as a whole
	awstest.SQSURL(t)
	var mu sync.Mutex
	var steps []string // at which something has died, in any scenario
	t.Cleanup(func() {
		if t.Failed() || strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
			return // or not every scenario has run
		}
		all := strings.Join(steps, "\n")
		for _, name := range names {
			for _, f := range fates {
				if name == "receive" {
					continue // no scenario has a queue
				}
				if !regexp.MustCompile("(?m)^" + name + ": .*, " + f.name + "$").MatchString(all) {
					t.Errorf("%s had no fault of this kind: %s", name, f.name)
				}
			}
		}
	})
	scenario.Run(t, "AWS", func(t *testing.T, setup scenario.Setup) scenario.System {
		s := start(t, setup)
		t.Cleanup(func() {
			mu.Lock()
			defer mu.Unlock()
			steps = slices.AppendSeq(steps, maps.Keys(s.crashes.done))
			for _, name := range slices.Sorted(maps.Values(names)) {
				if inits := slices.Sorted(slices.Values(s.functions[name].Inits())); len(inits) > 0 {
					t.Logf("%s: %d cold starts, %v at best, %v at the median", name, len(inits), inits[0], inits[len(inits)/2])
				}
			}
		})
		return s
	})
}

// cloud is a stack as a scenario sees it.
type cloud struct{ *stack }

func start(t *testing.T, setup scenario.Setup) cloud {
	t.Helper()
	s := deploy(t, setup.Config)
	setup.Sink.Tap(func(at scenario.Stage) {
		if s.crashes.step("a batch is " + string(at)) { // sent by either
			s.functions["deliver"].Kill()
			s.functions["flush"].Kill()
		}
	})
	t.Cleanup(func() {
		setup.Sink.Tap(nil)
		if t.Failed() {
			t.Log(s.logs())
		}
	})
	return cloud{s}
}

func (c cloud) URL() string { return c.front.URL }

// Sweep is a run of the flush function. One that fails is not repeated: the
// next comes a minute later.
func (c cloud) Sweep(t testing.TB) {
	t.Helper()
	if answer, err := c.flush(t.Context()); err != nil {
		t.Logf("flush: %v %s", err, answer)
	}
}

// Lose deletes messages before their functions hear of them.
func (c cloud) Lose(t testing.TB, hints int, send func()) {
	t.Helper()
	lost := func() (n int) {
		for _, s := range c.sources {
			n += s.Lost()
		}
		return n
	}
	c.treat(lambdatest.Lose)
	send()
	require.Eventually(t, func() bool { return lost() >= hints }, scenario.Patience, 10*time.Millisecond)
	c.treat(lambdatest.Plain)
}

// Double has every message reach its function twice, at the same time.
func (c cloud) Double(testing.TB) (stop func()) {
	c.treat(lambdatest.Double)
	return func() { c.treat(lambdatest.Plain) }
}

func (c cloud) treat(how lambdatest.Treatment) {
	for _, s := range c.sources {
		s.Treat(how)
	}
}

func (c cloud) Crash() (died <-chan string, stop func()) { return c.crashes.arm() }

// State is what the control function says, and the logs of all.
func (c cloud) State() string {
	r, err := http.NewRequest(http.MethodGet, c.front.URL+"/v1/buffers", nil)
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Authorization", "Bearer "+scenario.Token)
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	return fmt.Sprintf("%s\n%s", text, c.logs())
}

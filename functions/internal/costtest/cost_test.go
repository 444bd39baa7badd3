package costtest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMillion prices a million events by the ways in which they come in.
func TestMillion(t *testing.T) {
	b := table{head: []string{"a million events", "DynamoDB", "SQS, Scheduler", "Lambda", "HTTP API", "logs", "storage", "**together**", "hard to compress"}}
	totals := map[string]float64{}
	for i := range ways {
		w := &ways[i]
		s, hard := deploy(t, w.instead), deploy(t, w.instead)
		u, v := w.use(s, order).times(million), w.use(hard, opaque).times(million)
		kept := s.deployed.retention
		totals[w.name] = u.cost(kept)
		b.rows = append(b.rows, []string{
			w.name, dollars(u.dynamoDB()), dollars(u.sqs() + u.scheduler()), dollars(u.lambda()), dollars(u.api()), dollars(u.logs()),
			dollars(u.storage(kept)), "**" + dollars(u.cost(kept)) + "**", dollars(v.cost(kept)),
		})
		require.Greater(t, v.cost(kept), u.cost(kept), "what is hard to compress costs more")
	}
	// What the page says beside the table.
	require.Less(t, totals["10 a POST"], totals["1 event a POST"]/4)
	require.Less(t, totals["10 a POST, leaving at a deadline of minutes"], 1.2*totals["10 a POST"])
	compare(t, "a million events", &b)
}

// TestSteps counts what each thing on a group's way asks for.
func TestSteps(t *testing.T) {
	compare(t, "steps", stepTable(append(steps(deploy(t, "")), windowSteps(deploy(t, windowed))...)))
}

func stepTable(steps []step) *table {
	b := table{head: []string{"step", "DynamoDB requests", "write units: table + indexes", "read units", "SQS requests", "a million of them"}}
	for _, p := range steps {
		b.rows = append(b.rows, []string{
			p.name, fmt.Sprintf("%.0f", p.calls), fmt.Sprintf("%.0f + %.0f", p.write, p.indexed), fmt.Sprintf("%.0f", p.read),
			fmt.Sprintf("%.0f", p.sent+p.polled), dollars(p.times(million).cost(0)),
		})
	}
	return &b
}

// TestIdle prices a month in which nothing happens.
func TestIdle(t *testing.T) {
	b := table{head: []string{"a month", "", "$"}}
	always, optional, more := idle(deploy(t, ""), deploy(t, rare))
	row := func(l line) { b.rows = append(b.rows, []string{l.what, l.why, dollars(l.dollars)}) }
	sum := 0.0
	for _, l := range always {
		row(l)
		sum += l.dollars
	}
	row(line{"**together**", "", sum})
	for _, l := range append(optional, more...) {
		row(l)
	}
	require.Less(t, sum, 1.5, "an idle stack costs next to nothing")
	compare(t, "a month", &b)
}

func dollars(d float64) string { return fmt.Sprintf("%.2f", d) }

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"sluice/core"
	"sluice/infra/embed"
)

const (
	letterPage  = 1000     // dead letters in memory at a time
	letterBytes = 32 << 20 // and their bytes
)

// holdings is what a data folder holds.
type holdings struct {
	buffers []core.BufferStats

	// Dead letters by their buffer and by their destination.
	lettersOf, lettersTo map[string]int64
}

// stored sums up what a data folder holds. Unavailable: a running system has it.
func stored(ctx context.Context, dir string) (*holdings, error) {
	store, err := embed.Open(dir, embed.Options{Sync: true}) //nolint:contextcheck // opening takes none
	if err != nil {
		return nil, err
	}
	h := &holdings{lettersOf: map[string]int64{}, lettersTo: map[string]int64{}}
	h.buffers, err = store.Stats(ctx)
	if err == nil {
		err = h.count(ctx, store.DeadLetters())
	}
	return h, errors.Join(err, store.Close())
}

// count counts dead letters.
func (h *holdings) count(ctx context.Context, q core.DeadLetterQueue) error {
	for from := ""; ; {
		letters, next, err := q.List(ctx, core.DeadLetterFilter{MaxBytes: letterBytes}, from, letterPage)
		if err != nil {
			return err
		}
		for i := range letters {
			h.lettersOf[letters[i].Buffer]++
			h.lettersTo[letters[i].Destination]++
		}
		if from = next; from == "" {
			return nil
		}
	}
}

// stray reports what a data folder holds for buffers and destinations that are
// not configured.
func (h *holdings) stray(dir string, c *core.Config) []core.Fault {
	events, buffers, destinations := map[string]int64{}, map[string]bool{}, map[string]bool{}
	for _, s := range h.buffers {
		name, _ := core.Held(s.Buffer)
		events[name] += s.Pending + s.Claimed
	}
	for i := range c.Buffers {
		buffers[c.Buffers[i].Name] = true
	}
	for i := range c.Destinations {
		destinations[c.Destinations[i].Name] = true
	}
	return slices.Concat(
		strays(dir, "buffers", buffers, "event", events, "they are kept, and delivered when the buffer is back"),
		strays(dir, "buffers", buffers, "dead letter", h.lettersOf, "they are kept until they are replayed"),
		strays(dir, "destinations", destinations, "dead letter", h.lettersTo, "replay them with --to, or configure it again"),
	)
}

// strays reports what there is of names that are not known.
func strays(dir, section string, known map[string]bool, what string, held map[string]int64, right string) []core.Fault {
	var faults []core.Fault
	for _, name := range slices.Sorted(maps.Keys(held)) {
		if n := held[name]; n > 0 && !known[name] {
			faults = append(faults, core.Fault{
				Path:    core.FieldPath(section, name),
				Problem: fmt.Sprintf("is not configured, but %s holds %s of it", dir, plural(n, what)),
				Right:   right,
			})
		}
	}
	return faults
}

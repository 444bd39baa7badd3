package cli

import (
	"context"
	"errors"

	"sluice/core"
	"sluice/infra/embed"
)

// stored sums up what a data folder holds. Unavailable: a running system has it.
func stored(ctx context.Context, dir string) ([]core.BufferStats, error) {
	store, err := embed.Open(dir, embed.Options{Sync: true}) //nolint:contextcheck // opening takes none
	if err != nil {
		return nil, err
	}
	stats, err := store.Stats(ctx)
	return stats, errors.Join(err, store.Close())
}

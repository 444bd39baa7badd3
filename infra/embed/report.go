package embed

import (
	"slices"
	"time"

	"sluice/core"
)

// Report is what a start found.
type Report struct {
	Fresh      bool   // the folder was empty
	Checkpoint bool   // a checkpoint was used
	Broken     string // why a checkpoint that is there could not be used, or ""

	Segments int   // files of the log that were read
	Bytes    int64 // of the log that were read
	Cut      int64 // bytes of a torn last commit, which nobody was told of as stored
	Damaged  []Damage
	Missing  []uint32 // segments whose files are not there
	Losses   []Loss   // items and dead letters that are gone with these

	Groups  int // restored
	Items   int64
	Letters int
	Took    time.Duration
}

// Damage is a range of the log that could not be read.
type Damage struct {
	File   string
	Offset int64
	Length int64
	// Torn says that it is part of the last commit, which a crash cuts short:
	// most likely nobody was told that it is stored.
	Torn bool
}

// Loss is what damage has taken: numbers of a group's log, or a dead letter.
type Loss struct {
	Ref      core.Ref
	Life     string
	From, To uint64 // both inclusive
	Letter   string // id of a dead letter; the other fields are then empty
}

// addLoss adds a number to losses.
func addLoss(losses []Loss, ref core.Ref, life string, seq uint64) []Loss {
	if n := len(losses); n > 0 {
		if l := &losses[n-1]; l.Ref == ref && l.Life == life && l.To+1 == seq {
			l.To = seq
			return losses
		}
	}
	return append(losses, Loss{Ref: ref, Life: life, From: seq, To: seq})
}

func (r *Report) missing(gen uint32) {
	if !slices.Contains(r.Missing, gen) {
		r.Missing = append(r.Missing, gen)
	}
}

// Report is what the start found. It does not change while the store is open.
func (s *Store) Report() Report {
	r := s.report
	r.Damaged, r.Missing, r.Losses = slices.Clone(r.Damaged), slices.Clone(r.Missing), slices.Clone(r.Losses)
	return r
}

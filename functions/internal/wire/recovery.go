package wire

import (
	"log/slog"

	"sluice/infra/embed"
)

// tell logs what a start has found in the store: one line when all is well,
// and one for each thing that is not.
func tell(log *slog.Logger, r *embed.Report) {
	log.Info("store opened", "groups", r.Groups, "items", r.Items, "deadLetters", r.Letters,
		"checkpoint", r.Checkpoint, "segments", r.Segments, "bytesRead", r.Bytes, "ms", r.Took.Milliseconds())
	if r.Cut > 0 {
		log.Warn("the log's last commit was cut short, as a crash leaves it; nobody was told that it is stored", "bytes", r.Cut)
	}
	if r.Broken != "" {
		log.Error("the checkpoint cannot be used; what was settled before it may be delivered again", "reason", r.Broken)
	}
	for _, d := range r.Damaged {
		log.Error("damage in the store", "file", d.File, "offset", d.Offset, "bytes", d.Length, "inLastCommit", d.Torn)
	}
	for _, gen := range r.Missing {
		log.Error("a file of the store is missing", "segment", gen)
	}
	for _, l := range r.Losses {
		tellLoss(log, l)
	}
}

// tellLoss logs what damage has taken.
func tellLoss(log *slog.Logger, l embed.Loss) {
	if l.Letter != "" {
		log.Error("a dead letter was lost to damage on disk", "id", l.Letter)
		return
	}
	log.Error("items were lost to damage on disk", "buffer", l.Ref.Buffer, "group", l.Ref.Key, "life", l.Life, "from", l.From, "to", l.To)
}

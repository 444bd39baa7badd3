package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	barWidth = 30
	// barEvery is how often a bar is drawn at most.
	barEvery = 100 * time.Millisecond
)

// bar is a progress bar in one line of a terminal. A nil one draws nothing.
type bar struct {
	w     io.Writer
	now   func() time.Time
	total int64 // bytes; 0: not known

	bytes  int64
	events int
	begun  time.Time
	drawn  time.Time
}

// bar makes a progress bar on stderr, or nil if that is no terminal to draw on.
func (p *program) bar(total int64) *bar {
	if !p.lively(p.stderr) {
		return nil
	}
	return &bar{w: p.stderr, now: p.now, total: total, begun: p.now()}
}

func (b *bar) add(bytes int64, events int) {
	if b == nil {
		return
	}
	b.bytes += bytes
	b.events += events
	if now := b.now(); now.Sub(b.drawn) >= barEvery {
		b.drawn = now
		fmt.Fprint(b.w, "\r\x1b[K"+b.line(now.Sub(b.begun)))
	}
}

// line is the bar after some time.
func (b *bar) line(took time.Duration) string {
	rate := ""
	if took > 0 {
		rate = fmt.Sprintf(" (%s/s)", count(int64(float64(b.events)/took.Seconds())))
	}
	counted := plural(b.events, "event") + rate
	if b.total <= 0 {
		return counted + ", " + size(b.bytes)
	}
	done := min(1, float64(b.bytes)/float64(b.total))
	full := int(done * barWidth)
	return fmt.Sprintf("%s%s %3.0f%%  %s", strings.Repeat("█", full), strings.Repeat("░", barWidth-full), done*100, counted)
}

// clear takes the bar off the screen.
func (b *bar) clear() {
	if b != nil && !b.drawn.IsZero() {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// table writes rows in aligned columns. Columns whose head ends in > are
// aligned to the right.
func table(w io.Writer, c paint, heads []string, rows [][]string) {
	right := make([]bool, len(heads))
	widths := make([]int, len(heads))
	titles := make([]string, len(heads))
	for i, h := range heads {
		titles[i], right[i] = strings.CutSuffix(h, ">")
		widths[i] = utf8.RuneCountInString(titles[i])
		for _, row := range rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	line := func(cells []string) string {
		var b strings.Builder
		for i, s := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(s))
			if right[i] {
				s = pad + s
			} else {
				s += pad
			}
			b.WriteString(s + "  ")
		}
		return strings.TrimRight(b.String(), " ")
	}
	fmt.Fprintln(w, c.bold(line(titles)))
	for _, row := range rows {
		fmt.Fprintln(w, line(row))
	}
}

// count is n with its thousands apart: 12,000.
func count[N ~int | ~int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural is "1 event" or "2 events".
func plural[N ~int | ~int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return count(n) + " " + what + "s"
}

// size is n bytes for people, in units of 1,024: 1.5 MiB.
func size(n int64) string {
	const unit = 1 << 10
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, prefix := float64(n), ""
	for _, prefix = range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		if v /= unit; v < unit {
			break
		}
	}
	if v < 10 {
		return fmt.Sprintf("%.1f %s", v, prefix)
	}
	return fmt.Sprintf("%.0f %s", v, prefix)
}

// age is a time span for people, in its two largest units: 3m 20s.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd %dh", d/day, d%day/time.Hour)
}

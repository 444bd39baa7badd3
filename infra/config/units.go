package config

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sluice/core"
)

const (
	sizePattern     = `^[0-9]+(B|KB|KiB|MB|MiB|GB|GiB)$`
	durationPattern = `^([0-9]+(\.[0-9]+)?(d|h|m|s|ms))+$`
)

var (
	durations    = regexp.MustCompile(durationPattern)
	durationPart = regexp.MustCompile(`[0-9.]+(ms|d|h|m|s)`)
)

// parseSize reads a number of bytes with a unit, such as 4MiB. A KB is 1,024
// bytes, as a KiB is.
func parseSize(s string) (int64, bool) {
	digits := strings.TrimRight(s, "BKMGi")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || digits[0] < '0' || digits[0] > '9' {
		return 0, false
	}
	var unit int64
	switch s[len(digits):] {
	case "B":
		unit = 1
	case "KB", "KiB":
		unit = core.KiB
	case "MB", "MiB":
		unit = core.MiB
	case "GB", "GiB":
		unit = 1 << 30
	default:
		return 0, false
	}
	return n * unit, n <= math.MaxInt64/unit
}

// parseDuration reads a sum of times with units, such as 1h30m or 7d. A day
// has 24 hours.
func parseDuration(s string) (time.Duration, bool) {
	if !durations.MatchString(s) {
		return 0, false
	}
	var sum int64 // nanoseconds
	for _, part := range durationPart.FindAllString(s, -1) {
		number, isDays := strings.CutSuffix(part, "d")
		scale := int64(1)
		if isDays {
			part, scale = number+"h", 24
		}
		v, err := time.ParseDuration(part)
		if err != nil || int64(v) > (math.MaxInt64-sum)/scale {
			return 0, false
		}
		sum += int64(v) * scale
	}
	return time.Duration(sum), true
}

package emf

import "strings"

const (
	// maxLabel bounds the value of a dimension, in bytes. CloudWatch takes
	// 1,024; configured names are far below both.
	maxLabel = 255
	// none stands for a value with nothing in it, which CloudWatch refuses.
	none = "none"
)

// dimensionValue is s as CloudWatch takes it: printable ASCII, at most
// maxLabel bytes, with something other than space in it. One line that breaks
// this loses all its metrics.
func dimensionValue(s string) string {
	if plain(s) {
		return s
	}
	clean := strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s))
	clean = strings.TrimSpace(clean[:min(len(clean), maxLabel)])
	if clean == "" {
		return none
	}
	return clean
}

// plain reports whether s needs no cleaning.
func plain(s string) bool {
	if s == "" || len(s) > maxLabel {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

package config

import "strings"

// nearest is the known name that a misspelled one is closest to, or "" if none
// is close: a third of the letters may differ, and case, - and _ do not count.
func nearest(name string, known []string) string {
	const longest = 40 // no known name comes near
	best, least := "", longest
	word := folded(name)
	if len(word) > longest {
		return ""
	}
	for _, k := range known {
		other := folded(k)
		d := distance(word, other)
		if d < least && d <= max(len(word), len(other))/3 {
			best, least = k, d
		}
	}
	return best
}

var separators = strings.NewReplacer("-", "", "_", "")

func folded(name string) string { return separators.Replace(strings.ToLower(name)) }

// distance is how many bytes must be put in, taken out, replaced, or changed with
// the next to make b of a, none of them twice.
//
// Source: optimal string alignment, of F. Damerau's distance, 1964, in R. Wagner
// and M. Fischer's form, 1974.
func distance(a, b string) int {
	above, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			cost := row[j]
			if a[i] != b[j] {
				cost++
			}
			next[j+1] = min(cost, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], above[j-1]+1)
			}
		}
		above, row, next = row, next, above
	}
	return row[len(b)]
}

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

// distance is how many bytes must be put in, taken out or replaced to make b of a.
//
// Source: V. Levenshtein, 1966; in R. Wagner and M. Fischer's form, 1974.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

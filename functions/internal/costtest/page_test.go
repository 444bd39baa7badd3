package costtest

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the tables of docs/aws.md anew")

// table is one of the page's.
type table struct {
	head []string
	rows [][]string
}

// markdown is the table as it stands in the page.
func (b *table) markdown() string {
	var text strings.Builder
	write := func(cells []string) { text.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	write(b.head)
	text.WriteString(strings.Repeat("|---", len(b.head)) + "|\n")
	for _, r := range b.rows {
		write(r)
	}
	return text.String()
}

// compare holds what is counted against what the page says between the markers
// of a name, or with -update makes the page say it.
func compare(t *testing.T, name string, b *table) {
	t.Helper()
	path := filepath.Join(root, "docs", "aws.md")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	begin, end := "<!-- "+name+", by functions/internal/costtest -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(string(data), begin)
	require.True(t, ok, "docs/aws.md has no marker %q", begin)
	was, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "docs/aws.md has no marker %q behind %q", end, begin)
	is := b.markdown()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(before+begin+is+end+after), 0o600))
		return
	}
	if d := difference(was, is); d != "" {
		t.Errorf("docs/aws.md does not say what %s cost: %s\n%s\nrun go test ./functions/internal/costtest -update, and read what is beside the table", name, d, is)
	}
}

// figures matches the numbers of a text.
var figures = regexp.MustCompile(`\d[\d,]*(\.\d+)?`)

// difference says in what two tables differ: in their words, or in a figure by
// more than chance makes it. Ids, which are drawn anew, compress a little
// better or worse.
func difference(was, is string) string {
	if w, i := figures.ReplaceAllString(was, "#"), figures.ReplaceAllString(is, "#"); w != i {
		return "its words have changed"
	}
	old := figures.FindAllString(was, -1)
	for i, text := range figures.FindAllString(is, -1) {
		if a, b := value(old[i]), value(text); math.Abs(a-b) > 0.0101+0.03*b {
			return old[i] + " is now " + text
		}
	}
	return ""
}

func value(text string) float64 {
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

func TestDifference(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, was, is, want string }{
		{"the same", "| a | 1.00 |", "| a | 1.00 |", ""},
		{"chance", "| a | 1.00 | 0.01 |", "| a | 1.03 | 0.02 |", ""},
		{"more", "| a | 1.00 |", "| a | 1.06 |", "1.00 is now 1.06"},
		{"less", "| a | 2 |", "| a | 1 |", "2 is now 1"},
		{"many", "| a | 43,200 |", "| a | 86,400 |", "43,200 is now 86,400"},
		{"words", "| a | 1.00 |", "| b | 1.00 |", "its words have changed"},
		{"another row", "| a | 1 |\n", "| a | 1 |\n| b | 1 |\n", "its words have changed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, difference(tt.was, tt.is))
		})
	}
}

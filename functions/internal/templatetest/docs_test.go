package templatetest

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/functions/internal/language"
	"sluice/infra/config"
	"sluice/infra/emf"
)

// block is a block of YAML, with what indents it.
var block = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")

// pages are README.md and all of docs, relative to the root.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	names := []string{"README.md"}
	for _, path := range found {
		names = append(names, "docs/"+filepath.Base(path))
	}
	return names
}

// TestConfigsOfThePages: whoever copies a configuration from a page has one with
// neither faults nor warnings, and each page that shows a part shows a whole one.
func TestConfigsOfThePages(t *testing.T) {
	t.Parallel()
	for _, name := range pages(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			blocks := block.FindAllSubmatch(read(t, name), -1)
			whole := 0
			for _, b := range blocks {
				text := strings.ReplaceAll("\n"+string(b[2]), "\n"+string(b[1]), "\n")
				if !strings.Contains(text, "\nsources:") || !strings.Contains(text, "\nbuffers:") {
					continue
				}
				whole++
				r := config.Parse(name, []byte(text), language.Broken)
				require.Empty(t, r.Faults, text)
				require.Empty(t, r.Warnings, text)
			}
			require.Equal(t, len(blocks) > 0, whole > 0, "no whole configuration")
		})
	}
}

// TestMetricsOfTheRunbook: its table has every metric with its labels, and none
// that there is not.
func TestMetricsOfTheRunbook(t *testing.T) {
	t.Parallel()
	quoted := regexp.MustCompile("`([a-z_]+)`")
	_, text, ok := strings.Cut(string(read(t, "docs/runbook.md")), "\n## Metrics\n")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "\n## ")
	said := make(map[string][]string)
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.HasPrefix(cells[1], " `sluice_") {
			continue
		}
		var labels []string
		for _, m := range quoted.FindAllStringSubmatch(cells[2], -1) {
			labels = append(labels, m[1])
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			said[m[1]] = labels
		}
	}
	is := make(map[string][]string)
	for _, d := range emf.Definitions() {
		is[d.Name] = d.Labels
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(is)), slices.Collect(maps.Keys(said)))
	for name, labels := range is {
		require.ElementsMatch(t, labels, said[name], name)
	}
}

package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core/render"
)

// long is an object of n bytes that is nearly all one string.
func long(n int) string { return `{"key":"k00000001","pad":"` + strings.Repeat("x", n-28) + `"}` }

// dense is an object of about n bytes with many small members.
func dense(n int) string {
	var b strings.Builder
	b.WriteString(`{"key":"k00000001"`)
	for i := 0; b.Len() < n-40; i++ {
		fmt.Fprintf(&b, `,"f%d":%d,"g%d":"v%d","h%d":[%d,true,null]`, i, i*7919, i, i, i, i)
	}
	return b.String() + `}`
}

func BenchmarkExecute(b *testing.B) {
	for _, text := range []string{"{{ .json.key }}", "{{ .source }}/{{ .json.key }}", "{{ if true }}{{ .json.key }}{{ end }}"} {
		for _, body := range []struct{ name, text string }{
			{"long 1KB", long(1 << 10)}, {"dense 1KB", dense(1 << 10)}, {"long 100KB", long(100 << 10)}, {"dense 100KB", dense(100 << 10)},
		} {
			b.Run(text+" on "+body.name, func(b *testing.B) {
				tmpl, err := render.Compile(text)
				require.NoError(b, err)
				in := &fixed{b: []byte(body.text)}
				b.SetBytes(int64(len(in.b)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := tmpl.Execute(in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

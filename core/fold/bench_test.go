package fold_test

import (
	"testing"

	"sluice/core/fold"
)

func BenchmarkAdd(b *testing.B) {
	for _, body := range []struct{ name, text string }{
		{"integers", `{"customer":"c00001","amount":1250,"ms":37}`},
		{"floats", `{"customer":"c00001","amount":0.1234567890123456,"ms":37.25}`},
		{"large", `{"customer":"c00001","amount":123456789012345678901234567890,"ms":1e300}`},
	} {
		b.Run(body.name, func(b *testing.B) {
			table := compile(b, "count", "sum .json.amount", "max .json.ms").Table(window)
			in := &known{b: []byte(body.text)}
			b.ReportAllocs()
			for b.Loop() {
				table.Add("acme", in, 1)
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	f := compile(b, "count", "sum .json.amount", "max .json.ms")
	in := &known{b: []byte(`{"customer":"c00001","amount":1250,"ms":37}`)}
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Check(in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRows(b *testing.B) {
	table := compile(b, "count", "sum .json.amount", "last .json.plan").Table(fold.Window{Buffer: "usage", EndMs: 60_000})
	for i := range 1000 {
		table.Add(string(rune(i)), &known{b: []byte(`{"amount":12.5,"plan":{"name":"pro"}}`)}, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		table.Rows()
	}
}

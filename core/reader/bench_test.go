package reader_test

import (
	"strings"
	"testing"

	"sluice/core/reader"
)

// BenchmarkArray and BenchmarkLines read a hundred events of 1 KB.
func BenchmarkArray(b *testing.B) { benchmark(b, reader.Array, "[", ",", "]") }
func BenchmarkLines(b *testing.B) { benchmark(b, reader.Lines, "", "\n", "\n") }

func benchmark(b *testing.B, read func([]byte, int) ([]reader.Element, error), open, between, shut string) {
	b.Helper()
	event := `{"key":"k00000001","pad":"` + strings.Repeat("x", 996) + `"}`
	body := []byte(open + strings.Repeat(event+between, 99) + event + shut)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if got, err := read(body, 100); err != nil || len(got) != 100 {
			b.Fatal(len(got), err)
		}
	}
}

func BenchmarkCloudEventID(b *testing.B) {
	text := []byte(`{"specversion":"1.0","id":"A-1","source":"/s","type":"t","data":{"key":"k00000001","pad":"` + strings.Repeat("x", 900) + `"}}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reader.CloudEventID(text); err != nil {
			b.Fatal(err)
		}
	}
}

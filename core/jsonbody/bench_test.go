package jsonbody_test

import (
	"fmt"
	"strings"
	"testing"

	"sluice/core/jsonbody"
)

// long is an object of n bytes that is nearly all one string.
func long(n int) []byte {
	return []byte(`{"key":"k00000001","pad":"` + strings.Repeat("x", n-28) + `"}`)
}

// dense is an object of about n bytes with many small members.
func dense(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"key":"k00000001"`)
	for i := 0; b.Len() < n-40; i++ {
		fmt.Fprintf(&b, `,"f%d":%d,"g%d":"v%d","h%d":[%d,true,null]`, i, i*7919, i, i, i, i)
	}
	return []byte(b.String() + `}`)
}

// spaced is dense, laid out for people.
func spaced(n int) []byte {
	return []byte(strings.NewReplacer(",", ",\n    ", ":", ": ").Replace(string(dense(n * 7 / 10))))
}

func bodies() map[string][]byte {
	return map[string][]byte{
		"long 1KB": long(1 << 10), "dense 1KB": dense(1 << 10), "spaced 1KB": spaced(1 << 10),
		"escaped 1KB": append(dense(1 << 10)[:len(dense(1<<10))-1], `,"umlaut":"\u00e4"}`...),
		"long 100KB":  long(100 << 10), "dense 100KB": dense(100 << 10),
	}
}

func BenchmarkValid(b *testing.B) {
	for name, body := range bodies() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if !jsonbody.Valid(body) {
					b.Fatal("not valid")
				}
			}
		})
	}
}

func BenchmarkMember(b *testing.B) {
	for name, body := range bodies() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if string(jsonbody.Member(body, "key")) != `"k00000001"` {
					b.Fatal("not found")
				}
			}
		})
	}
}

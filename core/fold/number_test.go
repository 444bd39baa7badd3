package fold

import (
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core/jsonbody"
)

// FuzzNumber shows that what is a number to package jsonbody is either refused
// for what is too much about it, or summed and compared exactly.
func FuzzNumber(f *testing.F) {
	for _, s := range []string{
		"0", "-0", "-0.0e-0", "1", "0.1", "1.50", "1e2", "1E+2", "9223372036854775807", "-9223372036854775808", "0.30000000000000004",
		"999999999999999999", "1000000000000000000", "1e400", "9.9e400", "1e401", "1e-400", "1e-401", "1e99999999999999999999", "0e9999999999",
		"1e0000000000000000000001", strings.Repeat("1", 100), strings.Repeat("1", 101), "1" + strings.Repeat("0", 200), "0." + strings.Repeat("0", 300) + "1",
		"123456789012345678.5", "-100000000000000000.00", "1.7976931348623157e308", "x", "[1]",
	} {
		f.Add(s, "0.1")
		f.Add("-12345678901234567890", s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, okX := fuzzed(t, a)
		y, okY := fuzzed(t, b)
		if !okX || !okY {
			return
		}
		p, q := fraction(t, a), fraction(t, b)
		require.Equal(t, p.Cmp(q), x.cmp(&y), "%s and %s", a, b)
		require.Equal(t, q.Cmp(p), y.cmp(&x), "%s and %s", a, b)
		for _, order := range [][]number{{x}, {x, y}, {y, x}, {x, y, x, x}} {
			var d decimal
			want := new(big.Rat)
			for i := range order {
				d.add(order[i])
				if order[i].cmp(&x) == 0 {
					want.Add(want, p)
				} else {
					want.Add(want, q)
				}
			}
			text := string(d.append(nil))
			require.True(t, jsonbody.Valid([]byte(text)), text)
			require.Zero(t, want.Cmp(fraction(t, text)), "%s, of %s and %s", text, a, b)
			require.Zero(t, want.Cmp(d.rat()))
			require.True(t, jsonbody.Valid(appendRounded(nil, d.rat())))
		}
	})
}

// fuzzed is a text as a number. It is refused if and only if it is none, or
// beyond the bounds, which are found here in another way.
func fuzzed(t *testing.T, text string) (number, bool) {
	x, err := parseNumber([]byte(text))
	isNumber := jsonbody.Valid([]byte(text)) && jsonbody.KindOf([]byte(text)) == jsonbody.Number
	if trimmed := jsonbody.Trim([]byte(text)); len(trimmed) != len(text) {
		return x, false // no part of a payload has spaces around it
	}
	if !isNumber {
		require.Error(t, err)
		return x, false
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(text, "-")), "e")
	digits := strings.Trim(strings.ReplaceAll(mantissa, ".", ""), "0")
	switch {
	case len(text) > maxWritten:
		require.ErrorContains(t, err, "bytes")
	case digits == "":
		require.NoError(t, err)
	case len(digits) > maxDigits:
		require.ErrorContains(t, err, "significant digits")
	case err != nil:
		require.ErrorContains(t, err, "is too")
		if size := new(big.Rat).Abs(nearFraction(text)); size.Sign() != 0 {
			require.True(t, size.Cmp(least) < 0 || size.Cmp(most) >= 0, text)
		}
	default:
		size := new(big.Rat).Abs(fraction(t, text))
		require.True(t, size.Cmp(least) >= 0 && size.Cmp(most) < 0, text)
	}
	return x, err == nil
}

var (
	least, _ = new(big.Rat).SetString("1e-400")
	most, _  = new(big.Rat).SetString("1e401")
)

func fraction(t *testing.T, text string) *big.Rat {
	t.Helper()
	if x, err := parseNumber([]byte(text)); err == nil && x.digits == 0 {
		return new(big.Rat) // big.Rat would raise ten to the power of any exponent
	}
	r, ok := new(big.Rat).SetString(text)
	require.True(t, ok, text)
	return r
}

// nearFraction is a number as a fraction, or 0 when its exponent has more than
// four digits.
func nearFraction(text string) *big.Rat {
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if len(strings.TrimLeft(exponent, "+-0")) > 4 {
		return new(big.Rat)
	}
	r, _ := new(big.Rat).SetString(text)
	return r
}

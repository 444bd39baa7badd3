package fold

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"strconv"

	"sluice/core/jsonbody"
)

// The bounds of a number.
const (
	maxDigits   = 100 // significant ones
	maxExponent = 400 // of ten, as in 1.5e400; and the least one is its negative
	maxWritten  = 512 // bytes, which leaves room for all such numbers written out
)

// smallDigits is how many digits every int64 can hold.
const smallDigits = 18

// powers are those of ten that an int64 can hold.
var powers = func() (p [smallDigits + 1]int64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// number is an exact decimal: its digits, none of them a zero at either end,
// times ten to the power of exp. Zero has no digits.
type number struct {
	negative bool
	small    int64  // the digits, if they are at most smallDigits
	large    []byte // or else as text
	digits   int    // how many
	exp      int
}

// parseNumber reads a JSON number. The error says what about it is too much.
func parseNumber(raw []byte) (number, error) {
	if len(raw) > maxWritten {
		return number{}, fmt.Errorf("is a number of %d bytes; it may have %d", len(raw), maxWritten)
	}
	if jsonbody.KindOf(raw) != jsonbody.Number || !jsonbody.Valid(raw) {
		return number{}, errors.New("is no number")
	}
	x := number{negative: raw[0] == '-'}
	mantissa, exponent := raw, []byte(nil)
	if i := bytes.IndexAny(raw, "eE"); i >= 0 {
		mantissa, exponent = raw[:i], raw[i+1:]
	}
	x.scan(mantissa)
	if x.digits == 0 {
		return number{}, nil
	}
	if x.digits > maxDigits {
		return number{}, fmt.Errorf("has %d significant digits; it may have %d", x.digits, maxDigits)
	}
	x.exp += parseExponent(exponent)
	if first := x.exp + x.digits - 1; first > maxExponent || first < -maxExponent {
		return number{}, fmt.Errorf("is too %s; it may be 0, or from 1e-%d to below 1e%d in size", farFrom0(first), maxExponent, maxExponent+1)
	}
	if x.digits > smallDigits {
		x.large = significant(mantissa, x.digits)
		x.small = 0
	}
	return x, nil
}

func farFrom0(exponent int) string {
	if exponent < 0 {
		return "small"
	}
	return "large"
}

// scan takes digits, small and exp from what stands before an exponent.
func (x *number) scan(mantissa []byte) {
	zeros, fraction, point := 0, 0, false
	for _, c := range mantissa {
		if c == '.' {
			point = true
			continue
		}
		if c-'0' > 9 {
			continue // the sign
		}
		if point {
			fraction++
		}
		switch {
		case c != '0':
			x.digits += zeros + 1
			if x.digits <= smallDigits {
				x.small = x.small*powers[zeros+1] + int64(c-'0')
			}
			zeros = 0
		case x.digits > 0:
			zeros++
		}
	}
	x.exp = zeros - fraction
}

// significant is the first n digits from the first that is no zero.
func significant(mantissa []byte, n int) []byte {
	digits := make([]byte, 0, n)
	for _, c := range mantissa {
		if c-'0' <= 9 && (c != '0' || len(digits) > 0) && len(digits) < n {
			digits = append(digits, c)
		}
	}
	return digits
}

// parseExponent reads an exponent; one beyond 24 bits is as good as the largest
// of these. None is 0.
func parseExponent(s []byte) int {
	if len(s) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(string(s), 10, 24) // with an error it is the largest
	return int(n)
}

func (x *number) sign() int {
	switch {
	case x.digits == 0:
		return 0
	case x.negative:
		return -1
	}
	return 1
}

// cmp compares two numbers: -1, 0 or 1.
func (x *number) cmp(y *number) int {
	s := x.sign()
	if c := cmp.Compare(s, y.sign()); c != 0 {
		return c
	}
	return s * x.cmpSize(y)
}

// cmpSize compares two numbers of one sign by how far they are from 0.
func (x *number) cmpSize(y *number) int {
	if c := cmp.Compare(x.exp+x.digits, y.exp+y.digits); c != 0 {
		return c
	}
	if x.large != nil || y.large != nil {
		// Both begin at the same place and end in no zero: digits compare as text.
		return bytes.Compare(x.text(), y.text())
	}
	if x.exp < y.exp {
		return cmp.Compare(x.small, y.small*powers[y.exp-x.exp])
	}
	return cmp.Compare(x.small*powers[x.exp-y.exp], y.small)
}

// text is the digits.
func (x *number) text() []byte {
	if x.large != nil {
		return x.large
	}
	return strconv.AppendInt(nil, x.small, 10)
}

// set sets z to the digits, with their sign.
func (x *number) set(z *big.Int) {
	if x.large == nil {
		z.SetInt64(x.small)
	} else {
		z.SetString(string(x.large), 10)
	}
	if x.negative {
		z.Neg(z)
	}
}

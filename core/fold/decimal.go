package fold

import (
	"math"
	"math/big"
	"strconv"
)

// decimal is an exact sum: small, or large once an int64 can't hold it, times
// ten to the power of exp. Its zero value is 0.
type decimal struct {
	small int64
	exp   int
	large *big.Int
	term  *big.Int // what was added last; kept for its room
}

func (d *decimal) add(x number) {
	if x.digits == 0 || d.large == nil && x.large == nil && d.addSmall(x) {
		return
	}
	if d.large == nil {
		d.large, d.term = big.NewInt(d.small), new(big.Int)
	}
	x.set(d.term)
	exp := min(d.exp, x.exp)
	raise(d.large, d.exp-exp)
	raise(d.term, x.exp-exp)
	d.large.Add(d.large, d.term)
	d.exp = exp
}

// addSmall adds within an int64, and reports whether that could be done.
func (d *decimal) addSmall(x number) bool {
	term := x.small
	if x.negative {
		term = -term
	}
	if d.small == 0 {
		d.small, d.exp = term, x.exp
		return true
	}
	exp := min(d.exp, x.exp)
	total, ok := raised(d.small, d.exp-exp)
	if !ok {
		return false
	}
	if term, ok = raised(term, x.exp-exp); !ok {
		return false
	}
	if term > 0 && total > math.MaxInt64-term || term < 0 && total < -math.MaxInt64-term {
		return false
	}
	d.small, d.exp = total+term, exp
	return true
}

// raised is v times ten to the power of n, and whether an int64 can hold it.
func raised(v int64, n int) (int64, bool) {
	if n == 0 {
		return v, true
	}
	if n > smallDigits {
		return 0, false
	}
	if most := math.MaxInt64 / powers[n]; v > most || v < -most {
		return 0, false
	}
	return v * powers[n], true
}

// raise multiplies z by ten to the power of n, in place, a word at a time.
func raise(z *big.Int, n int) {
	if n == 0 {
		return
	}
	var word big.Int
	for ; n > 0; n -= smallDigits {
		z.Mul(z, word.SetInt64(powers[min(n, smallDigits)]))
	}
}

// coefficient is what exp is of.
func (d *decimal) coefficient() *big.Int {
	if d.large != nil {
		return d.large
	}
	return big.NewInt(d.small)
}

// rat is the sum as a fraction.
func (d *decimal) rat() *big.Rat {
	above, below := new(big.Int).Set(d.coefficient()), big.NewInt(1)
	raise(above, max(d.exp, 0))
	raise(below, max(-d.exp, 0))
	return new(big.Rat).SetFrac(above, below)
}

// plainDigits is how many digits a sum may need zeros to, in plain writing.
const plainDigits = 21

// append writes the sum as JSON.
func (d *decimal) append(b []byte) []byte {
	digits := d.coefficient().Append(nil, 10)
	if digits[0] == '-' {
		b, digits = append(b, '-'), digits[1:]
	}
	exp := d.exp
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		exp++
	}
	n := len(digits)
	point := n + exp // where it stands, counted from the first digit
	switch {
	case n == 0:
		return append(b, '0')
	case exp > 0 && point > plainDigits, point <= 0 && 1-exp > plainDigits:
		b = appendPoint(b, digits, 1)
		return strconv.AppendInt(append(b, 'e'), int64(point-1), 10)
	case exp >= 0:
		return appendZeros(append(b, digits...), exp)
	case point > 0:
		return appendPoint(b, digits, point)
	}
	return append(appendZeros(append(b, "0."...), -point), digits...)
}

// appendPoint writes digits with a point behind the first n, if more follow.
func appendPoint(b, digits []byte, n int) []byte {
	b = append(b, digits[:n]...)
	if n < len(digits) {
		b = append(append(b, '.'), digits[n:]...)
	}
	return b
}

func appendZeros(b []byte, n int) []byte {
	for range n {
		b = append(b, '0')
	}
	return b
}

// leastNormal is the least that a float64 has all its digits for.
const leastNormal = 0x1p-1022

// appendRounded writes r rounded to the nearest float64, or to 17 significant
// digits where a float64 can't hold it in full.
func appendRounded(b []byte, r *big.Rat) []byte {
	f, _ := r.Float64()
	size := math.Abs(f)
	switch {
	case r.Sign() == 0:
		return append(b, '0')
	case math.IsInf(f, 0) || size < leastNormal:
		const digits, precision = 17, 256
		return new(big.Float).SetPrec(precision).SetRat(r).Append(b, 'g', digits)
	case size < 1e-6 || size >= 1e21:
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

package strictjson

import (
	"strconv"
	"strings"
)

// maxPlainDigits is the maximum number of digits of a number written without an exponent,
// unless that form is shorter, or is the one in the source.
const maxPlainDigits = 21

// ShortNumber writes a JSON number in its shortest exact decimal form: 1.0 → 1,
// 1e3 → 1000, 0.50 → 0.5, -0 → 0. It loses no significant digit, unlike a conversion to
// float64 and back.
func ShortNumber(s string) string {
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil {
			return s // exceeds maxExponent, so the parser refuses it
		}
		mantissa, exponent = s[:i], e
	} else if !strings.Contains(s, ".") {
		if s == "-0" {
			return "0"
		}
		return s
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	point := len(whole) + exponent // the decimal point is before digits[point]

	trimmed := strings.TrimLeft(digits, "0")
	point -= len(digits) - len(trimmed)
	digits = strings.TrimRight(trimmed, "0")
	if digits == "" {
		return "0"
	}
	short := digits[:1]
	if len(digits) > 1 {
		short += "." + digits[1:]
	}
	short += "e" + strconv.Itoa(point-1)
	// Include the length of the short form, so that the result is stable: writing it again
	// gives the same text.
	most := max(maxPlainDigits, len(strings.TrimPrefix(s, "-")), len(short))
	var out string
	switch {
	case point >= len(digits) && point <= most:
		out = digits + strings.Repeat("0", point-len(digits))
	case point > 0 && point < len(digits):
		out = digits[:point] + "." + digits[point:]
	case point <= 0 && len(digits)-point <= most:
		out = "0." + strings.Repeat("0", -point) + digits
	default:
		out = short
	}
	if negative {
		out = "-" + out
	}
	return out
}

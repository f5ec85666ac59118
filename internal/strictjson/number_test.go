package strictjson

import (
	"math/big"
	"testing"
)

func TestShortNumber(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "-0.0e5": "0", "1.0": "1", "1e3": "1000", "1E+3": "1000", "1.5e1": "15", "-1.50": "-1.5",
		"0.1": "0.1", "1e-3": "0.001", "123.456e1": "1234.56", "12345678901234567890.5": "12345678901234567890.5",
		"1e21": "1e21", "1e20": "100000000000000000000", "1.25e300": "1.25e300", "1e-300": "1e-300", "-25e-1": "-2.5",
		"123456789012345678901234567890": "123456789012345678901234567890", "100": "100", "0.30": "0.3",
	} {
		if got := ShortNumber(in); got != want {
			t.Errorf("shortNumber(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzShortNumber(f *testing.F) {
	for _, s := range []string{"0", "-1.50", "1e3", "12.5e-7", "1e300", "0.00001e9", "1000000000000000001e3", "-10000000000000000000010e1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, e := Parse([]byte(s))
		if e != nil || n.Kind != Number {
			return
		}
		short := ShortNumber(n.Text)
		want, _ := new(big.Rat).SetString(n.Text)
		got, ok := new(big.Rat).SetString(short)
		if !ok || got.Cmp(want) != 0 {
			t.Errorf("shortNumber(%q) = %q, another number", n.Text, short)
		}
		if again := ShortNumber(short); again != short {
			t.Errorf("shortNumber(%q) = %q, want %q", short, again, short)
		}
	})
}

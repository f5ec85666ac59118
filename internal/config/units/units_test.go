package units

import "testing"

func TestSizes(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "10000": 10_000, "16KiB": 16 << 10, "64 MiB": 64 << 20, "2GiB": 2 << 30, "1TiB": 1 << 40, "5B": 5,
		"": -1, "KiB": -1, "-1": -1, "+1": -1, "1.5MiB": -1, "16KB": -1, "16kib": -1, "0x10": -1, "010": -1, "1_000": -1,
		"99999999999TiB": -1, "99999999999999999999": -1, "1  KiB": -1,
	} {
		got, ok := ParseSize(in)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("ParseSize(%q) = %d, want %d", in, got, want)
		}
		if ok {
			if again, _ := ParseSize(SizeText(got)); again != got {
				t.Errorf("ParseSize(SizeText(%d)) = %d, want the same", got, again)
			}
		}
	}
}

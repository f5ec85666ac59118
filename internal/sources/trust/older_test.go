package trust

import (
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
)

// A pack that is older than the one it would replace is refused, by whatever says so.
func TestOlder(t *testing.T) {
	const jan, feb = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00+01:00"
	for name, tt := range map[string]struct {
		before *lock.Entry
		now    lock.Entry
		old    string // shown as the previous state; "": not refused
		new    string
	}{
		"a new pack":                             {nil, lock.Entry{Version: "1"}, "", ""},
		"nothing to compare":                     {&lock.Entry{}, lock.Entry{}, "", ""},
		"a version that was not there":           {&lock.Entry{}, lock.Entry{Version: "1"}, "", ""},
		"a higher version":                       {&lock.Entry{Version: "1.9"}, lock.Entry{Version: "1.10"}, "", ""},
		"the same version":                       {&lock.Entry{Version: "1.9"}, lock.Entry{Version: "v1.9.0+x"}, "", ""},
		"a lower version":                        {&lock.Entry{Version: "1.10"}, lock.Entry{Version: "1.9"}, "version 1.10", "version 1.9"},
		"a version that has no order":            {&lock.Entry{Version: "soon"}, lock.Entry{Version: "1.9"}, "", ""},
		"no version any more":                    {&lock.Entry{Version: "1.10"}, lock.Entry{}, "version 1.10", "no version"},
		"a version without an order now":         {&lock.Entry{Version: "1.10"}, lock.Entry{Version: "999\x1b"}, "version 1.10", "no version"},
		"no version any more, of another source": {&lock.Entry{Source: "a", Version: "1.10"}, lock.Entry{Source: "b"}, "", ""},
		"a lower version of another source":      {&lock.Entry{Source: "a", Version: "1.10"}, lock.Entry{Source: "b", Version: "1"}, "version 1.10", "version 1"},
		"no version any more, but a later date":  {&lock.Entry{Version: "1.10", UpdatedAt: jan}, lock.Entry{UpdatedAt: feb}, "", ""},
		"an earlier date":                        {&lock.Entry{UpdatedAt: feb}, lock.Entry{UpdatedAt: jan}, "date " + feb, "date " + jan},
		"no date any more":                       {&lock.Entry{UpdatedAt: feb}, lock.Entry{}, "date " + feb, "no date"},
		"an earlier signature":                   {&lock.Entry{SignedAt: feb}, lock.Entry{SignedAt: jan}, "time of the signature " + feb, "time of the signature " + jan},
		"a signature without a time":             {&lock.Entry{SignedAt: feb}, lock.Entry{}, "", ""},
		"a later date, but a lower version":      {&lock.Entry{Version: "2", UpdatedAt: jan}, lock.Entry{Version: "1", UpdatedAt: feb}, "version 2", "version 1"},
		"a higher version, signed earlier":       {&lock.Entry{Version: "1", SignedAt: feb}, lock.Entry{Version: "2", SignedAt: jan}, "time of the signature " + feb, "time of the signature " + jan},
	} {
		switch err := Older(tt.before, tt.now); {
		case err == nil && tt.old != "":
			t.Errorf("%s: not refused", name)
		case err != nil && (err.Old != tt.old || err.New != tt.new):
			t.Errorf("%s: %v, want %q and %q", name, err, tt.old, tt.new)
		}
	}
}

// The versions are in ascending order, as semver.org has it.
func TestVersionsHaveAnOrder(t *testing.T) {
	ascending := strings.Fields("0 0.0.1 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.0.1 v1.2 1.10 2 2026-01-02 2026.2.3 18446744073709551615")
	for i, a := range ascending {
		for k, b := range ascending {
			if got, want := compareVersions(a, b), compareInts(i, k); got != want {
				t.Errorf("compareVersions(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
	for _, text := range []string{"", "v", "x", "1.", ".1", "1..2", "-1", "1-", "1-a..b", "1.2 ", "1,2", "١", "0x1", "1_0", "18446744073709551616", "1+\x1b[2J", "1" + strings.Repeat(".0", 40)} {
		if IsVersion(text) {
			t.Errorf("%q counts as a version", text)
		}
	}
	if same := []string{"1", "1.0", "v1.0.0", "1.0.0+build.7"}; slices.ContainsFunc(same, func(s string) bool { return compareVersions(s, "1") != 0 }) {
		t.Error("a missing number is not zero")
	}
}

func compareInts(a, b int) int { return max(-1, min(1, a-b)) }

package winjob

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNewJob(t *testing.T) {
	const flags = LimitJobTime | LimitActiveProcess | LimitProcessMemory | LimitJobMemory | LimitDieOnException | LimitKillOnClose
	for _, c := range []struct {
		limits Limits
		want   Job
	}{
		{Limits{30 * time.Second, 2 << 30, 256}, Job{flags, 300_000_000, 257, 2 << 30}},
		{Limits{time.Nanosecond, 1, 1}, Job{flags, 1, 2, 1}},
		{Limits{}, Job{flags, 1, 2, 1}}, // as strict as it gets, and never without a limit
		{Limits{math.MaxInt64, math.MaxInt64, math.MaxInt64}, Job{flags, math.MaxInt64 / 100, math.MaxInt32, math.MaxInt64}},
		{Limits{-1, -1, -1}, Job{flags, 1, 2, 1}},
	} {
		got := NewJob(c.limits)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("NewJob(%+v) (-want +got):\n%s", c.limits, diff)
		}
		const breakaway = 0x0800 | 0x1000 // if it asks, and without asking
		if got.Flags&breakaway != 0 {
			t.Errorf("NewJob(%+v).Flags = %#x, which lets a child leave the job", c.limits, got.Flags)
		}
	}
}

func TestOutOfTime(t *testing.T) {
	j := NewJob(Limits{CPU: time.Second, Memory: 1, Processes: 1})
	for _, c := range []struct {
		code uint32
		used int64
		want bool
	}{
		{1816, 10_000_000, true},
		{1816, 10_400_000, true},
		{1816, 9_999_999, false}, // its own exit code
		{0, 20_000_000, false},   // done by then
		{KillCode, 20_000_000, false},
	} {
		if got := j.OutOfTime(c.code, c.used); got != c.want {
			t.Errorf("OutOfTime(%d, %v) = %v, want %v", c.code, Ticks(c.used), got, c.want)
		}
	}
}

func TestUTF16Len(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "ä": 1, "名前": 2, "😀": 2, "a😀b": 4, "\xff": 1} {
		if got := UTF16Len(s); got != want {
			t.Errorf("UTF16Len(%q) = %d, want %d", s, got, want)
		}
	}
}

func TestLow(t *testing.T) {
	for _, c := range []struct {
		sddl           string
		low, inherited bool
	}{
		{LowFolder, true, false},
		{LowFile, true, false},
		{Medium, false, false},
		{Unlabeled, false, false},
		{"", false, false},
		{"S:AI(ML;OICIID;NW;;;LW)", true, true},
		{"O:BAG:SYD:AI(A;ID;FA;;;SY)S:AI(ML;ID;NWNX;;;LW)", true, true},
		{"S:(ML;;NW;;;S-1-16-4096)", true, false},
		{"S:(ML;;NW;;;S-1-16-0)", true, false},
		{"S:(ML;OICIIO;NW;;;LW)", false, false}, // for what will be in it only
		{"S:(ML;;NW;;;HI)", false, false},
		{"S:(ML;;NW;;;S-1-16-8192)", false, false},
		{"S:(ML;OICI;NW;;;LW", false, false},
		{"S:(ML;OICI)", false, false},
	} {
		if low, inherited := Low(c.sddl); low != c.low || inherited != c.inherited {
			t.Errorf("Low(%q) = %v, %v, want %v, %v", c.sddl, low, inherited, c.low, c.inherited)
		}
	}
}

func TestShield(t *testing.T) {
	for sddl, want := range map[string]string{
		"S:(ML;;NWNR;;;ME)": "S:(ML;;NWNRNX;;;ME)",
		"S:(ML;;NWNR;;;HI)": "S:(ML;;NWNRNX;;;HI)",
		"S:(ML;;NW;;;LW)":   "S:(ML;;NWNRNX;;;LW)",
		"":                  "S:(ML;;NWNRNX;;;ME)",
		"S:(garbled":        "S:(ML;;NWNRNX;;;ME)",
	} {
		if got := Shield(sddl); got != want {
			t.Errorf("Shield(%q) = %q, want %q", sddl, got, want)
		}
	}
}

func TestExtended(t *testing.T) {
	for path, want := range map[string]string{
		`C:\a\b`:           `\\?\C:\a\b`,
		`\\server\share\a`: `\\?\UNC\server\share\a`,
		`\\?\C:\a`:         `\\?\C:\a`,
		`\\.\C:`:           `\\.\C:`,
	} {
		if got := Extended(path); got != want {
			t.Errorf("Extended(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestHolds(t *testing.T) {
	var (
		h   Holds
		log []string
	)
	take := func(folder string) { log = append(log, fmt.Sprintf("+%s %v", folder, h.Take(folder))) }
	give := func(folder string) { log = append(log, fmt.Sprintf("-%s %q", folder, h.Give(folder))) }

	take(`C:\p`)
	take(`c:\P\`) // the same folder
	give(`C:\p`)
	give(`C:\p`)
	take(`C:\p`)
	take(`C:\p\ws`) // inside of it
	take(`C:\pq`)   // beside it
	give(`C:\p`)    // the run inside goes on
	give(`C:\pq`)
	take(`C:\p\ws\x`)
	give(`C:\p\ws`)
	give(`C:\p\ws\x`)
	take(`C:\a`)
	take(`C:\a\b`)
	give(`C:\a`)
	take(`C:\a`) // needed again before it was free, and to be labelled again
	give(`C:\a\b`)
	give(`C:\a`)
	want := []string{
		`+C:\p true`, `+c:\P\ false`, `-C:\p []`, `-C:\p ["C:\\p"]`,
		`+C:\p true`, `+C:\p\ws true`, `+C:\pq true`, `-C:\p []`, `-C:\pq ["C:\\pq"]`,
		`+C:\p\ws\x true`, `-C:\p\ws []`, `-C:\p\ws\x ["C:\\p" "C:\\p\\ws" "C:\\p\\ws\\x"]`,
		`+C:\a true`, `+C:\a\b true`, `-C:\a []`, `+C:\a true`, `-C:\a\b []`, `-C:\a ["C:\\a" "C:\\a\\b"]`,
	}
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("taking and giving (-want +got):\n%s", diff)
	}
	if len(h.held) != 0 || len(h.owed) != 0 {
		t.Errorf("after all was given: held %v, owed %v, want none", h.held, h.owed)
	}
}

func TestGaps(t *testing.T) {
	nested, alone := Gaps(false), Gaps(true)
	if len(nested) != len(alone)+1 {
		t.Errorf("len(Gaps(false)) = %d, want one more than %d", len(nested), len(alone))
	}
	for _, word := range []string{"network is NOT closed", "reading is not confined"} {
		if !slices.ContainsFunc(alone, func(s string) bool { return strings.Contains(s, word) }) {
			t.Errorf("Gaps(true) = %q, want %q in it", alone, word)
		}
	}
}

func TestHint(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range []Server{{}, {Low: true}, {AppContainer: true}, {AppContainer: true, Low: true}} {
		got := Hint(s)
		if got == "" {
			t.Errorf("Hint(%+v) is empty", s)
		}
		seen[got] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d different hints, want 3", len(seen))
	}
}

package toolname

import "testing"

func TestValid(t *testing.T) {
	for name, want := range map[string][2]bool{ // valid, printable
		"a": {true, true}, "Open-Ticket_2": {true, true}, "a.b": {false, true}, "x:y/z": {false, true},
		"": {}, "a b": {}, "ä": {}, "a\u202eb": {}, "a\n": {},
	} {
		if got := [2]bool{Valid(name), Printable(name)}; got != want {
			t.Errorf("Valid and Printable(%q) = %v, want %v", name, got, want)
		}
	}
	long := make([]byte, 65)
	for i := range long {
		long[i] = 'a'
	}
	if !Valid(string(long[:64])) || Valid(string(long)) {
		t.Error("the longest name has other than 64 characters")
	}
}

func TestFold(t *testing.T) {
	for _, same := range [][2]string{{"a-b", "A_b"}, {"a.b", "a_b"}, {"ｅxec", "exec"}, {"a\u200bb", "ab"}, {"e\u0301", "é"}, {"K", "\u212a"}} {
		if Fold(same[0]) != Fold(same[1]) {
			t.Errorf("Fold(%q) = %q and Fold(%q) = %q, want the same", same[0], Fold(same[0]), same[1], Fold(same[1]))
		}
	}
	for _, other := range [][2]string{{"ab", "a_b"}, {"a_b", "a__b"}, {"a", "b"}} {
		if Fold(other[0]) == Fold(other[1]) {
			t.Errorf("Fold(%q) and Fold(%q) are both %q", other[0], other[1], Fold(other[0]))
		}
	}
}

func TestReserved(t *testing.T) {
	for name, want := range map[string]bool{
		"capability_packs_list": true, "capab1lity-packs": true, "mcp__x__y": true, "exec_best_effort": true, "x/Exec-Best-Effort": true,
		"exec": false, "packs": false, "mcp_x": false,
	} {
		if got := Reserved(name) != ""; got != want {
			t.Errorf("Reserved(%q) = %q, want a reason: %v", name, Reserved(name), want)
		}
	}
}

package scan

import "testing"

// The preliminary search for words misses no heading that the expression matches.
func TestAnnounced(t *testing.T) {
	for _, heading := range []string{
		"# ❌ this", "✗", "## 👎", "# bad", "# wrong way", "# insecure code", "# vulnerable", "# vulnerability", "# vulnerabilities", "# known threats", "# anti-pattern", "# antipatterns", "# an attack",
		"# exploitation", "# payload", "# red flags", "# what not to do", "# don't", "# not allowed", "# patterns to avoid", "# detection", "# risk", "# rationalization", "# rationalisations", "# obfuscated",
		"# jailbreak", "# critical rules", "# reverse shells",
		"", "#", "# guide", "# badge", "# attacking", "# dont", "# risky", "# an anti pattern", "# todo not", "# détection", "# embedded", "# undetected risks?",
	} {
		if got, want := announced(heading), announces().expr.MatchString(heading); got != want {
			t.Errorf("announced(%q) = %v, and its expression says %v", heading, got, want)
		}
	}
	for _, heading := range []string{"# anti-patterns", "# 🚫 never", "| bad | good |"} {
		if !announced(heading) {
			t.Errorf("announced(%q) is false", heading)
		}
	}
}

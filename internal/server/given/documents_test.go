package given

import (
	"testing"
)

// specs/skillkit.md, CP-4 and "Edge cases".
func TestSkillkitInvocation(t *testing.T) {
	const base = "Base directory for this skill: /skills/x\n\n"
	tests := []struct{ name, body, arguments, want string }{
		{"FR-022 base directory", "Body.", "", base + "Body."},
		{"FR-023 placeholder", "Review $ARGUMENTS.", "main.py", base + "Review main.py."},
		{"FR-023 every occurrence", "$ARGUMENTS, $ARGUMENTS and$ARGUMENTS", "a b", base + "a b, a b anda b"},
		{"FR-024 empty arguments", "Review $ARGUMENTS.", "", base + "Review ."},
		{"FR-025 appended", "Body.\n", "test input", base + "Body.\n\n\nARGUMENTS: test input"},
		{"FR-025 nothing to append", "Body.\n", "", base + "Body.\n"},
		{"FR-026 letter case", "$arguments $Arguments", "x", base + "$arguments $Arguments\n\nARGUMENTS: x"},
		{"no newline at the end, with placeholder", "Do $ARGUMENTS", "x", base + "Do x"},
		{"no newline at the end, without", "Do", "x", base + "Do\n\nARGUMENTS: x"},
		{"arguments are not looked through again", "$ARGUMENTS", "$ARGUMENTS $ARGUMENTS", base + "$ARGUMENTS $ARGUMENTS"},
		{"arguments are no pattern", "<$ARGUMENTS>", `$1 \1 &`, base + `<$1 \1 &>`},
		{"several lines", "$ARGUMENTS", "a\nb\n", base + "a\nb\n"},
		{"in code and links", "`$ARGUMENTS` [x]($ARGUMENTS)", "y", base + "`y` [x](y)"},
		{"empty body", "", "x", base + "\n\nARGUMENTS: x"},
		{"empty body, empty arguments", "", "", base},
	}
	for _, tt := range tests {
		if got := (Part{}).Fill("/skills/x", tt.body, tt.arguments); got != tt.want {
			t.Errorf("%s: fill(%q, %q) = %q, want %q", tt.name, tt.body, tt.arguments, got, tt.want)
		}
	}
}

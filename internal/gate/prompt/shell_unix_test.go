//go:build unix

package prompt

import (
	"os/exec"
	"strings"
	"testing"
)

// The command that a person sees is what a shell would start: every argument comes
// out unchanged.
func TestCommandIsWhatAShellTakes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	args := []string{
		"", " ", "a", "a b", "--x=1", "it's", `"`, `\`, `\n`, "$HOME", "$(id)", "`id`", "a;b", "a&&b", "*", "~", "#x", "!x", "{a,b}", "[x]",
		"a\nb", "a\tb", "\r", "\x1b[2J", "\x1b0", "\x7f", "\x01f", "\xff", "\xffA", "caf\u00e9", "p\u0443thon", "\u202e", "\u200b", "\U0001f600",
		"\u25b8 network: none", "'", "''", "$'x'", "a=b", "-", "--", "        x", "(9 spaces)", "<<<", "x>y", "|",
	}
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = shellWord(a)
		for _, c := range words[i] {
			if c < ' ' || c > '~' {
				t.Errorf("shellWord(%+q) = %+q, want visible ASCII", a, words[i])
			}
		}
	}
	cmd := exec.Command(bash, "--norc", "-c", `printf '%s\0' `+strings.Join(words, " "))
	cmd.Env = []string{"LC_ALL=C.UTF-8"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(got) != len(args) {
		t.Fatalf("the shell has %d arguments, want %d: %q", len(got), len(args), got)
	}
	for i, a := range args {
		if got[i] != a {
			t.Errorf("shellWord(%+q) = %s, which a shell takes for %+q", a, words[i], got[i])
		}
	}
}

package argv_test

import (
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/scan/argv"
)

// The options of git that take a value do not hide what it is told to do.
func TestGitChanges(t *testing.T) {
	for command, want := range map[string]bool{
		"push":                               true,
		"-C sub push":                        true,
		"-c user.name=x -C sub commit":       true,
		"--git-dir sub/.git --no-pager push": true,
		"--git-dir=sub/.git clean -fd":       true,
		"status":                             false,
		"-C push status":                     false,
		"log --grep push":                    false,
		"-C":                                 false,
		"":                                   false,
	} {
		if got := argv.Changes("git", strings.Fields(command)); got != want {
			t.Errorf("git %s changes something: %v, want %v", command, got, want)
		}
	}
}

package servertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// Git runs git for a test, without anything of the user's.
func Git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// GitProjects makes a worktree, one of a bare clone, and a submodule, and returns
// them with the folder that git reads beside each.
func GitProjects(t *testing.T) map[string][2]string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git: not on this machine")
	}
	root := paths.WithoutLinks(t.TempDir())
	at := func(name string) string { return filepath.Join(root, name) }
	Git(t, root, "init", "-q", "-b", "main", "main")
	Git(t, at("main"), "commit", "-q", "--allow-empty", "-m", "one")
	Git(t, at("main"), "worktree", "add", "-q", "-b", "side", at("worktree"))
	Git(t, root, "clone", "-q", "--bare", "main", "bare.git")
	Git(t, at("bare.git"), "worktree", "add", "-q", "-b", "of-bare", at("of-bare"))
	Git(t, root, "init", "-q", "-b", "main", "super")
	Git(t, at("super"), "submodule", "--quiet", "add", at("main"), "sub")
	return map[string][2]string{
		"worktree":                 {at("worktree"), at("main/.git")},
		"worktree of a bare clone": {at("of-bare"), at("bare.git")},
		"submodule":                {at("super/sub"), at("super/.git/modules/sub")},
	}
}

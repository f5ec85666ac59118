package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The cask and the Scoop manifest of a release are committed to their repositories, once
// each. Both repositories are local, and gh is a script that clones them.
func TestTap(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git: not on this system")
	}
	script, err := filepath.Abs("../scripts/tap.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(file, text string, mode os.FileMode) {
		t.Helper()
		file = filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + t.TempDir(), "PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "REPOS=" + filepath.Join(dir, "repos"), "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	write("bin/gh", "#!/bin/sh\nset -eu\ncase \"$1 $2\" in\n'auth setup-git') ;;\n'repo clone') git clone -q \"$REPOS/$3\" \"$4\" ;;\n*) exit 1 ;;\nesac\n", 0o755)
	repos := map[string]string{"packs-mcp/homebrew-tap": "Casks/packs-mcp.rb", "packs-mcp/scoop-bucket": "bucket/packs-mcp.json"}
	for repo := range repos {
		run("git", "init", "-q", "--bare", "-b", "main", filepath.Join("repos", repo))
	}
	write("dist/homebrew/Casks/packs-mcp.rb", "cask\n", 0o644)
	write("dist/scoop/packs-mcp.json", "{}\n", 0o644)

	check := func(commits string) {
		t.Helper()
		for repo, file := range repos {
			bare := filepath.Join("repos", repo)
			if got := strings.TrimSpace(run("git", "-C", bare, "log", "--format=%s", "main")); got != commits {
				t.Errorf("%s has the commits %q, want %q", repo, got, commits)
			}
			if got := run("git", "-C", bare, "ls-tree", "-r", "--name-only", "main"); got != file+"\n" {
				t.Errorf("%s has %q, want %s", repo, got, file)
			}
		}
	}
	run("sh", script, "v0.1.0")
	check("packs-mcp v0.1.0")
	if said := run("sh", script, "v0.1.0"); strings.Count(said, "has v0.1.0 already") != 2 {
		t.Errorf("the second time it said:\n%s", said)
	}
	check("packs-mcp v0.1.0")
	write("dist/homebrew/Casks/packs-mcp.rb", "another cask\n", 0o644)
	write("dist/scoop/packs-mcp.json", "{\"version\": \"0.2.0\"}\n", 0o644)
	run("sh", script, "v0.2.0")
	check("packs-mcp v0.2.0\npacks-mcp v0.1.0")
}

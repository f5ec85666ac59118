//go:build unix

package changes

import (
	"os"
	"path/filepath"
	"testing"
)

func TestInGit(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{
		"repo/.git/hooks", "repo/src", "bare/objects", "bare/refs", "bare/hooks", "bare/main/src", "bare/none", "bare/hooks/own", "plain",
		"parts/objects", "upper/.GIT/x", "worktrees/a",
	} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"bare/HEAD", "bare/main/.git", "bare/hooks/own/.git", "parts/HEAD", "worktrees/a/HEAD", "worktrees/a/commondir"} {
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]bool{
		"repo": false, "repo/src": false, "plain": false, "parts": false, "parts/objects": false,
		"repo/.git": true, "repo/.git/hooks": true, "repo/.git/hooks/gone": true, "upper/.GIT/x": true,
		"bare": true, "bare/hooks": true, "bare/objects": true, "bare/none": true, "bare/hooks/own": true, "worktrees/a": true,
		"bare/main": false, "bare/main/src": false, // a working tree inside a bare repository
	} {
		if got := InGit(filepath.Join(root, dir)); got != want {
			t.Errorf("InGit(%q) = %v, want %v", dir, got, want)
		}
	}
}

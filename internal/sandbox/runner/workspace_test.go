package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

func TestArtifactsAreWhatChanged(t *testing.T) {
	c := behave(t, "write", "new", "n", "changed", "after!", "same-size", "after", "dir/sub/deep", "d", ".hidden", "h", ".packs-mcp/x", "x", "dir/.packs-mcp/x", "x")
	for _, name := range []string{"changed", "same-size", "untouched"} {
		if err := os.WriteFile(filepath.Join(c.Workspace, name), []byte("first"), 0o600); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(c.Workspace, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	res := run(t, sandbox.Limits{}, c)
	want := []sandbox.Artifact{{Path: ".hidden", Size: 1}, {Path: "changed", Size: 6}, {Path: "dir/sub/deep", Size: 1}, {Path: "new", Size: 1}, {Path: "same-size", Size: 5}}
	if diff := cmp.Diff(want, res.Artifacts); diff != "" {
		t.Errorf("Artifacts differ (-want +got):\n%s", diff)
	}

	c.Workspace = ""
	if res := run(t, sandbox.Limits{}, c); len(res.Artifacts) != 0 {
		t.Errorf("without a workspace: Artifacts = %v, want none", res.Artifacts)
	}
}

func TestArtifactsAreBounded(t *testing.T) {
	res := run(t, sandbox.Limits{}, behave(t, "many", "250", "file"))
	if len(res.Artifacts) != 200 || res.MoreArtifacts != 50 || res.Incomplete {
		t.Errorf("250 files: %d artifacts, %d more, incomplete %v, want 200, 50, false", len(res.Artifacts), res.MoreArtifacts, res.Incomplete)
	}
	// Making links to one file is faster than making files.
	res = run(t, sandbox.Limits{}, behave(t, "many", "10001", "link"))
	if listed := len(res.Artifacts) + len(res.Skipped); listed < 200 || listed+res.MoreArtifacts != 10_000 || !res.Incomplete {
		t.Errorf("10,001 files: %d listed, %d more, incomplete %v, want 10,000 in all, true", listed, res.MoreArtifacts, res.Incomplete)
	}
}

// With more files than are examined, old ones must not look new.
func TestArtifactsOfALargeWorkspace(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("the time of change is not known here")
	}
	started := time.Now()
	s := snapshot{entries: map[string]paths.Stamp{"known": {Size: 1}}}
	for _, tt := range []struct {
		name string
		now  paths.Stamp
		want bool
	}{
		{"known", paths.Stamp{Size: 1}, false},
		{"known", paths.Stamp{Size: 2}, true},
		{"unseen", paths.Stamp{Changed: started.Add(-time.Hour)}, false},
		{"unseen", paths.Stamp{Changed: started.Add(time.Millisecond)}, true},
	} {
		if got := s.changedSince(tt.name, tt.now, started); got != tt.want {
			t.Errorf("changedSince(%q, %v) = %v, want %v", tt.name, tt.now, got, tt.want)
		}
	}
}

func TestWorkspaceLimit(t *testing.T) { // PK-13
	for _, tt := range []struct {
		size int
		want sandbox.Cause
	}{{100, sandbox.CauseExit}, {101, sandbox.CauseWorkspaceLimit}} {
		c := behave(t, "write", "f", strings.Repeat("x", tt.size))
		res := run(t, sandbox.Limits{Workspace: 100}, c)
		if res.Cause != tt.want || res.ExitCode != 0 {
			t.Errorf("%d bytes: Cause, ExitCode = %q, %d, want %q, 0", tt.size, res.Cause, res.ExitCode, tt.want)
		}
		if len(res.Artifacts) != 1 {
			t.Errorf("%d bytes: Artifacts = %v, want the file", tt.size, res.Artifacts)
		}
	}
	// Files from before are not the run's.
	c := behave(t, "exit", "0")
	if err := os.WriteFile(filepath.Join(c.Workspace, "big"), make([]byte, 200), 0o600); err != nil {
		t.Fatal(err)
	}
	if res := run(t, sandbox.Limits{Workspace: 100}, c); res.Cause != sandbox.CauseExit {
		t.Errorf("Cause = %q, want none", res.Cause)
	}
}

func TestScanDepth(t *testing.T) {
	dir := t.TempDir()
	deep := dir
	for i := range maxDepth + 3 {
		deep = filepath.Join(deep, fmt.Sprint(i%10))
	}
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Skip("the system does not take such paths: ", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if s := scan(root); s.complete {
		t.Error("scan of a deep folder is complete, want it cut")
	}
}

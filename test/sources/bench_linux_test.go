package sources_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/test/upstream"
)

// TestAddBesideClone adds one pack of a repository with 400, and all of them, and prints
// how long that takes beside "git clone --depth 1" of the same repository from the same
// server. SOURCES_BENCH says how often (make bench-sources).
func TestAddBesideClone(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("SOURCES_BENCH"))
	if err != nil {
		t.Skip("SOURCES_BENCH is not set; make bench-sources runs this")
	}
	w := newWorld(t)
	files := upstream.Files{}
	for i := range 400 {
		dir := fmt.Sprintf("skills/skill-%d/", i)
		files[dir+"SKILL.md"] = fmt.Sprintf("---\nname: skill-%d\ndescription: Does the thing of number %d.\n---\n# Skill\n", i, i) + strings.Repeat(fmt.Sprintf("Line of %d.\n", i), 300)
		files[dir+"references/guide.md"] = strings.Repeat(fmt.Sprintf("# Guide %d\n\nWords.\n", i), 100)
		files[dir+"scripts/run.sh"] = fmt.Sprintf("#!/bin/sh\necho %d\n", i)
	}
	w.repo.Commit(files)
	w.repo.Git("gc", "--quiet")
	address := w.repo.URL + "@main"
	clone := filepath.Join(w.Root, "clone")
	kinds := []struct {
		name string
		do   func() *exec.Cmd
		undo func()
	}{
		{"git clone --depth 1", func() *exec.Cmd {
			cmd := exec.Command("git", "clone", "--quiet", "--depth", "1", w.repo.URL, clone)
			cmd.Env = w.Env
			return cmd
		}, func() { _ = os.RemoveAll(clone) }},
		{"add --list", func() *exec.Cmd { return w.Command(t.Context(), "add", address, "--list") }, func() {}},
		{"add, one of 400", func() *exec.Cmd {
			return w.Command(t.Context(), "add", address, "skill-7", "--yes", "--allow-unsigned")
		}, func() { _ = os.RemoveAll(w.Home) }},
		{"add --all, 400", func() *exec.Cmd {
			return w.Command(t.Context(), "add", address, "--all", "--yes", "--allow-unsigned")
		}, func() { _ = os.RemoveAll(w.Home) }},
	}
	took := make([][]time.Duration, len(kinds))
	for range rounds {
		for i, kind := range kinds {
			cmd := kind.do()
			began := time.Now()
			if status, out := w.end(cmd); status != 0 {
				t.Fatalf("%s ended with %d:\n%s", kind.name, status, out)
			}
			took[i] = append(took[i], time.Since(began))
			kind.undo()
		}
	}
	median := func(all []time.Duration) time.Duration {
		slices.Sort(all)
		return all[len(all)/2]
	}
	base := median(took[0])
	for i, kind := range kinds {
		m := median(took[i])
		t.Logf("%-20s %8.0f ms  %5.2f × clone  (%.0f to %.0f)", kind.name, ms(m), float64(m)/float64(base), ms(took[i][0]), ms(took[i][len(took[i])-1]))
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

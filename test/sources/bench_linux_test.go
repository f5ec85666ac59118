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

// TestAddBesideClone adds one pack of a repository with 400, and all of them, and prints the
// time beside that of "git clone --depth 1" of the same repository from the same server. It
// also prints the processor time of the command and its children, without the server's.
// SOURCES_BENCH says how often (make bench-sources).
//
// Nothing is removed between the rounds: ext4 searches a free inode for each new file, and
// skips, one by one, those of files that were removed within the last minute.
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
	fresh := func() string { return filepath.Join(t.TempDir(), "new") }
	add := func(args ...string) *exec.Cmd {
		cmd := w.Command(t.Context(), append([]string{"add", address}, args...)...)
		cmd.Env = append(cmd.Env, "PACKS_MCP_HOME="+fresh())
		return cmd
	}
	kinds := []struct {
		name string
		do   func() *exec.Cmd
	}{
		{"git clone --depth 1", func() *exec.Cmd {
			cmd := exec.Command("git", "clone", "--quiet", "--depth", "1", w.repo.URL, fresh())
			cmd.Env = w.Env
			return cmd
		}},
		{"add --list", func() *exec.Cmd { return add("--list") }},
		{"add, one of 400", func() *exec.Cmd { return add("skill-7", "--yes", "--allow-unsigned") }},
		{"add --all, 400", func() *exec.Cmd { return add("--all", "--yes", "--allow-unsigned") }},
	}
	took, used := make([][]time.Duration, len(kinds)), make([][]time.Duration, len(kinds))
	for range rounds {
		for i, kind := range kinds {
			cmd := kind.do()
			began := time.Now()
			if status, out := w.end(cmd); status != 0 {
				t.Fatalf("%s ended with %d:\n%s", kind.name, status, out)
			}
			took[i] = append(took[i], time.Since(began))
			used[i] = append(used[i], cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		}
	}
	median := func(all []time.Duration) time.Duration {
		slices.Sort(all)
		return all[len(all)/2]
	}
	base, baseUsed := median(took[0]), median(used[0])
	for i, kind := range kinds {
		m, u := median(took[i]), median(used[i])
		t.Logf("%-20s %6.0f ms, %5.2f × clone (%.0f to %.0f)   processors %6.0f ms, %5.2f × clone (%.0f to %.0f)", kind.name,
			ms(m), float64(m)/float64(base), ms(took[i][0]), ms(took[i][rounds-1]), ms(u), float64(u)/float64(baseUsed), ms(used[i][0]), ms(used[i][rounds-1]))
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

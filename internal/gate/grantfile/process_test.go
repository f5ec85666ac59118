package grantfile

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
)

// childVar names the file to which child processes add grants. Their arguments are
// the common prefix of the grants, how many times to add some, and how many at once.
const childVar = "PACKS_MCP_TEST_GRANTS"

func TestMain(m *testing.M) {
	if path := os.Getenv(childVar); path != "" {
		os.Exit(child(path, os.Args[1], os.Args[2:]))
	}
	os.Exit(m.Run())
}

// child prints the ids of the grants as soon as they are kept.
func child(path, prefix string, numbers []string) int {
	var times, atOnce int
	fmt.Sscan(strings.Join(numbers, " "), &times, &atOnce)
	s := Open(path)
	for i := range times {
		var given []grants.Grant
		for j := range atOnce {
			id := fmt.Sprintf("%s-%d", prefix, i*atOnce+j)
			given = append(given, grants.Grant{ID: id, Digest: id, Kind: call.KindRun, Since: since})
		}
		if err := add(s, given...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(strings.Join(idsOf(given), "\n"))
	}
	return 0
}

func childCommand(t *testing.T, path, prefix string, times, atOnce int) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, exe, prefix, fmt.Sprint(times), fmt.Sprint(atOnce))
	cmd.Env = append(os.Environ(), childVar+"="+path)
	return cmd
}

// Several servers share the file: no grant is lost or duplicated.
func TestManyProcesses(t *testing.T) {
	const processes, times, atOnce = 10, 10, 10
	path := filepath.Join(folder(t), "grants.json")
	var wg sync.WaitGroup
	for p := range processes {
		cmd := childCommand(t, path, fmt.Sprint(p), times, atOnce)
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v: %s", p, err, out)
			}
		})
	}
	wg.Wait()
	got := ids(t, Open(path))
	var want []string
	for p := range processes {
		for i := range times * atOnce {
			want = append(want, fmt.Sprintf("%d-%d", p, i))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%d grants are kept, want each of %d once", len(got), len(want))
	}
}

// A process that is killed while it writes leaves the old file or the new one. What
// it reported as kept is there, and nothing is refused.
func TestKilled(t *testing.T) {
	const rounds = 50
	var path string
	var want []string
	for round := range rounds {
		if round%10 == 0 { // sometimes begin with no key and no file
			path, want = filepath.Join(folder(t), "grants.json"), nil
		}
		cmd := childCommand(t, path, fmt.Sprint(round), 1000, 1)
		var problem bytes.Buffer
		cmd.Stderr = &problem
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Some are killed during the first grant, some after a few.
		kill := func() { cmd.Process.Kill() }
		delay := time.Duration(rand.IntN(8000)) * time.Microsecond
		var timer *time.Timer
		if round%2 == 0 {
			timer = time.AfterFunc(delay, kill)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			want = append(want, lines.Text())
			if timer == nil {
				timer = time.AfterFunc(delay, kill)
			}
		}
		cmd.Wait()
		if timer != nil {
			timer.Stop()
		}
		if problem.Len() > 0 {
			t.Fatalf("round %d: %s", round, &problem)
		}
		got := ids(t, Open(path))
		if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Fatalf("round %d: %d grants are kept, want the %d that were acknowledged first", round, len(got), len(want))
		}
		// One grant may be kept but not acknowledged.
		if more := got[len(want):]; len(more) > 1 || len(more) == 1 && !strings.HasPrefix(more[0], fmt.Sprint(round)+"-") {
			t.Fatalf("round %d: nobody added %q", round, more)
		}
		want = got
		if err := add(Open(path), grant(fmt.Sprintf("after-%d", round))); err != nil {
			t.Fatalf("round %d: Update = %v", round, err)
		}
		want = append(want, fmt.Sprintf("after-%d", round))
	}
}

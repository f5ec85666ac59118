//go:build linux || darwin

package packs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
	"github.com/packs-mcp/packs-mcp/internal/private"
)

// The processes in these tests are this test binary, started again with its task in
// its environment.
const (
	processDoes  = "PACKS_MCP_TEST_INDEX" // "write", "full", "lock" or "starve"
	processRoot  = "PACKS_MCP_TEST_ROOT"
	processIndex = "PACKS_MCP_TEST_INDEX_DIR"
)

// startProcess starts one. It ends when its input or ctx ends, or after a minute.
func startProcess(t *testing.T, does, dir string, x memo.Index) (*exec.Cmd, io.Closer, *bufio.Reader) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, exe, "-test.run=^TestIndexProcess$")
	cmd.Env = append(os.Environ(), processDoes+"="+does, processRoot+"="+dir, processIndex+"="+x.Dir)
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	return cmd, in, bufio.NewReader(out)
}

// TestIndexProcess is the test that such a process runs.
func TestIndexProcess(t *testing.T) {
	does := os.Getenv(processDoes)
	if does == "" {
		t.Skip("process: this is what other tests start")
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	dir, x := os.Getenv(processRoot), memo.Index{Dir: os.Getenv(processIndex), Version: "1"}
	switch does {
	case "write":
		// Each time, there is a little more to write.
		for n := 0; ; n++ {
			write(t, filepath.Join(dir, strconv.Itoa(os.Getpid()), "SKILL.md"), fmt.Sprintf("---\nname: p\ndescription: %s\n---\n", strings.Repeat("x", n%500)))
			save(t, library(t, dir, x))
			fmt.Printf("wrote %d\n", n)
			select {
			case <-ended:
				return
			default:
			}
		}
	case "lock":
		file := private.File{Path: indexFileOf(t, x, dir)}
		must(t, file.Lock(func() error {
			fmt.Println("locked")
			<-ended
			return nil
		}))
	case "starve":
		starve(t, dir)
		<-ended
	case "full":
		signal.Ignore(syscall.SIGXFSZ)
		l := library(t, dir, x)
		info, err := os.Stat(indexFile(t, x))
		must(t, err)
		var limit syscall.Rlimit
		must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
		for _, room := range []int64{0, 1, 100, info.Size() / 2, info.Size() - 1} {
			now := limit
			now.Cur = uint64(room)
			must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &now))
			l.unsaved[0] = true
			_, err := l.SaveIndex(t.Context())
			fmt.Printf("room for %d: %v\n", room, err != nil)
			must(t, l.Rescan(t.Context()))
		}
		must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
		fmt.Printf("%d packs\n", len(l.Catalog(t.Context()).All()))
		<-ended
	}
}

// If the disk has no room for the index, the previous one stays, nothing else is
// left, and the packs are found. (A limit on the size of files acts like a full disk,
// and needs no disk.)
func TestIndexOnAFullDisk(t *testing.T) {
	dir, x := writeTree(t, someTree), indexIn(t)
	needStamps(t, dir)
	first := library(t, dir, x)
	save(t, first)
	before, err := os.ReadFile(indexFile(t, x))
	must(t, err)
	cmd, in, out := startProcess(t, "full", dir, x)
	var said []string
	for range 6 {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("the process said %q, and then %v", said, err)
		}
		said = append(said, strings.TrimSpace(line))
	}
	n := len(before)
	want := []string{"room for 0: true", "room for 1: true", "room for 100: true", fmt.Sprintf("room for %d: true", n/2), fmt.Sprintf("room for %d: true", n-1), "5 packs"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +said):\n%s", diff)
	}
	if after, err := os.ReadFile(indexFile(t, x)); err != nil || string(after) != string(before) {
		t.Errorf("the index is another, or gone: %v", err)
	}
	leftInIndex(t, x)
	must(t, in.Close())
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the process ended with %v", err)
	}
	if l := library(t, dir, x); l.reads() != 0 {
		t.Errorf("%d were read: the index before does not count any more", l.reads())
	}
}

// While another process has the lock, nothing is written, nobody waits, and nothing
// is left behind that waits. The next process writes it.
func TestSaveIndexWhileAnotherHasTheLock(t *testing.T) {
	dir, x := writeTree(t, someTree), indexIn(t)
	needStamps(t, dir)
	l := library(t, dir, x)
	cmd, in, out := startProcess(t, "lock", dir, x)
	if line, err := out.ReadString('\n'); err != nil || line != "locked\n" {
		t.Fatalf("the process said %q, and then %v", line, err)
	}
	for range 3 {
		if wrote, err := l.SaveIndex(t.Context()); wrote || err != nil {
			t.Errorf("SaveIndex = %v, %v, want that it leaves it to the other", wrote, err)
		}
	}
	all := make([]byte, 1<<20)
	if all = all[:runtime.Stack(all, true)]; strings.Contains(string(all), "flock.") {
		t.Errorf("somebody still waits for the lock:\n%s", all)
	}
	if n := indexFiles(t, x); n != 0 {
		t.Errorf("%d files were written", n)
	}
	must(t, in.Close())
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the process ended with %v", err)
	}
	if wrote, err := l.SaveIndex(t.Context()); !wrote || err != nil {
		t.Errorf("SaveIndex afterwards = %v, %v, want that it writes", wrote, err)
	}
}

// leftInIndex fails if there are unfinished files.
func leftInIndex(t *testing.T, x memo.Index) {
	t.Helper()
	all, err := os.ReadDir(x.Dir)
	must(t, err)
	for _, f := range all {
		if strings.HasSuffix(f.Name(), ".new") {
			t.Errorf("%s is left", f.Name())
		}
	}
}

// Processes that write one index are killed at random moments. Afterwards there is a
// complete index, and the packs are the same as without one. PACKS_MCP_INDEX_KILLS
// sets how often.
func TestIndexOfKilledProcesses(t *testing.T) {
	kills := 10
	if text := os.Getenv("PACKS_MCP_INDEX_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dir, x := writeTree(t, someTree), indexIn(t)
	needStamps(t, dir)
	save(t, library(t, dir, x))
	unfinished := 0
	for i := range kills {
		var both sync.WaitGroup
		for range 2 {
			cmd, _, out := startProcess(t, "write", dir, x)
			both.Go(func() {
				// Kill it after a random number of writes and of rounds of this loop.
				for range 1 + rand.N(5) {
					if line, err := out.ReadString('\n'); err != nil || !strings.HasPrefix(line, "wrote ") {
						t.Errorf("the process said %q, and then %v", line, err)
						break
					}
				}
				for range rand.N(200_000) {
					_ = time.Now()
				}
				_ = cmd.Process.Kill()
				_, _ = io.Copy(io.Discard, out)
				_ = cmd.Wait()
			})
		}
		both.Wait()
		if _, err := x.Load(dir, Limits{}.withDefaults().settings()); err != nil {
			t.Fatalf("after kill %d, the index: %v", i, err)
		}
		if _, err := os.Lstat(filepath.Join(x.Dir, "."+filepath.Base(indexFile(t, x))+".new")); err == nil {
			unfinished++
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		fresh := scan(t, Options{Roots: []Root{{Dir: dir, AttachAll: true}}})
		if diff := cmp.Diff(full(fresh), full(library(t, dir, x).Catalog(t.Context()))); diff != "" {
			t.Fatalf("after kill %d (-without +with):\n%s", i, diff)
		}
	}
	write(t, filepath.Join(dir, "last", "SKILL.md"), "---\nname: last\ndescription: d\n---\n")
	save(t, library(t, dir, x))
	leftInIndex(t, x)
	t.Logf("%d times two processes were killed, of which %d times with a file that was not finished", kills, unfinished)
}

//go:build unix

package audit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func skipWithoutModes(*testing.T) {}

// TestMain lets the test binary run as a separate writer; see writerCommand.
func TestMain(m *testing.M) {
	if path := os.Getenv("AUDIT_TEST_WRITER"); path != "" {
		if err := writer(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// writer appends AUDIT_TEST_COUNT entries, or until it is killed.
func writer(path string) error {
	count, err := strconv.Atoi(os.Getenv("AUDIT_TEST_COUNT"))
	if err != nil {
		return err
	}
	if limit, err := strconv.ParseUint(os.Getenv("AUDIT_TEST_FSIZE"), 10, 64); err == nil {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return err
		}
	}
	l, err := Open(path, Options{MaxSize: 64 << 10, Server: strconv.Itoa(os.Getpid())})
	if err != nil {
		return err
	}
	for i := 0; count < 0 || i < count; i++ {
		add := l.AppendLazy
		if i%10 == 0 {
			add = l.Append
		}
		if err := add(Entry{Event: EventRunEnd, Call: strconv.Itoa(i), Reason: strings.Repeat("x", i%700)}); err != nil {
			return err
		}
		if count < 0 {
			fmt.Println(i)
		}
	}
	return l.Close()
}

func writerCommand(t *testing.T, path string, count int, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), "AUDIT_TEST_WRITER="+path, "AUDIT_TEST_COUNT="+strconv.Itoa(count))
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

func TestSeveralProcesses(t *testing.T) {
	const processes, count = 4, 200
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var wg sync.WaitGroup
	for range processes {
		cmd := writerCommand(t, path, count)
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("a writer ended with %v: %s", err, out)
			}
		})
	}
	wg.Wait()
	r := verified(t, path)
	if !r.OK || len(r.Problems) > 0 || r.Entries != processes*count || len(r.Files) < 2 {
		t.Fatalf("Verify() = %+v, want %d entries in several files and OK", r, processes*count)
	}
	calls := map[string]int{} // :: server → its next call
	for line, err := range Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		e := line.Entry
		if want := strconv.Itoa(calls[e.Server]); e.Call != want {
			t.Fatalf("entry %d of server %s is its call %s, want %s", e.Seq, e.Server, e.Call, want)
		}
		calls[e.Server]++
	}
}

func TestSeveralGoroutines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	opts := testOptions(t)
	opts.MaxSize = 4 << 10
	a, b := openLog(t, path, opts), openLog(t, path, opts)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			l := a
			if i%2 == 1 {
				l = b
			}
			for j := range 25 {
				add := l.Append
				if j%2 == 0 {
					add = l.AppendLazy
				}
				if err := add(Entry{Event: EventRunEnd}); err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if r := verified(t, path); !r.OK || r.Entries != 200 {
		t.Errorf("Verify() = %+v, want 200 entries and OK", r)
	}
}

func TestKilledWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	said := 0           // entries that a writer said it had written
	for i := range 12 { // test/audit does this 200 times
		cmd := writerCommand(t, path, -1)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// The moment of the kill varies with how much is read first.
		buf := make([]byte, 1+30*i)
		read, lines := 0, 0
		for read < len(buf) {
			n, err := out.Read(buf[read:])
			lines += strings.Count(string(buf[read:read+n]), "\n")
			read += n
			if err != nil {
				t.Fatalf("the writer ended early: %v", err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // killed
		said += lines
		r := verified(t, path)
		if !r.OK {
			t.Fatalf("Verify() after %d kills = %+v, want OK, or torn lines", i+1, r)
		}
		if r.Entries < said {
			t.Fatalf("Verify() after %d kills: %d entries, want at least %d", i+1, r.Entries, said)
		}
	}
	mustAppend(t, openLog(t, path, testOptions(t)), EventServerStart)
	if r := verified(t, path); !r.OK {
		t.Errorf("Verify() at the end = %+v, want OK", r)
	}
}

func TestFullDisk(t *testing.T) {
	path := newLog(t, 2)
	// The limit falls in the middle of a line.
	out, err := writerCommand(t, path, 50, "AUDIT_TEST_FSIZE=2000").CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); !ok || !strings.Contains(string(out), "file too large") {
		t.Fatalf("the writer ended with %v: %s; want it to meet its limit", err, out)
	}
	if r := verified(t, path); !r.OK || kinds(r) != "torn" {
		t.Errorf("Verify() after = %+v, want one torn line", r)
	}
	mustAppend(t, openLog(t, path, testOptions(t)), EventRunEnd)
	r := verified(t, path)
	if !r.OK || kinds(r) != "torn" {
		t.Errorf("Verify() after an append = %+v, want one torn line", r)
	}
	var recovered []int64
	for line, err := range Read(path) {
		if err == nil && line.Entry.Event == EventRecovered {
			recovered = append(recovered, line.Entry.Seq)
		}
	}
	if len(recovered) != 1 || recovered[0] != r.Last-1 {
		t.Errorf("recovered events are %v, want one before entry %d", recovered, r.Last)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(t *testing.T, path string)
		want string // with PATH for the path
	}{
		{"symlink", func(t *testing.T, path string) {
			symlink(t, filepath.Join(t.TempDir(), "other"), path)
		}, `audit log "PATH" is a symbolic link: name the file it points to`},
		{"folder", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, `audit log "PATH" is a folder: name a file in it`},
		{"named pipe", func(t *testing.T, path string) {
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, `audit log "PATH" is not a regular file: choose another path`},
		{"readable by others", func(t *testing.T, path string) {
			write(t, path, nil)
			chmod(t, path, 0o604)
		}, `audit log "PATH" can be accessed by other users (mode -rw----r--): check that nobody changed it, then run chmod 600 'PATH'`},
		{"other content", func(t *testing.T, path string) { write(t, path, []byte("dear diary\n")) },
			`audit log "PATH" is not an audit log: choose another path`},
		{"head symlink", func(t *testing.T, path string) {
			symlink(t, filepath.Join(t.TempDir(), "other"), headPath(path))
		}, `audit log "PATH.head" is a symbolic link: name the file it points to`},
		{"head writable", func(t *testing.T, path string) {
			write(t, headPath(path), nil)
			chmod(t, headPath(path), 0o620)
		}, `audit log "PATH.head" can be accessed by other users (mode -rw--w----): check that nobody changed it, then run chmod 600 'PATH.head'`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			tc.make(t, path)
			_, err := Open(path, testOptions(t))
			want := `opening audit log "` + path + `": ` + strings.ReplaceAll(tc.want, "PATH", path)
			if err == nil || err.Error() != want {
				t.Fatalf("Open() = %v, want %v", err, want)
			}
			if _, ok := errors.AsType[*UnsafeError](err); !ok {
				t.Errorf("Open() = %T, want an *UnsafeError", err)
			}
		})
	}

	// It is also found while the log is open.
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := openLog(t, path, testOptions(t))
	mustAppend(t, l, EventRunEnd)
	chmod(t, path, 0o666)
	if err := l.Append(Entry{Event: EventRunEnd}); err == nil {
		t.Errorf("Append() to a file that others can write = nil, want an error")
	}
	if r := verified(t, path); kinds(r) != "mode" {
		t.Errorf("Verify() of a file that others can write = %+v, want mode", r)
	}
	// A lock that is a link is not followed.
	chmod(t, path, 0o600)
	if err := os.Remove(lockPath(path)); err != nil {
		t.Fatal(err)
	}
	symlink(t, filepath.Join(t.TempDir(), "other"), lockPath(path))
	if err := l.Append(Entry{Event: EventRunEnd}); err == nil {
		t.Errorf("Append() with a link as lock = nil, want an error")
	}
}

func TestOpenRefusesOthersFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	path := newLog(t, 1)
	if err := os.Chown(path, 1, -1); err != nil {
		t.Skipf("files cannot be given away here: %v", err)
	}
	if _, err := Open(path, testOptions(t)); err == nil || !strings.Contains(err.Error(), "belongs to another user: remove it, or choose another path") {
		t.Errorf("Open() of another user's file = %v, want a refusal", err)
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// The head file stays open while a log is written to. What happens to its path
// meanwhile counts all the same.
func TestHeadWhileOpen(t *testing.T) {
	remove := func(t *testing.T, path string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, head string)
		unsafe bool
	}{
		{"removed", remove, false},
		{"another in its place", func(t *testing.T, head string) {
			write(t, head+".new", []byte("other\n"))
			if err := os.Rename(head+".new", head); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"longer", func(t *testing.T, head string) { write(t, head, append(read(t, head), "more\n"...)) }, false},
		{"a link to it", func(t *testing.T, head string) {
			if err := os.Rename(head, head+".moved"); err != nil {
				t.Fatal(err)
			}
			symlink(t, head+".moved", head)
		}, true},
		{"a folder", func(t *testing.T, head string) {
			remove(t, head)
			if err := os.Mkdir(head, 0o700); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"writable by others", func(t *testing.T, head string) { chmod(t, head, 0o620) }, true},
	} {
		t.Run(strings.ReplaceAll(tc.name, " ", "_"), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			l := openLog(t, path, testOptions(t))
			mustAppend(t, l, EventRunEnd)
			tc.change(t, headPath(path))
			err := l.Append(Entry{Event: EventRunEnd})
			if _, unsafe := errors.AsType[*UnsafeError](err); unsafe != tc.unsafe || !unsafe && err != nil {
				t.Fatalf("Append() = %v, want an *UnsafeError: %v", err, tc.unsafe)
			}
			if tc.unsafe {
				return
			}
			if r := verified(t, path); kinds(r) != "" {
				t.Errorf("Verify() = %+v, want no problem", r)
			}
		})
	}
}

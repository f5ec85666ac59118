package sources_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/test/served"
	"github.com/packs-mcp/packs-mcp/test/upstream"
)

// A cutter serves a repository, and breaks the connection after some bytes of git's
// response.
type cutter struct {
	next  http.Handler
	after atomic.Int64 // bytes; negative: never
}

func (c *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if n := c.after.Load(); n >= 0 && r.Method == http.MethodPost {
		w = &cutWriter{ResponseWriter: w, left: n}
	}
	c.next.ServeHTTP(w, r)
}

type cutWriter struct {
	http.ResponseWriter
	left int64
}

func (c *cutWriter) Write(p []byte) (int, error) {
	n := min(int64(len(p)), c.left)
	_, err := c.ResponseWriter.Write(p[:n])
	if c.left -= n; err == nil && n < int64(len(p)) {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	return len(p), err
}

// unchanged fails unless an interrupted command says why, and changed nothing.
func (w *world) unchanged(about string, args []string, version string, words ...string) {
	w.t.Helper()
	status, out := w.run(args...)
	if status != 1 || !strings.Contains(out, "packs-mcp: error: ") {
		w.t.Errorf("%s: %q ended with %d:\n%s", about, args, status, out)
	}
	if !containsAny(out, words) {
		w.t.Errorf("%s: %q says none of %q:\n%s", about, args, words, out)
	}
	if version == "" {
		if _, err := os.Lstat(w.pack()); err == nil {
			w.t.Errorf("%s: the pack is there", about)
		}
	} else if data, err := os.ReadFile(filepath.Join(w.pack(), "tell.sh")); err != nil || !strings.Contains(string(data), "version "+version+"\n") {
		w.t.Errorf("%s: the program is %q, %v, want version %s", about, data, err, version)
	}
	if status, out := w.run("verify"); status != 0 {
		w.t.Errorf("%s: verify ends with %d:\n%s", about, status, out)
	}
	w.left(about)
}

func containsAny(s string, words []string) bool {
	for _, word := range words {
		if strings.Contains(s, word) {
			return true
		}
	}
	return false
}

// A broken connection changes nothing, and the same command works afterwards.
func TestCutConnection(t *testing.T) {
	w := newWorld(t)
	cut := &cutter{}
	w.repo = upstream.NewRepo(t, func(next http.Handler) http.Handler { cut.next = next; return cut })
	w.commit("1")
	add := []string{"add", w.repo.URL + "@main", "--yes", "--allow-unsigned"}
	for i, command := range [][]string{add, {"update", "--yes"}} {
		version := ""
		if i > 0 {
			version = "1"
			w.commit("2")
		}
		for _, after := range []int64{0, 7, 100, 500, 1000} {
			cut.after.Store(after)
			w.unchanged(fmt.Sprintf("cut after %d bytes", after), command, version, "the connection ended before everything had come")
		}
		cut.after.Store(-1)
		w.ok(command...)
		w.ok("verify")
	}
}

// A full disk changes nothing, and the same command works once there is space. A full
// disk of temporary files does not matter: what is fetched is kept in memory.
func TestFullDisk(t *testing.T) {
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"home", "tmp"} {
		t.Run(at, func(t *testing.T) {
			w := &world{World: served.New(t, file), t: t, repo: upstream.NewRepo(t, nil)}
			w.Env = append(w.Env, "PACKS_MCP_SOURCES_PRIVATE=127.0.0.1")
			dir := map[string]string{"home": w.Home, "tmp": w.Temp}[at]
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m,mode=700"); err != nil {
				upstream.Absent(t, "tmpfs", "a small disk cannot be made here: "+err.Error())
			}
			t.Cleanup(func() {
				if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
					t.Error(err)
				}
			})
			w.commit("1")
			add := []string{"add", w.repo.URL + "@main", "--yes", "--allow-unsigned"}
			for i, command := range [][]string{add, {"update", "--yes"}} {
				version := ""
				if i > 0 {
					version = "1"
					w.commit("2")
				}
				failed := 0
				for room := int64(0); ; room += 16 << 10 {
					fill(t, dir, room)
					status, out := w.run(command...)
					if status == 0 {
						break // there was enough space
					}
					failed++
					w.unchanged(fmt.Sprintf("%d bytes left", room), command, version, "no space left on device")
					if t.Failed() {
						t.Fatal(out)
					}
				}
				if err := os.Remove(filepath.Join(dir, filler)); err != nil {
					t.Fatal(err)
				}
				w.ok(command...)
				w.ok("verify")
				w.left("with room")
				t.Logf("%s lacked room %d times", command[0], failed)
				if (failed == 0) != (at == "tmp") {
					t.Errorf("%q lacked room %d times", command, failed)
				}
			}
		})
	}
}

// filler is the file that fills a disk.
const filler = "filler"

// fill leaves this much room on a disk.
func fill(t *testing.T, dir string, room int64) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, filler))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		err = f.Truncate(max(0, size-room))
	}
	if err != nil {
		t.Fatal(err)
	}
}

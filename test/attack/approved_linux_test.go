package attack_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/packs/copies"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// swapRuns is how many runs there are under each level while something is being
// exchanged: with all levels, some 200.
var swapRuns = flag.Int("swapped", 66, "how many runs TestApprovedBytes and TestApprovedProgram make under each level; 500 is thorough")

// exchange swaps two files or folders atomically.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// exchanges skips the test if the file system cannot swap two paths.
func exchanges(t *testing.T, a, b string) {
	t.Helper()
	for range 2 {
		if err := exchange(a, b); err != nil {
			t.Skipf("nothing can be exchanged here: %v", err)
		}
	}
}

// RP-04: what was approved is what runs, while the pack's script is swapped and written to,
// and the whole pack is swapped, continuously. A run has the approved bytes or does not
// happen.
func TestApprovedBytes(t *testing.T) {
	for _, v := range append(confined(t), unconfined(t)) {
		t.Run(v.name, func(t *testing.T) { v.approvedBytes(t) })
	}
}

const (
	goodScript = "#!/bin/sh\n. \"$PACKS_PACK_DIR/lib.sh\"\necho good script; exec /bin/cat \"$1\"\n"
	evilScript = "#!/bin/sh\necho evil script\n"
	goodOutput = "good lib\ngood script\ngood data\n"
)

func (v variant) approvedBytes(t *testing.T) {
	w := newWorld(t)
	pack, evil := w.dir("project/.packs/p"), w.dir("project/.packs/evil")
	for dir, script := range map[string]string{pack: goodScript, evil: evilScript} {
		word, _, _ := strings.Cut(strings.TrimPrefix(script[strings.Index(script, "echo "):], "echo "), " ")
		put(t, dir+"/run.sh", script)
		put(t, dir+"/lib.sh", "echo "+word+" lib\n")
		put(t, dir+"/data", word+" data\n")
		if err := os.Chmod(dir+"/run.sh", 0o700); err != nil {
			t.Fatal(err)
		}
	}
	exchanges(t, pack, evil)
	dir, err := packfs.Open(pack)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := dir.Digest(t.Context(), nil)
	dir.Close()
	if err != nil {
		t.Fatal(err)
	}
	program, err := program.Lookup("./run.sh", program.LookupOptions{PackDir: pack})
	if err != nil {
		t.Fatal(err)
	}
	cmd := sandbox.Command{
		Program: program, Args: []string{pack + "/data"}, Dir: w.dir("ws"), Workspace: w.dir("ws"),
		Env: []string{"PATH=/usr/bin:/bin", "HOME=" + w.dir("ws"), "PACKS_PACK_DIR=" + pack},
	}

	ways := []struct {
		name string
		swap func() // called an even number of times
	}{
		{"files are exchanged", func() {
			for _, name := range []string{"/run.sh", "/lib.sh", "/data"} {
				_ = exchange(pack+name, evil+name)
			}
		}},
		{"the pack is exchanged", func() { _ = exchange(pack, evil) }},
		{"the pack is written to", func() {
			text, err := os.ReadFile(pack + "/run.sh")
			if err != nil {
				return
			}
			other := evilScript
			if string(text) == evilScript {
				other = goodScript
			}
			_ = os.WriteFile(pack+"/run.sh", []byte(other), 0o700)
		}},
	}
	kept := copies.Open(w.dir("copies"), copies.Options{})
	_, release, err := kept.Copy(t.Context(), pack, tree.Digest)
	if err != nil {
		t.Fatal(err)
	}
	release()
	for i, way := range ways {
		for _, inside := range []bool{false, true} {
			stop := swapping(way.swap)
			ran, refused := 0, 0
			for n := range *swapRuns / (2 * len(ways)) {
				store := kept
				if n%4 == 3 { // something must be copied during the swaps
					store = copies.Open(w.dir(fmt.Sprintf("copies-%d-%v-%d", i, inside, n)), copies.Options{})
				}
				policy := sandbox.Policy{ReadOnly: []string{pack}, Writable: []string{w.dir("ws")}}
				if inside { // swap what the run sees all the time
					policy.Writable = append(policy.Writable, w.dir("project"))
				}
				res, err := runCopy(t.Context(), v.runner, store, pack, tree.Digest, policy, cmd)
				if err != nil {
					refused++ // the reason depends on the moment
					continue
				}
				ran++
				if out := string(res.Stdout.Bytes()); out != goodOutput {
					t.Errorf("%s: the program printed %q (stderr %q), want %q", way.name, out, res.Stderr.Bytes(), goodOutput)
				}
			}
			stop()
			t.Logf("%s, in a folder of the run %v: %d ran, %d refused", way.name, inside, ran, refused)
			if ran == 0 {
				t.Errorf("%s, in a folder of the run %v: nothing ran", way.name, inside)
			}
		}
	}
	unlock(w.base)
}

// runCopy does what the gate does for an approved run.
func runCopy(ctx context.Context, r *runner.Runner, s *copies.Store, pack, digest string, p sandbox.Policy, c sandbox.Command) (*sandbox.Result, error) {
	folder, release, err := s.Copy(ctx, pack, digest)
	if err != nil {
		return nil, err
	}
	defer release()
	p.Images = []sandbox.Image{{At: pack, From: folder}}
	return r.Run(ctx, p, c)
}

// swapping calls swap continuously until stop is called, and then once more if necessary to
// restore the original state.
func swapping(swap func()) (stop func()) {
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-stopped:
				if i%2 == 1 {
					swap()
				}
				return
			default:
				swap()
			}
		}
	}()
	return func() {
		close(stopped)
		<-ended
	}
}

// unlock makes read-only files removable at the end of a test.
func unlock(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
}

// RP-04 for a program outside the pack: while it is swapped continuously, either the
// approved one starts or none.
func TestApprovedProgram(t *testing.T) {
	for _, v := range confined(t) {
		t.Run(v.name, func(t *testing.T) { v.approvedProgram(t) })
	}
}

func (v variant) approvedProgram(t *testing.T) {
	w := newWorld(t)
	good, evil := w.dir("outside/good/tool"), w.dir("outside/evil/tool")
	for path, name := range map[string]string{good: "/bin/true", evil: "/bin/false"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Skip(err)
		}
		if target, _ := filepath.EvalSymlinks(name); filepath.Base(target) != filepath.Base(name) {
			t.Skipf("%s is %s, which goes by its name", name, target)
		}
		put(t, path, string(text))
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	exchanges(t, good, evil)
	approved, err := program.Lookup(good, program.LookupOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cmd := sandbox.Command{Program: approved, Dir: w.dir("ws")}
	policy := sandbox.Policy{ReadOnly: []string{w.dir("outside")}, Writable: []string{w.dir("ws")}}
	for name, pair := range map[string][2]string{
		"the file": {good, evil}, "its folder": {filepath.Dir(good), filepath.Dir(evil)},
	} {
		stop := swapping(func() { _ = exchange(pair[0], pair[1]) })
		ran, refused := 0, 0
		for range *swapRuns / 2 {
			res, err := v.runner.Run(t.Context(), policy, cmd)
			switch {
			case errors.As(err, new(*program.ChangedError)):
				refused++
			case err != nil:
				t.Errorf("Run = %v, want it to run or a *ChangedError", err)
			case res.ExitCode != 0:
				t.Errorf("Run = %+v, want the program that was approved", res)
			default:
				ran++
			}
		}
		stop()
		t.Logf("while %s is exchanged: %d ran, %d refused", name, ran, refused)
		if refused == 0 {
			t.Errorf("while %s is exchanged: nothing was refused, so it was not exchanged in time", name)
		}
	}
}

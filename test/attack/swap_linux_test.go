package attack_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
)

// swapTime is how long TestSwap lasts at each level.
var swapTime = flag.Duration("swap", 300*time.Millisecond, "how long TestSwap exchanges folders and links; 2s is thorough")

// FS-02: a program continuously swaps folders with links that lead outside, while the server
// reads the workspaces of other runs, writes their output there, collects what they made,
// and applies their changes to a project. The server never opens, reads or changes anything
// outside.
func TestSwap(t *testing.T) {
	for _, v := range confined(t) {
		t.Run(v.name, func(t *testing.T) { v.swap(t) })
	}
}

func (v variant) swap(t *testing.T) {
	w := newWorld(t)
	project := w.dir("project")
	const canary = "canary, which is outside"
	outside := map[string]string{ // has the names of the swapped folders
		"made/file": canary, "made/deep/file": canary, ".packs-mcp/r1.stdout": canary,
		".git/config": canary, ".git/hooks/pre-commit": canary, ".vscode/settings.json": canary,
	}
	for name, text := range outside {
		put(t, w.dir("outside/"+name), text)
	}
	put(t, project+"/.git/config", "[core]\n")
	put(t, project+"/.git/hooks/pre-commit", "#!/bin/sh\n")
	put(t, w.dir("ws/made/deep/file"), "inside")

	run := func(id string, args ...string) (*sandbox.Result, error) {
		cmd, err := w.command(args)
		if err != nil {
			return nil, err
		}
		cmd.Workspace, cmd.RunID = w.dir("ws"), id
		policy := w.policy(sandbox.NetworkNone)
		policy.Layers = v.runner.Layers(t.Context(), []string{project})
		return v.runner.Run(t.Context(), policy, cmd)
	}
	before := w.state(t)["outside"]
	seen := watchTree(t, w.dir("outside"))

	// The links are absolute in one run, and relative in another.
	swapped := make(chan string, 2)
	for i, target := range []string{w.dir("outside"), "../outside"} {
		go func() {
			millis := fmt.Sprint(swapTime.Milliseconds())
			res, err := run(fmt.Sprintf("swap%d", i), "swap", millis, target, "made", ".packs-mcp", project+"/.git", project+"/.vscode")
			switch {
			case err != nil:
				swapped <- err.Error()
			case res.Cause != sandbox.CauseExit || string(res.Stdout.Bytes()) == "0\n":
				swapped <- fmt.Sprintf("%q %q (stderr %q)", res.Cause, res.Stdout.Bytes(), res.Stderr.Bytes())
			default:
				t.Logf("%s exchanges with links to %s", strings.TrimSpace(string(res.Stdout.Bytes())), target)
				swapped <- ""
			}
		}()
	}
	ran, kept, held, refused := 0, 0, 0, 0
	for left := 2; left > 0; {
		select {
		case why := <-swapped:
			if left--; why != "" {
				t.Errorf("the exchanging run: %s", why)
			}
			continue
		default:
		}
		res, err := run(fmt.Sprintf("mess%d", ran+refused), "mess", "40000", "made/file", "made/deep/file", ".packs-mcp/file",
			project+"/.git/config", project+"/.git/hooks/pre-commit", project+"/.vscode/tasks.json")
		if err != nil { // a folder may be a link at the moment the run begins
			refused++
			continue
		}
		ran++
		for _, set := range res.Changes {
			held += set.Count(changes.Held)
		}
		if res.Stdout.File != "" {
			kept++
		}
		for _, a := range res.Artifacts {
			if a.Size == int64(len(canary)) {
				t.Errorf("the result has the artifact %+v, which is outside", a)
			}
		}
	}
	t.Logf("%d runs, %d outputs kept, %d changes held, %d runs refused", ran, kept, held, refused)
	if ran == 0 || held == 0 {
		t.Errorf("%d runs with %d changes held, want some", ran, held)
	}
	if events := seen(); len(events) > 0 {
		t.Errorf("something happened outside: %v", events)
	}
	for name, text := range outside {
		if got, err := os.ReadFile(w.dir("outside/" + name)); string(got) != text {
			t.Errorf("outside/%s = %q, %v, want %q", name, got, err, text)
		}
	}
	if events := seen(); len(events) == 0 {
		t.Error("reading outside is not seen: the test looks in the wrong place")
	}
	if after := w.state(t)["outside"]; after != before {
		t.Errorf("the folder outside is %s, want %s", after, before)
	}
	for _, dir := range []string{w.dir("ws"), project} {
		noCanary(t, dir)
	}
}

// put writes a file and creates its parent folders.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// noCanary fails if a file below dir contains text from outside.
func noCanary(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("canary")) {
			t.Errorf("%q has what was outside", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// watchTree returns a function that reports what anyone opened, read, wrote, created or
// removed below dir since its last call. It ignores closing, which a process that is just
// being started may do for a file that the test wrote earlier.
func watchTree(t *testing.T, dir string) (seen func() []string) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		lacks(t, "inotify", "nothing can be watched: "+err.Error())
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	names := map[int32]string{}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		wd, err := unix.InotifyAddWatch(fd, path, unix.IN_ALL_EVENTS&^unix.IN_CLOSE)
		names[int32(wd)] = path
		return err
	})
	if err != nil {
		lacks(t, "inotify", "nothing can be watched: "+err.Error())
	}
	look := func() (events []string) {
		buf := make([]byte, 64<<10)
		for {
			n, err := unix.Read(fd, buf)
			if err != nil || n <= 0 {
				return events
			}
			for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
				wd, mask, size := binary.NativeEndian.Uint32(b), binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[12:])
				b = b[unix.SizeofInotifyEvent:]
				if len(events) < 20 {
					events = append(events, fmt.Sprintf("%#x at %s/%s", mask, names[int32(wd)], bytes.TrimRight(b[:size], "\x00")))
				}
				b = b[size:]
			}
		}
	}
	look() // ignore what walking the tree caused
	return look
}

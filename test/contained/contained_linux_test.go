// Package contained tests the whole program with packs whose programs run in containers.
package contained

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/test/engine"
)

// A world is a home with a pack, a project, and the program.
type world struct {
	dir, program string
	podman       *engine.Engine
}

func newWorld(t *testing.T) *world {
	t.Helper()
	podman, err := engine.Start(t.Context(), t.TempDir(), "runc")
	if e, ok := errors.AsType[*engine.ErrLacks](err); ok {
		if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "podman") {
			t.Fatalf("%s, though podman is required", e.Why)
		}
		t.Skipf("podman: %s", e.Why)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(podman.Close)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{dir: dir, program: filepath.Join(dir, "packs-mcp"), podman: podman}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", w.program, "../../cmd/packs-mcp")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tool := func(name, command, more string) string {
		return fmt.Sprintf(`{"name": %q, "description": "A tool.", "inputSchema": {"type": "object", "properties": {}, "additionalProperties": false}, "command": %s%s}`, name, command, more)
	}
	w.write(t, "packs/boxed/SKILL.md", "---\nname: boxed\ndescription: Tools for a container.\n---\nText.\n")
	w.write(t, "packs/boxed/script.sh", "#!/usr/bin/env sh\necho from the pack\ngreet\n")
	w.write(t, "packs/boxed/tools.json", `{"tools": [`+strings.Join([]string{
		tool("where", `{"program": "sh", "args": ["-c", "cat /etc/hostname; pwd; echo made >made; echo mine >CLAUDE.md"], "cwd": "project"}`, ""),
		tool("script", `{"program": "./script.sh"}`, ""),
		tool("git", `{"program": "git"}`, ""),
		tool("hungry", `{"program": "dd", "args": ["if=/dev/zero", "of=/tmp/full", "bs=1048576", "count=256"]}`, ""),
		tool("online", `{"program": "sh"}`, `, "policy": {"network": "full"}`),
		tool("hosts", `{"program": "sh", "args": ["-c", "busybox wget -q -O- http://other.example.com/; exit 0"]}`, `, "policy": {"network": {"hosts": ["api.example.com:443", "api.example.com:80"]}}`),
	}, ", ")+"]}")
	w.write(t, "project/README", "text\n")
	w.configure(t, podman.Socket, "localhost/box@"+podman.Image)
	return w
}

func (w *world) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func (w *world) configure(t *testing.T, socket, image string) {
	t.Helper()
	w.write(t, "config.yaml", fmt.Sprintf("sandbox:\n  runner: container\n  container: {socket: %q, image: %q}\nlimits:\n  memory: 64MiB\n", socket, image))
}

// run runs the program, and returns what it prints on both streams.
func (w *world) run(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), w.program, append(args, "--config", filepath.Join(w.dir, "config.yaml"))...)
	cmd.Dir = w.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(w.dir, "home"), "XDG_RUNTIME_DIR=" + filepath.Join(w.dir, "run")}
	if err := os.MkdirAll(filepath.Join(w.dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return both.String(), cmd.ProcessState.ExitCode()
}

// call calls a tool of the pack.
func (w *world) call(t *testing.T, tool string, more ...string) (string, int) {
	t.Helper()
	return w.run(t, append([]string{"call", "./packs/boxed", tool, "--project", filepath.Join(w.dir, "project")}, more...)...)
}

// expect checks an answer of the program.
func expect(t *testing.T, what, out string, code, wantCode int, want ...string) {
	t.Helper()
	if code != wantCode {
		t.Errorf("%s: exit status %d, want %d\n%s", what, code, wantCode, out)
	}
	flat := strings.Join(strings.Fields(out), " ")
	for _, text := range want {
		if !strings.Contains(flat, text) {
			t.Errorf("%s lacks %q:\n%s", what, text, out)
		}
	}
}

// The question, the result and the log name the runner; a run's changes come back; and
// without the container, nothing runs.
func TestContained(t *testing.T) {
	w := newWorld(t)
	out, code := w.call(t, "where", "--dry-run")
	expect(t, "the question", out, code, 0, "runs in a container of the image", "may read everything in the image", "in a copy, applied when it ends", `program "/bin/sh", which is "/bin/busybox"`)

	out, code = w.call(t, "where", "--yes", "--json")
	expect(t, "the result", out, code, 0, `"runner": "container"`, `"sandbox": "full"`, "pack", filepath.Join(w.dir, "project"))
	if text, err := os.ReadFile(filepath.Join(w.dir, "project/made")); string(text) != "made\n" {
		t.Errorf("made has %q (%v)", text, err)
	}
	if _, err := os.Lstat(filepath.Join(w.dir, "project/CLAUDE.md")); err == nil {
		t.Error("a protected name was changed")
	}
	out, code = w.call(t, "script", "--yes")
	expect(t, "a script of the pack", out, code, 0, "from the pack hello from the image")
	out, code = w.run(t, "audit", "show", "--json")
	expect(t, "the log", out, code, 0, `"runner":"container"`, w.podman.Image)

	out, code = w.call(t, "hungry", "--yes", "--json")
	expect(t, "too much memory", out, code, 1, "memory_limit", "without that limits.memory, in the configuration")
	out, code = w.run(t, "audit", "show", "--json")
	expect(t, "the log of too much memory", out, code, 0, `"cause":"memory_limit"`)
	out, code = w.run(t, "sandbox", "explain")
	expect(t, "why it was stopped", out, code, 0, "its processes together had too much memory", "limits: memory: ")
	out, code = w.call(t, "git", "--yes")
	expect(t, "a program that the image lacks", out, code, 1, "program_not_found")
	out, code = w.call(t, "online", "--yes")
	expect(t, "a network", out, code, 1, "sandbox_unavailable", "no network but its own")
	out, code = w.call(t, "hosts", "--dry-run")
	expect(t, "the question about hosts", out, code, 0, "runs in a container of the image", "api.example.com:443", "api.example.com:80")
	out, code = w.call(t, "hosts", "--yes", "--json")
	expect(t, "a host that is not named", out, code, 0, "other.example.com:80", "the tool does not name this host")
	out, code = w.run(t, "audit", "show", "--json")
	expect(t, "the log of hosts", out, code, 0, `"hosts":["api.example.com:80","api.example.com:443"]`, `"host":"other.example.com:80"`)

	out, code = w.run(t, "doctor", "--json")
	expect(t, "doctor", out, code, 0, `"containers"`, "Podman Engine", w.podman.Image)

	other := "localhost/box@sha256:" + strings.Repeat("0", 64)
	w.configure(t, w.podman.Socket, other)
	out, code = w.call(t, "where", "--yes")
	expect(t, "another digest", out, code, 1, "sandbox_unavailable", "and no digest sha256:0000")
	w.configure(t, w.podman.Socket, "localhost/none@"+w.podman.Image)
	out, code = w.call(t, "where", "--yes")
	expect(t, "no image", out, code, 1, "sandbox_unavailable", "has no image")
	w.configure(t, filepath.Join(w.dir, "none"), other)
	out, code = w.call(t, "where", "--yes")
	expect(t, "no engine", out, code, 1, "sandbox_unavailable", "asking the container engine")
	out, code = w.run(t, "doctor")
	expect(t, "doctor without an engine", out, code, 1, "no program can run in a container of the image")
	w.configure(t, w.podman.Socket, "localhost/box@"+w.podman.Image)
	out, code = w.run(t, "call", "./packs/boxed", "where", "--yes", "--project", filepath.Dir(w.podman.Socket))
	expect(t, "a project that holds the socket", out, code, 1, "path_denied")
}

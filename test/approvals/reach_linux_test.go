package approvals_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// insideVar is set in the process that has private folders and accounts.
const insideVar = "APPROVALS_TEST_INSIDE"

// Clients pass more or fewer variables to their servers. A terminal finds all servers, and
// the page opens for each.
func TestFoundFromEverywhere(t *testing.T) {
	if os.Getenv(insideVar) != "" {
		foundFromEverywhere(t)
		return
	}
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	// Use private mounts, so that this machine's folders and accounts stay untouched.
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFoundFromEverywhere$", "-test.v")
	cmd.Env = append(os.Environ(), insideVar+"=1", "PACKS_MCP_BIN="+file)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{21}, // CAP_SYS_ADMIN, to mount
	}
	out, err := cmd.CombinedOutput()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Skipf("a mount namespace: %v", err)
	}
	switch {
	case err != nil:
		t.Errorf("inside: %v\n%s", err, out)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("inside:\n%s", out)
	}
}

func foundFromEverywhere(t *testing.T) {
	home := t.TempDir()
	account := filepath.Join(t.TempDir(), "passwd")
	text := fmt.Sprintf("ann:x:%d:%d::%s:/bin/sh\n", os.Getuid(), os.Getgid(), home)
	if err := os.WriteFile(account, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	runtimeDir := fmt.Sprintf("/run/user/%d", os.Getuid())
	for _, err := range []error{
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount(account, "/etc/passwd", "", syscall.MS_BIND, ""),
		syscall.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"),
		os.MkdirAll(filepath.Dir(runtimeDir), 0o755),
		os.Mkdir(runtimeDir, 0o700),
	} {
		if err != nil {
			t.Skipf("a machine of its own: %v", err)
		}
	}
	w := newWorld(t, triage)
	system := map[string]string{
		"systemctl": "echo DISPLAY=:7",
		"xdg-open":  "echo \"$DISPLAY $HOME $1\" >>\"" + w.root + "/shown\"",
	}
	// The first of the places where a system keeps its own programs.
	const bin = "/run/current-system/sw/bin"
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, line := range system {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+line+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := "PATH=" + os.Getenv("PATH")
	environments := []struct {
		name    string
		environ []string
		shown   string // the display on which its page is shown
	}{
		{"everything", []string{path, "HOME=" + home, "XDG_RUNTIME_DIR=" + runtimeDir, "DISPLAY=:3"}, ":3 " + home},
		{"HOME and PATH", []string{path, "HOME=" + home}, ":7 " + home},
		{"PATH", []string{path}, ":7 " + home},
		{"another HOME", []string{path, "HOME=" + t.TempDir(), "XDG_RUNTIME_DIR=" + runtimeDir}, ":7"},
		{"another state", []string{path, "HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, ".local", "state")}, ":7 " + home},
	}
	for _, server := range environments {
		for _, terminal := range environments {
			t.Run("server with "+server.name+", terminal with "+terminal.name, func(t *testing.T) {
				_ = os.Remove(filepath.Join(w.root, "shown"))
				one := &world{t: t, program: w.program, root: w.root, packs: w.packs, home: w.home, env: slices.Clone(server.environ)}
				c := one.connect(nil)
				call := c.beginTool(openDocs, object{"pack_id": "triage"})

				one.env = terminal.environ
				var listed struct {
					Pending []struct{ Code string }
				}
				one.until("the terminal finds the call", func() bool {
					listed.Pending = nil
					out := one.ok("approvals", "list", "--json")
					if err := json.Unmarshal([]byte(out), &listed); err != nil {
						t.Fatalf("approvals list --json printed %q: %v", out, err)
					}
					return len(listed.Pending) == 1
				})
				one.ok("approvals", "approve", listed.Pending[0].Code)
				call.outcome().want("")

				var shown string
				one.until("the page opens", func() bool {
					data, _ := os.ReadFile(filepath.Join(w.root, "shown"))
					shown = string(data)
					return strings.HasSuffix(shown, "\n")
				})
				if !strings.HasPrefix(shown, server.shown) || !strings.Contains(shown, " file:///") {
					t.Errorf("the page was opened by %q, want it on the display and with the home folder %q", shown, server.shown)
				}
				c.close()
			})
		}
	}
}

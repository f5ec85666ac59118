//go:build unix

package recording

import (
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/packs-mcp/packs-mcp/test/screen"
)

var update = flag.Bool("update", false, "write docs/images")

const (
	rows, cols = 34, 104
	typing     = 0.06 // seconds a letter
)

// A scene is a terminal with a person at it, and the recorded frames.
type scene struct {
	t      *testing.T
	home   string // as long as /home/ada, which pictures show instead
	before string // what was on the screen before the program started
	frames []frame
}

// world makes a home folder with the example packs and a project.
func world(t *testing.T) (s *scene, env []string, project string) {
	t.Helper()
	for _, program := range []string{"git", "sh"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s: not on this system, and the tools of git-helper run it", program)
		}
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-X main.version=v0.1.0", "-o", filepath.Join(bin, "packs-mcp"), "../../cmd/packs-mcp")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	home, err := os.MkdirTemp("/tmp", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	// Lines break where they would break at the path that is shown.
	short := home[:min(len(home), len("/home/ada"))]
	if err := os.Mkdir(short, 0o700); err != nil {
		t.Skipf("a home folder with a short name: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	s = &scene{t: t, home: short}
	project = filepath.Join(short, "src", "site")
	packs := filepath.Join(short, "packs")
	if err := errors.Join(os.CopyFS(packs, os.DirFS("../../examples/packs")), os.MkdirAll(project, 0o755),
		os.Chmod(filepath.Join(packs, "git-helper", "scripts", "changelog.sh"), 0o755)); err != nil { // CopyFS keeps no permission to execute
		t.Fatal(err)
	}
	env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + short, "TERM=xterm-256color", "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1",
		"BROWSER=true", "PACKS_MCP_SANDBOX_REQUIRE=none", "PACKS_MCP_APPROVAL_NOTIFY=false", "PACKS_MCP_PROJECT=" + project, "PACKS_MCP_APPROVAL_WAIT=9m"}
	for _, args := range [][]string{{"init", "--quiet"}, {"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "--allow-empty", "-m", "feat: search by tag"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = project, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return s, env, project
}

// scrub replaces texts that differ between recordings by others of the same length,
// so that lines break at the same places.
func (s *scene) scrub(text string) string {
	text = strings.ReplaceAll(text, s.home, "/home/ada")
	for _, r := range []struct{ what, by string }{
		{`\b[2-9A-Z]{4}-[2-9A-Z]{4}\b`, "K7QM-2F9X"},
		{`\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\b`, "2026-11-28 14:03:27"},
		{`\b\d\d? [A-Z][a-z]+ 20\d\d, \d\d:\d\d\b`, "28 November 2026, 14:03"},
		{`(\bgrant\s+)[a-z0-9]{8}\b`, "${1}kcqpnbkp"},
		{`\b\d\d:\d\d:\d\d\b`, "14:03:27"},
		{`\b\d:\d\d\b`, "8:32"},
		{`\(pid \d+,`, "(pid 4711,"},
		{`Asked \d s ago`, "Asked 1 s ago"},
		{`workspaces/[0-9a-f]{32}`, "workspaces/4f1c9a2ab0c34d7e8f905162738495a6"},
		{`\bpid-\d+-\d+`, "pid-4711-1772460207481"},
		{`packs-run-\d+`, "packs-run-2613884959"},
		{`after \d+ ms`, "after 31 ms"},
	} {
		text = regexp.MustCompile(r.what).ReplaceAllString(text, r.by)
	}
	return text
}

// types has the person type a command into the shell, before the program starts.
func (s *scene) types(command string) {
	s.before = "\x1b[32m$\x1b[0m "
	s.keep(0.8, "")
	for i := range command {
		if i%3 == 2 || i == len(command)-1 {
			s.keep(3*typing, command[:i+1])
		}
	}
	s.keep(0.5, command)
	s.before += command + "\r\n"
}

// keep shows what was written so far, for some seconds.
func (s *scene) keep(seconds float64, written string) {
	s.t.Helper()
	term := &terminal{cols: cols}
	if err := term.write(s.before + s.scrub(written)); err != nil {
		s.t.Fatal(err)
	}
	s.frames = append(s.frames, frame{term.last(rows), seconds})
}

// save checks the picture, and writes it with -update.
func (s *scene) save(name, title string) {
	s.t.Helper()
	picture := draw(title, cols, rows, s.frames)
	if strings.Contains(picture, s.home) {
		s.t.Errorf("the picture has the folder %s of this machine", s.home)
	}
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			s.t.Fatalf("the picture is not XML: %v", err)
		}
	}
	if len(picture) > 150<<10 {
		s.t.Errorf("%s has %d bytes, want fewer than 150 KiB", name, len(picture))
	}
	if *update && !s.t.Failed() {
		if err := os.WriteFile(filepath.Join("..", "..", "docs", "images", name), []byte(picture), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
}

// A client that cannot ask makes two calls, and a person answers them in a terminal.
func TestApprovals(t *testing.T) {
	s, env, project := world(t)
	s.types("packs-mcp approvals")

	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.Command("packs-mcp", "serve", "--packs", filepath.Join(s.home, "packs"))
	cmd.Env, cmd.Dir = env, project
	client, err := mcp.NewClient(&mcp.Implementation{Name: "claude-desktop", Version: "1.4"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	defer cancel()
	tty := screen.Sized(t, rows, cols, env, project, "packs-mcp", "approvals")
	tty.Until("Ctrl-C ends this.")
	s.keep(1.5, tty.Screen())
	call := func(tool string, args map[string]any) <-chan string {
		done := make(chan string, 1)
		go func() {
			result, err := client.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
			switch {
			case err != nil:
				done <- err.Error()
			case result.IsError:
				done <- "an error"
			default:
				done <- ""
			}
		}()
		return done
	}
	answered := func(done <-chan string, title, more, key string) {
		t.Helper()
		tty.Until(title)
		tty.Until("[q]uit: ") // of the prompt
		s.keep(4, tty.Screen())
		if more != "" {
			tty.Enter("\r")
			tty.Until(more)
			tty.Until("[q]uit: ") // of the prompt
			s.keep(6, tty.Screen())
		}
		tty.Enter(key)
		s.keep(0.6, tty.Screen())
		tty.Enter("\r")
		select {
		case problem := <-done:
			if problem != "" {
				t.Fatalf("the call came to %s\n%s", problem, tty.Screen())
			}
		case <-time.After(time.Minute):
			t.Fatalf("the answer does not count\n%s", tty.Screen())
		}
		tty.Until("Ctrl-C ends this.")
		s.keep(2.5, tty.Screen())
	}
	answered(call("capability_packs_enable_tools", map[string]any{"pack_id": "git-helper"}), "Enable 8 tools of pack git-helper?", "", "c")
	answered(call("capability_packs_call_tool", map[string]any{"pack_id": "git-helper", "tool": "changelog", "arguments": map[string]any{"to": "HEAD"}}),
		"./scripts/changelog.sh --to=HEAD", "digest", "o")
	s.save("approvals-terminal.svg", "A terminal that runs packs-mcp approvals: a question appears, is shown in full, and is answered")
}

// A new user sees the program work in their own project.
func TestTry(t *testing.T) {
	s, env, project := world(t)
	s.types("packs-mcp try")
	tty := screen.Sized(t, rows, cols, env, project, "packs-mcp", "try")
	answer := func(title, key string) {
		t.Helper()
		tty.Until(title)
		tty.Until("Enter to see everything: ")
		s.keep(5, tty.Screen())
		tty.Enter(key)
		s.keep(0.6, tty.Screen())
		tty.Enter("\r")
	}
	answer("Open the documents of pack git-helper?", "c")
	tty.Until("5. Runs")
	answer("Run tool status of pack git-helper?", "o")
	tty.Until("Now connect it to your client")
	tty.Until("setup")
	s.keep(6, tty.Screen())
	s.save("try-terminal.svg", "A terminal that runs packs-mcp try: the documents of a pack are opened for the chat, then a run of one of its tools is allowed once, and the audit log shows all of it")
}

//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs/cases"
	"github.com/packs-mcp/packs-mcp/test/screen"
)

// plantTests writes a pack whose tools are shell scripts, with one case for each tool
// and further expectations.
func plantTests(t *testing.T, root string, scripts, expects []string) {
	t.Helper()
	dir := filepath.Join(root, "pack")
	if err := os.MkdirAll(filepath.Join(dir, "tests"), 0o755); err != nil {
		t.Fatal(err)
	}
	var tools []any
	cases := "cases:\n"
	for i, script := range scripts {
		name := fmt.Sprintf("tool%d", i+1)
		tools = append(tools, map[string]any{
			"name": name, "description": "Goes.", "inputSchema": map[string]any{"type": "object"}, "command": []string{"sh", "-c", script},
		})
		cases += fmt.Sprintf("  - {name: case%d, tool: %s%s}\n", i+1, name, expects[i])
	}
	raw, err := json.Marshal(tools)
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range map[string]string{
		"SKILL.md":         "---\nname: pack\ndescription: Goes.\n---\n",
		"tools.json":       string(raw),
		"tests/tools.yaml": cases,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tested is the part of test --json that these tests look at.
type tested struct {
	Passed, Failed int
	Packs          []struct {
		Cases []struct {
			OK          bool
			Differences []cases.Difference
		}
	}
}

func runTests(t *testing.T, dir string, env []string, args ...string) (out tested) {
	t.Helper()
	cmd := exec.Command("packs-mcp", append([]string{"test", "./pack", "--yes", "--json"}, args...)...)
	cmd.Dir, cmd.Env = dir, env
	stdout, err := cmd.Output()
	if err := json.Unmarshal(stdout, &out); err != nil || len(out.Packs) != 1 {
		t.Fatalf("test printed %s: %v", stdout, err)
	}
	if failed := err != nil; failed != (out.Failed > 0) {
		t.Errorf("test ended with %v, and %d cases failed", err, out.Failed)
	}
	return out
}

// The person sees all commands of a pack and answers once.
func TestTestsOnATerminal(t *testing.T) {
	for _, tt := range []struct {
		answer, sum, log string
		runs             int
	}{
		{"o\r", "2 passed, 0 failed", "run once terminal", 2},
		{"d\r", "0 passed, 2 failed", "run deny terminal", 0},
		{"\x04", "0 passed, 2 failed", "run deny command", 0},
	} {
		t.Run(fmt.Sprintf("%q", tt.answer), func(t *testing.T) {
			dir, env := home(t)
			plantTests(t, dir, []string{"echo one", "echo two"}, []string{"", ""})
			s := screen.Start(t, env, dir, "test", "./pack")
			question := s.Until("2 runs: " + onceOrDeny)
			for _, want := range []string{"Run the tests of pack pack: 2 runs?", "1. Run tool tool1", "echo one", "2. Run tool tool2", "echo two"} {
				if !strings.Contains(question, want) {
					t.Errorf("the question does not have %q:\n%s", want, question)
				}
			}
			if n := len(events(t, dir)["run.start"]); n != 0 {
				t.Errorf("%d runs started before the answer", n)
			}
			s.Enter(tt.answer)
			s.Until(tt.sum)
			s.Ended()
			if got := decisions(t, dir); strings.Count(got, tt.log) != 2 {
				t.Errorf("the log has %q, want twice %q", got, tt.log)
			}
			if n := len(events(t, dir)["run.start"]); n != tt.runs {
				t.Errorf("%d runs started, want %d", n, tt.runs)
			}
		})
	}
}

// Ctrl-C at the question ends the program, and nothing runs.
func TestTestsInterrupted(t *testing.T) {
	dir, env := home(t)
	plantTests(t, dir, []string{"echo one", "echo two"}, []string{"", ""})
	s := screen.Start(t, env, dir, "test", "./pack")
	s.Until("2 runs: " + onceOrDeny)
	s.Enter("\x03")
	s.Until("packs-mcp: stopped")
	if code := s.Ended(); code != 1 || strings.Contains(s.Screen(), "canceled") {
		t.Errorf("test ended with status %d, want 1\n%s", code, s.Screen())
	}
	if all := events(t, dir); len(all["run.start"]) != 0 || len(all["server.stop"]) != 1 {
		t.Errorf("the log has %v, want the server's end and no run", all)
	}
}

// The runs of hostile tests can do no more than those of calls, and the tests after
// them still run.
func TestHostileTests(t *testing.T) {
	dir, env := home(t)
	secret := filepath.Join(dir, "secret.txt")
	if err := os.WriteFile(secret, []byte("the secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	scripts := []string{
		"cat " + secret,                  // a file that the run may not read
		"echo x >" + dir + "/planted",    // a file that it may not write
		"echo x >>../../audit.jsonl",     // the log
		"ln -s " + secret + " out.txt",   // a link that the reader of files could follow
		"ln -s " + dir + " d",            // a link on the way to a file
		"echo x >../stray; echo stayed",  // another workspace
		"kill -9 $PPID; kill -9 -1; :",   // the processes that started it
		"mkfifo out.txt",                 // a FIFO, which would block a reader
		"head -c 5000000 /dev/zero >big", // more than is compared
		"echo fine; echo made >made.txt",
	}
	expects := []string{
		", output: {contains: secret}", "", "", ", files: {out.txt: }", ", files: {d/secret.txt: {contains: secret}}",
		", output: {contains: stayed}", ", output: {contains: nothing}", ", files: {out.txt: }", ", files: {big: }",
		", output: {equals: fine}, files: {made.txt: {equals: made}}",
	}
	plantTests(t, dir, []string{"true"}, []string{""})
	probe := exec.Command("packs-mcp", "call", "./pack", "tool1", "--yes", "--json")
	probe.Dir, probe.Env = dir, env
	if out, err := probe.Output(); err != nil || !strings.Contains(string(out), `"sandbox": "full"`) {
		t.Skipf("programs are not confined at the level full here: %s", out)
	}
	plantTests(t, dir, scripts, expects)
	out := runTests(t, dir, env)
	cases := out.Packs[0].Cases
	if len(cases) != len(scripts) {
		t.Fatalf("%d cases were run, want %d", len(cases), len(scripts))
	}
	for i, c := range cases {
		switch i {
		case 1, 2, 5: // the run sees its own copies of these folders, which are then discarded
		case len(cases) - 1:
			if !c.OK {
				t.Errorf("the last case failed: %+v", c)
			}
		default:
			if c.OK {
				t.Errorf("the case with %q passed", scripts[i])
			}
		}
		for _, d := range c.Differences {
			if strings.Contains(d.Got, "the secret") {
				t.Errorf("the case with %q shows the secret", scripts[i])
			}
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "planted")); err == nil {
		t.Error("a run wrote outside of its workspace")
	}
	if _, err := os.Lstat(filepath.Join(dir, "state", "workspaces", "stray")); err == nil {
		t.Error("a run wrote beside its workspace")
	}
	verify := exec.Command("packs-mcp", "audit", "verify")
	verify.Dir, verify.Env = dir, env
	if out, err := verify.CombinedOutput(); err != nil {
		t.Errorf("the log does not verify: %s", out)
	}
}

// A case gets no project unless the person names one, and never one that the case
// names.
func TestTestsGetNoProject(t *testing.T) {
	dir, env := home(t)
	dir = filepath.Join(dir, "project")
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine.txt"), []byte("of the project"), 0o644); err != nil {
		t.Fatal(err)
	}
	plantTests(t, dir, []string{"cat mine.txt"}, []string{", output: {contains: of the project}"})
	file := filepath.Join(dir, "pack", "tools.json")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	raw = []byte(strings.Replace(string(raw), `"command":["sh","-c","cat mine.txt"]`, `"command":{"program":"cat","args":["mine.txt"],"cwd":"project"}`, 1))
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if out := runTests(t, dir, env); out.Failed != 1 {
		t.Errorf("without --project, %+v, want a failure", out)
	}
	if out := runTests(t, dir, env, "--project", dir); out.Passed != 1 {
		t.Errorf("with --project, %+v, want a pass", out)
	}
}

// The tests of the example packs pass.
func TestExamplesPass(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here")
	}
	examples, err := filepath.Abs("../../examples/packs")
	if err != nil {
		t.Fatal(err)
	}
	dir, env := home(t)
	cmd := exec.Command("packs-mcp", "test", examples, "--yes")
	cmd.Dir, cmd.Env = dir, env
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "3 passed, 0 failed") {
		t.Errorf("test ended with %v:\n%s", err, out)
	}
}

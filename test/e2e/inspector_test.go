package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

// judgesVar names the folder that scripts/inspector.sh installs the MCP
// Inspector into, and nodeVar the Node that runs it.
const (
	judgesVar = "PACKS_MCP_JUDGES"
	nodeVar   = "PACKS_MCP_NODE"
)

// The rules for a client that cannot ask.
const readRules = "rules:\n  - allow: {kind: open}\n  - allow: {kind: read}\n"

// An inspector is the MCP Inspector's command line for one era. Over stdio, each request
// starts a new server.
type inspector struct {
	w    *world
	node string
	file string
	era  string
}

// server returns the inspector's last arguments, which say how to reach a server with these
// packs.
func (i *inspector) server(packs string) []string {
	w := *i.w
	w.packs = packs
	if w.over == overStdio {
		return slices.Concat([]string{"--", w.program}, w.serverArgs())
	}
	base, _ := w.serve(new(logbuf.Buffer), token)
	return []string{"--transport", "http", "--server-url", base + "/mcp", "--header", "Authorization: Bearer " + token}
}

// inspect runs it once and returns its exit status and output.
func (i *inspector) inspect(t *testing.T, server []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if i.w.over == overStdio {
		env := i.w.serverEnv()
		for _, name := range slices.Sorted(maps.Keys(env)) {
			args = append(args, "-e", name+"="+env[name])
		}
	}
	args = slices.Concat([]string{i.file, "--cli", "--protocol-era", i.era, "--format", "json"}, args, server)
	cmd := exec.CommandContext(ctx, i.node, args...)
	cmd.Env, cmd.Dir = i.w.env, i.w.file(".")
	cmd.WaitDelay = 10 * time.Second
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	if e := cmd.Run(); e != nil {
		if _, ended := errors.AsType[*exec.ExitError](e); !ended {
			t.Fatalf("%q: %v", cmd.Args, e)
		}
	}
	return cmd.ProcessState.ExitCode(), out.String(), err.String()
}

// clean checks that a run succeeded and found nothing.
func clean(t *testing.T, what string, status int, stderr string) {
	t.Helper()
	if status != 0 {
		t.Errorf("%s ended with status %d:\n%s", what, status, tail(stderr))
	}
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "Warning:") || strings.HasPrefix(line, "Error:") || strings.Contains(line, "level=ERROR") {
			t.Errorf("%s says:\n%s", what, tail(stderr))
			return
		}
	}
}

func TestInspector(t *testing.T) {
	judges := os.Getenv(judgesVar)
	if judges == "" {
		t.Skipf("inspector: %s is not set; make inspector installs it and runs this", judgesVar)
	}
	for _, over := range []transport{overStdio, overHTTP} {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(string(over)+"/"+era, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.over = over
				w.env = append(w.env, "PACKS_MCP_CONFIG="+w.write("rules.yaml", readRules))
				i := &inspector{
					w: w, node: os.Getenv(nodeVar), era: era,
					file: filepath.Join(judges, "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"),
				}
				i.tools(t)
				i.skills(t)
				w.entries() // verifies the log
			})
		}
	}
}

func (i *inspector) tools(t *testing.T) {
	server := i.server(i.w.packs)
	status, out, problems := i.inspect(t, server, "--method", "tools/list", "--strict")
	clean(t, "tools/list --strict", status, problems)
	for _, name := range baseTools {
		if !strings.Contains(out, `"name":"`+name+`"`) {
			t.Errorf("tools/list does not have %q", name)
		}
	}
	status, out, problems = i.inspect(t, server, "--method", "tools/call", "--tool-name", "capability_packs_open_docs", "--tool-arg", "pack_id=field-notes")
	clean(t, "tools/call of open_docs", status, problems)
	if !strings.Contains(out, "# Field notes") {
		t.Errorf("open_docs gave %s, want the document", out)
	}
	status, out, _ = i.inspect(t, server, "--method", "tools/call", "--tool-name", "capability_packs_enable_tools", "--tool-arg", "pack_id=field-notes")
	if !strings.Contains(out, "denied") {
		t.Errorf("enable_tools ended with status %d and gave %s, want it denied: no rule allows it, and nobody can be asked", status, out)
	}
}

func (i *inspector) skills(t *testing.T) {
	status, out, problems := i.inspect(t, i.server(i.w.packs), "--method", "skills/list", "--verify")
	clean(t, "skills/list --verify", status, problems)
	for _, name := range []string{"field-notes", "plain"} {
		if !strings.Contains(out, "skill://"+name+"/SKILL.md") {
			t.Errorf("skills/list does not have %q:\n%s", name, tail(out))
		}
	}
	t.Run("corpus", func(t *testing.T) {
		server := i.server(corpus(t, i.w))
		status, out, problems := i.inspect(t, server, "--method", "skills/list", "--verify",
			"--skill-catalog-max-skills", "1000", "--skill-catalog-max-bytes", "1073741824")
		clean(t, "skills/list --verify of the corpus", status, problems)
		// One line per skill; the corpus has more packs than skills.
		if verdicts := strings.Count(out, "\n"); verdicts < 200 {
			t.Errorf("skills/list --verify of the corpus has %d verdicts, want at least 200:\n%s", verdicts, tail(out))
		}
	})
}

// corpus unpacks a collection of other people's packs.
func corpus(t *testing.T, w *world) string {
	t.Helper()
	archive, err := filepath.Abs(filepath.Join("..", "..", "..", "shared", "corpora", "packs.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(archive); err != nil {
		absent(t, "corpora", err.Error())
	}
	dir := w.file("corpus")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-xzf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	return filepath.Join(dir, "packs")
}

// absent skips the test, unless PACKS_MCP_REQUIRE names what is missing.
func absent(t *testing.T, name, reason string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), name) {
		t.Fatalf("%s: required by PACKS_MCP_REQUIRE, but %s", name, reason)
	}
	t.Skipf("%s: %s", name, reason)
}

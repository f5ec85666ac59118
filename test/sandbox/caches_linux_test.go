package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The recipe for go build: later runs, even of other servers, reuse what the first one
// compiled, at every level that this machine has, and nobody else can.
func TestCacheRecipe(t *testing.T) {
	need(t, "go")
	files := fenced(t, "go build")
	for _, v := range []struct{ name, level, hide, needs string }{
		{"full", "full", "", "userns"},
		{"partial", "partial", "userns", "landlock"},
		{"partial-without-landlock", "partial", "landlock", "userns"},
	} {
		t.Run(v.name, func(t *testing.T) {
			variant{hide: v.hide}.mustConfine(t)
			if level := levelWithout(t, v.hide); level != v.level {
				skip(t, v.needs, "this machine has level %s and not %s", level, v.name)
			}
			w := newWorld(t, v.hide)
			packs := map[string]string{
				"acme/go/SKILL.md": "---\nname: go\ndescription: Build.\n---\nCall `build`.\n", "acme/go/tools.json": files["json"], "acme/go/build.sh": files["sh"],
			}
			write(t, w.packs, packs)
			write(t, w.project, map[string]string{
				"go.mod":  "module example.com/hello\n\ngo 1.21\n",
				"main.go": "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n",
			})
			build := func() time.Duration {
				t.Helper()
				out, isError, asked := w.call(t, "acme/go", "build")
				if isError || out["sandbox"] != v.level {
					t.Fatalf("build gave %v; the question was:\n%s", out, asked)
				}
				if !strings.Contains(asked, "keeps: \"go-build\"") {
					t.Errorf("the question does not name the cache:\n%s", asked)
				}
				if got := w.run(t, w.project, filepath.Join(w.workspace, "hello")); got != "hello\n" {
					t.Errorf("the program prints %q", got)
				}
				took, _ := out["duration_ms"].(float64)
				return time.Duration(took) * time.Millisecond
			}
			cold, warm := build(), build()
			t.Logf("go build: %v without and %v with its cache", cold, warm)
			if warm >= cold {
				t.Errorf("go build took %v without its cache and %v with it", cold, warm)
			}
			if got := w.caches(t); len(got) != 1 {
				t.Fatalf("there are %d caches, want one: %v", len(got), got)
			}
			// Another version of the pack starts with an empty cache, and the old cache is
			// removed.
			before := w.caches(t)[0]
			write(t, w.packs, map[string]string{"acme/go/note.md": "changed\n"})
			build()
			if got := w.caches(t); len(got) != 1 || got[0] == before {
				t.Errorf("there are %v after the pack changed, want one, and not %q", got, before)
			}
			// Revoking the answer empties it, too.
			if out := w.run(t, w.project, mustProgram(t), "approvals", "revoke", "--all"); !strings.Contains(out, "emptied 1 cache") {
				t.Errorf("revoke --all prints %q", out)
			}
			if got := w.caches(t); len(got) != 0 {
				t.Errorf("there are %v after all was revoked", got)
			}
		})
	}
}

// A cache left by a server that was killed during a run is not used, and its lock
// blocks nobody.
func TestCacheOfAKilledServer(t *testing.T) {
	w := newWorld(t, "")
	write(t, w.packs, map[string]string{
		"acme/keep/SKILL.md":   "---\nname: keep\ndescription: Keep.\n---\nCall `keep`.\n",
		"acme/keep/tools.json": `{"tools": [{"name": "keep", "description": "Keep.", "inputSchema": {"type": "object"}, "command": {"program": "./keep.sh", "cwd": "project"}, "policy": {"read_only": true, "cache": "k"}}]}`,
		"acme/keep/keep.sh":    "#!/bin/sh\nls \"$PACKS_CACHE\"\n: >\"$PACKS_CACHE/$PACKS_RUN_ID-left\"\nif [ -e slow ]; then sleep 60; fi\n",
	})
	run := func(want string) {
		t.Helper()
		out, isError, _ := w.call(t, "acme/keep", "keep")
		if isError || strings.Contains(fmt.Sprint(out["stdout"]), "left") != (want != "") {
			t.Errorf("the tool gave %v, want something of an earlier run: %v", out, want != "")
		}
	}
	run("")
	run("left")
	write(t, w.project, map[string]string{"slow": ""})
	cmd, session := w.open(t)
	called := make(chan error, 1)
	go func() {
		_, err := session.CallTool(context.WithoutCancel(t.Context()), &mcp.CallToolParams{Name: "capability_packs_call_tool", Arguments: map[string]any{
			"pack_id": "acme/keep", "tool": "keep", "arguments": map[string]any{},
		}})
		called <- err
	}()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left, _ := filepath.Glob(filepath.Join(w.state, "caches", "*", "data", "*-left"))
		if len(left) == 3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the run does not write to its cache: %v", left)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-called
	_ = session.Close()
	if err := os.Remove(filepath.Join(w.project, "slow")); err != nil {
		t.Fatal(err)
	}
	run("")
	run("left")
}

// mustProgram returns the program to test.
func mustProgram(t *testing.T) string {
	t.Helper()
	file, err := theProgram()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// caches returns the keys of the existing caches.
func (w *world) caches(t *testing.T) (keys []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(w.state, "caches", strings.Repeat("?", 64)))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// open starts a server, enables the tool keep, and answers every question.
func (w *world) open(t *testing.T) (*exec.Cmd, *mcp.ClientSession) {
	t.Helper()
	cmd := exec.Command(mustProgram(t), "serve", "--packs", w.packs, "--project", w.project, "--workspace", w.workspace)
	cmd.Env, cmd.Dir = w.environ(), w.project
	client := mcp.NewClient(&mcp.Implementation{Name: "caches", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "once"}}, nil
		},
	})
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "capability_packs_enable_tools", Arguments: map[string]any{"pack_id": "acme/keep"}})
	if err != nil || res.IsError {
		t.Fatalf("enabling the tool: %+v, %v", res, err)
	}
	return cmd, session
}

// fenced returns the fenced blocks below a heading in the page of recipes, by language. There
// is one for each language.
func fenced(t *testing.T, heading string) map[string]string {
	t.Helper()
	page, err := os.ReadFile(recipesPage)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no %q", recipesPage, heading)
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	blocks := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```(\\w+)\n(.*?)```").FindAllStringSubmatch(section, -1) {
		blocks[m[1]] = m[2]
	}
	return blocks
}

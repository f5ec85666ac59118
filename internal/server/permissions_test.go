package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
)

const deploy = `
-- acme/deploy/SKILL.md --
---
name: deploy
description: Deploys.
---
-- acme/deploy/tools.json --
{"tools": [
  {"name": "sh", "inputSchema": {"type": "object", "properties": {"script": {"type": "string"}}},
   "command": {"program": "./sh", "args": ["{{script}}"], "env": {"STAGE": "pack's"}}},
  {"name": "in_project", "inputSchema": {"type": "object", "properties": {"script": {"type": "string"}}},
   "command": {"program": "./sh", "args": ["{{script}}"], "cwd": "project"}},
  {"name": "only_reads", "inputSchema": {"type": "object"},
   "command": {"program": "./sh", "args": ["ls"], "cwd": "project"}, "policy": {"read_only": true}},
  {"name": "alone", "inputSchema": {"type": "object"}, "command": ["true"], "policy": {"network": "loopback"}}
]}
-- acme/deploy/sh --
#!/bin/sh
eval "$1"
`

// lives makes the user of this house start the server.
func lives(h servertest.House, grants ...plan.Opening) option {
	return func(s *setup) {
		s.server.Environ = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + h.Home, "GITHUB_TOKEN=hunter2+and/more?", "STAGE=user's", "LD_DEBUG_OUTPUT=granted",
		}
		s.server.Project, s.server.Openings = h.Project, grants
	}
}

// deployWorld returns a world with the pack enabled.
func deployWorld(t *testing.T, options ...option) *world {
	t.Helper()
	needShell(t)
	w := newWorld(t, deploy, options...)
	w.answer = decide("once")
	w.initialize()
	w.enable("acme/deploy")
	return w
}

func (w *world) lastQuestion() string { return w.asked[len(w.asked)-1] }

func TestGrantedVariables(t *testing.T) {
	h := servertest.NewHouse(t)
	w := deployWorld(t, lives(h,
		plan.Opening{Pack: "acme/*", Tool: "*", Env: []string{"GITHUB_TOKEN", "GH_HOST"}},
		plan.Opening{Pack: "*", Tool: "sh", Env: []string{"STAGE", "LD_DEBUG_OUTPUT", "GITHUB_TOKEN"}},
		plan.Opening{Pack: "other", Tool: "*", Env: []string{"PATH"}},
	))
	got := w.ok("deploy__sh", map[string]any{"script": `
		[ "$GITHUB_TOKEN" = "$(printf 'hun%s+and/more?' ter2)" ] && echo same
		echo "$GITHUB_TOKEN" "$STAGE" "$LD_DEBUG_OUTPUT" "${GH_HOST-unset}" "$HOME"
		printf %s "x$GITHUB_TOKEN" | base64
		printf 'https://x?t=hun%s%%2Band%%2Fmore%%3F\n' ter2
	`})
	lines := strings.Split(got["stdout"].(string), "\n")
	if lines[0] != "same" {
		t.Errorf("the run does not have the server's own value: %q", got["stdout"])
	}
	if want := "[redacted] [redacted] [redacted] unset " + workspaceOf(t, w); lines[1] != want {
		t.Errorf("variables = %q, want %q", lines[1], want)
	}
	if !strings.Contains(lines[2], "[redacted]") {
		t.Errorf("in base64 = %q, want it taken out", lines[2])
	}
	if lines[3] != "https://x?t=[redacted]" {
		t.Errorf("in a URL = %q, want it taken out", lines[3])
	}
	question := w.lastQuestion()
	for _, want := range []string{
		"variable: GITHUB_TOKEN (yours, by your configuration)", "STAGE (yours, by your configuration)",
		"LD_DEBUG_OUTPUT (yours, by your configuration)", "GH_HOST (granted by you, but not set)",
	} {
		if !says(question, want) {
			t.Errorf("the question does not have %q:\n%s", want, question)
		}
	}
	// The pack's own value of a variable does not count, so it is not shown.
	for _, not := range []string{"pack's", "user's", "hunter2"} {
		if says(question, not) {
			t.Errorf("the question has %q:\n%s", not, question)
		}
	}
	if log, err := os.ReadFile(w.audit); err != nil || strings.Contains(string(log), "hunter2+and") || strings.Contains(w.log.String(), "hunter2") {
		t.Errorf("the value is in a log (%v)", err)
	}

	// A grant for another tool does not count, and commands that the model writes
	// have a kind of their own.
	got = w.ok("deploy__in_project", map[string]any{"script": `echo "${STAGE-unset}"`})
	if got["stdout"] != "unset\n" {
		t.Errorf("STAGE of another tool = %q, want it unset", got["stdout"])
	}
	w = deployWorld(t, lives(h, plan.Opening{Pack: "acme/deploy", Tool: "*", Kinds: []string{"exec"}, Env: []string{"STAGE"}}))
	got = w.ok("capability_packs_exec_best_effort", map[string]any{"pack_id": "acme/deploy", "command": "printenv", "args": []string{"STAGE"}})
	if got["stdout"] != "[redacted]\n" || !says(w.lastQuestion(), "STAGE (yours") {
		t.Errorf("printenv = %v, want the granted value taken out\n%s", got, w.lastQuestion())
	}
	got = w.ok("deploy__sh", map[string]any{"script": `echo "$STAGE"`})
	if got["stdout"] != "pack's\n" || !says(w.lastQuestion(), `"STAGE=pack's"`) {
		t.Errorf("STAGE without a grant = %v, want the pack's", got)
	}
}

// Anybody can choose the name of a pack: untrusted packs get nothing.
func TestGrantsAreForTrustedPacks(t *testing.T) {
	h := servertest.NewHouse(t)
	grant := plan.Opening{Pack: "*", Tool: "*", Env: []string{"GITHUB_TOKEN"}, Read: []string{h.In(".config", "gh")}, Home: true}
	w := deployWorld(t, lives(h, grant), func(s *setup) { s.packs.Roots[0].Trust = packs.TrustUntrusted })
	got := w.ok("deploy__sh", map[string]any{"script": `echo "${GITHUB_TOKEN-unset}" "$HOME"`})
	if want := "unset " + workspaceOf(t, w) + "\n"; got["stdout"] != want {
		t.Errorf("stdout = %q, want %q", got["stdout"], want)
	}
	question := w.lastQuestion()
	if !says(question, `left out: "sandbox.grants": do not apply to a pack that is not trusted`) || says(question, "by your configuration") {
		t.Errorf("the question does not say that grants do not hold:\n%s", question)
	}
}

// A pack that contains the whole home runs nothing.
func TestPackHoldsHome(t *testing.T) {
	w := newWorld(t, strings.ReplaceAll(deploy, "acme/deploy/", "deploy/"), func(s *setup) {
		s.server.Environ = append(slices.Clone(s.server.Environ), "HOME="+filepath.Join(s.packs.Roots[0].Dir, "deploy", "x"))
	})
	w.answer = decide("once")
	w.initialize()
	w.enable("deploy")
	e := w.fails("path_denied", "deploy__sh", map[string]any{"script": "true"})
	if !strings.Contains(e["message"].(string), "whole home folder") {
		t.Errorf("error = %v", e)
	}
}

// A boxer is a runner that reports any level, and runs nothing.
type boxer struct {
	box    sandbox.Report
	result *sandbox.Result
	err    error
}

func (b *boxer) Probe(context.Context) sandbox.Report { return b.box }

func (b *boxer) Run(context.Context, sandbox.Policy, sandbox.Command) (*sandbox.Result, error) {
	return b.result, b.err
}

// What cannot be confined as required is refused before anybody is asked, with what
// would help.
func TestSandboxUnavailable(t *testing.T) {
	const help = "set kernel.unprivileged_userns_clone to 1"
	for _, c := range []struct {
		name, tool    string
		have, require sandbox.Level
		message, hint string
	}{
		{"below what is required", "sh", sandbox.LevelNone, sandbox.LevelPartial,
			`the sandbox level here is "none", and the configuration requires "partial"`, "lowers sandbox.require"},
		{"just below", "sh", sandbox.LevelPartial, sandbox.LevelFull,
			`the sandbox level here is "partial", and the configuration requires "full"`, "lowers sandbox.require"},
		{"loopback", "alone", sandbox.LevelPartial, sandbox.LevelPartial,
			`it needs the network "loopback", which the sandbox here, of level "partial", cannot give it`, "Do without this tool"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := deployWorld(t, func(s *setup) {
				s.gate.Runner, s.gate.Require = &boxer{box: sandbox.Report{Level: c.have, Hint: help}}, c.require
			})
			asked := len(w.asked)
			e := w.fails("sandbox_unavailable", "deploy__"+c.tool, map[string]any{})
			if hint, _ := e["hint"].(string); e["message"] != c.message || !strings.Contains(hint, c.hint) || !strings.Contains(hint, help) {
				t.Errorf("error = %v, want %q with %q and %q", e, c.message, c.hint, help)
			}
			if len(w.asked) != asked {
				t.Errorf("somebody was asked: %s", w.lastQuestion())
			}
			all := w.entries()
			if last := all[len(all)-1]; last.Event != audit.EventDecision || last.Decision != "deny" || last.Sandbox != c.have.String() || last.Reason != c.message {
				t.Errorf("the last line = %+v, want the denial with level %v", last, c.have)
			}
		})
	}
	t.Run("setting it up fails", func(t *testing.T) {
		err := &sandbox.ConfineError{Level: sandbox.LevelFull, Step: "mounting /usr", Err: os.ErrPermission}
		w := deployWorld(t, func(s *setup) { s.gate.Runner = &boxer{box: sandbox.Report{Level: sandbox.LevelFull}, err: err} })
		e := w.fails("sandbox_unavailable", "deploy__sh", map[string]any{})
		if !strings.Contains(e["message"].(string), "mounting /usr") || !strings.Contains(e["hint"].(string), "packs-mcp doctor") {
			t.Errorf("error = %v, want the step and what to do", e)
		}
		all := w.entries()
		if last := all[len(all)-1]; last.Event != audit.EventRunEnd || last.Sandbox != "full" || !strings.Contains(last.Error, "mounting /usr") {
			t.Errorf("the last line = %+v, want the end of the run with the step", last)
		}
	})
}

// What a level does to a run reaches the model, the person and the log.
func TestResultOfAConfinedRun(t *testing.T) {
	for _, c := range []struct {
		result        sandbox.Result
		code, message string
		hint          string
	}{
		{sandbox.Result{Cause: sandbox.CauseCPULimit, ExitCode: -1, Signal: "SIGXCPU"}, "timeout", "processor time", "limits.cpu"},
		{sandbox.Result{Cause: sandbox.CauseFileSizeLimit, ExitCode: -1, Signal: "SIGXFSZ"}, "file_size_limit", "by SIGXFSZ", "limits.file_size"},
		{sandbox.Result{Cause: sandbox.CauseProcessLimit, ExitCode: 1}, "process_limit", "more than 256 processes", "limits.processes"},
		{sandbox.Result{Cause: sandbox.CauseMemoryLimit, ExitCode: -1, Signal: "SIGKILL"}, "memory_limit", "together had more memory", "limits.memory_together in"},
	} {
		c.result.Level = sandbox.LevelPartial
		c.result.Usage = sandbox.Usage{CPU: 1500 * time.Millisecond, MaxRSS: 1 << 20}
		c.result.Changes = []*changes.Set{{ID: "c1", Folder: "/site", Changes: []changes.Change{
			{Path: "made", State: changes.Applied},
			{Path: "CLAUDE.md\x1b[2J", State: changes.Held, Reason: "its name is protected"},
		}}}
		w := deployWorld(t, func(s *setup) {
			s.gate.Runner = &boxer{box: sandbox.Report{Level: sandbox.LevelPartial}, result: &c.result}
		})
		e := w.fails(c.code, "deploy__sh", map[string]any{})
		if hint, _ := e["hint"].(string); !strings.Contains(e["message"].(string), c.message) || !strings.Contains(hint, c.hint) {
			t.Errorf("%s: error = %v, want %q and %q", c.result.Cause, e, c.message, c.hint)
		}
		got, _ := w.tool("deploy__sh", map[string]any{})
		if got["ok"] != false || got["sandbox"] != "partial" {
			t.Errorf("%s: the envelope = %v, want it not ok, and partial", c.result.Cause, got)
		}
		const note = `1 change waits for the user and is not in "/site"; tell the user to look on the approval page (packs-mcp approvals open) or with: packs-mcp changes show c1`
		if notes := texts(got["notes"]); len(notes) != 1 || notes[0] != note {
			t.Errorf("notes = %q, want %q", notes, note)
		}
		want := []any{map[string]any{
			"set": "c1", "folder": "/site", "applied": []any{"made"},
			"held": []any{map[string]any{"path": `CLAUDE.md\x1b[2J`, "reason": "its name is protected"}},
		}}
		if diff := cmp.Diff(want, got["changes"]); diff != "" {
			t.Errorf("changes differ (-want +got):\n%s", diff)
		}
		if !strings.Contains(w.log.String(), "changes of a run were not applied") {
			t.Errorf("the server's log says nothing of it: %s", w.log.String())
		}
		all := w.entries()
		if of := all[len(all)-1]; of.Event != audit.EventChanges || of.Set != "c1" || len(of.Applied) != 1 || len(of.Held) != 1 {
			t.Errorf("the line of the changes = %+v", of)
		}
		last := all[len(all)-2]
		if last.Cause != string(c.result.Cause) || last.Sandbox != "partial" || last.CPUMS != 1500 || last.MaxRSS != 1<<20 {
			t.Errorf("the last line = %+v", last)
		}
	}
}

// At each level that this machine has, a run can use what is granted, and nothing
// else.
func TestConfinedRuns(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the test's packs are POSIX scripts")
	}
	for _, level := range []sandbox.Level{sandbox.LevelPartial, sandbox.LevelFull} {
		t.Run(level.String(), func(t *testing.T) {
			box := confined(t, level)
			h := servertest.NewHouse(t)
			w := deployWorld(t, box, lives(h,
				plan.Opening{Pack: "acme/deploy", Tool: "sh", Read: []string{h.In(".config", "gh"), h.In(".gitconfig")}, Write: []string{h.In("cache")}, Home: true},
			))
			got := w.ok("deploy__sh", map[string]any{"script": `
				cat ~/.config/gh/hosts.yml
				echo x > ` + h.In("cache", "y") + ` && echo wrote
				cat ~/.ssh/id_rsa || echo no key
				(echo x > ~/.config/gh/z) || echo no write
				(echo x > "$PACKS_PACK_DIR/z") || echo no pack
			`})
			if want := "hosts\nwrote\nno key\nno write\nno pack\n"; got["stdout"] != want || got["sandbox"] != level.String() {
				t.Errorf("stdout = %q at %v, want %q\n%v", got["stdout"], got["sandbox"], want, got["stderr"])
			}
			if question := w.lastQuestion(); !says(question, "sandbox: "+level.String()) || !says(question, `gh" (by your configuration)`) {
				t.Errorf("the question does not say how it is confined:\n%s", question)
			}
			t.Run("a link", func(t *testing.T) {
				got := w.ok("deploy__sh", map[string]any{"script": "cat ~/.gitconfig ~/dotfiles/gitconfig || true"})
				if want := "[user] name = Ada\n[user] name = Ada\n"; got["stdout"] != want {
					t.Errorf("through a link that is granted = %q, want %q\n%v", got["stdout"], want, got["stderr"])
				}
				if !says(w.lastQuestion(), `gitconfig" (by your configuration, where "`) {
					t.Errorf("the question does not say where the link leads:\n%s", w.lastQuestion())
				}
			})
			// Another tool gets only the project.
			got = w.ok("deploy__in_project", map[string]any{"script": `
				echo x > made && echo wrote
				cat ~/.config/gh/hosts.yml "$OLDPWD" ../.config/gh/hosts.yml || echo no hosts
				echo x > .envrc; (echo x > .git/config) || true
			`})
			if want := "wrote\nno hosts\n"; got["stdout"] != want {
				t.Errorf("stdout = %q, want %q\n%v", got["stdout"], want, got["stderr"])
			}
			if changed := fmt.Sprint(got["changes"]); !strings.Contains(changed, ".envrc") || !strings.Contains(changed, "applied:[made]") {
				t.Errorf("changes = %v, want made applied, and .envrc held", changed)
			}
			if data, err := os.ReadFile(filepath.Join(h.Project, ".git", "config")); err != nil || len(data) > 0 {
				t.Errorf(".git/config = %q, %v, want it as it was", data, err)
			}
			if _, err := os.Lstat(filepath.Join(h.Project, ".envrc")); err == nil {
				t.Error("a new .envrc is still there")
			}
			if got := w.ok("deploy__only_reads", map[string]any{}); !strings.Contains(got["stdout"].(string), "README.md") {
				t.Errorf("the listing of the project = %v", got)
			}
		})
	}
}

// With review: all, nothing is applied before a person has seen it. The tool can ask
// for that, and so can the user, also for untrusted packs.
func TestReviewAll(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the test's packs are POSIX scripts")
	}
	box := confined(t, sandbox.LevelPartial)
	const policy = `"args": ["{{script}}"], "cwd": "project"}}`
	for name, c := range map[string]struct {
		tree  string
		grant plan.Opening
		trust packs.Trust
		held  bool
	}{
		"nobody":                 {deploy, plan.Opening{Pack: "other", Tool: "*", Review: true}, packs.TrustUser, false},
		"the tool":               {strings.Replace(deploy, policy, policy[:len(policy)-1]+`, "policy": {"review": "all"}}`, 1), plan.Opening{}, packs.TrustUser, true},
		"the user":               {deploy, plan.Opening{Pack: "acme/*", Tool: "in_project", Review: true, Git: true}, packs.TrustUser, true},
		"the user, not trusting": {deploy, plan.Opening{Pack: "*", Tool: "*", Review: true}, packs.TrustUntrusted, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := servertest.NewHouse(t)
			w := newWorld(t, c.tree, box, lives(h, c.grant), func(s *setup) { s.packs.Roots[0].Trust = c.trust })
			w.answer = decide("once")
			w.initialize()
			w.enable("deploy")
			got := w.ok("deploy__in_project", map[string]any{"script": "echo x >made"})
			_, err := os.Lstat(filepath.Join(h.Project, "made"))
			if applied := err == nil; applied == c.held {
				t.Errorf("the file is applied: %v, and should wait: %v\n%v", applied, c.held, got)
			}
			if q := w.lastQuestion(); says(q, "every change waits for you") != c.held {
				t.Errorf("the question does not say what becomes of the changes:\n%s", q)
			}
		})
	}
}

func (*boxer) Layers(context.Context, []string) []sandbox.Layer { return nil }

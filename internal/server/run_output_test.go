package server

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const printers = `
-- p/SKILL.md --
---
name: p
description: Prints.
---

### noisy

Prints JSON among warnings.

#### Parameters

None.

#### Command

` + "```bash\n./noisy.sh\n```" + `

### silent

Prints nothing and fails.

#### Parameters

None.

#### Command

` + "```bash\n./silent.sh\n```" + `

### dies

Ends by a signal.

#### Parameters

None.

#### Command

` + "```bash\n./dies.sh\n```" + `

### large

Prints much JSON.

#### Parameters

None.

#### Command

` + "```bash\n./large.sh\n```" + `
-- p/tools.json --
{"tools": [
  {"name": "plain", "description": "d", "command": {"program": "./silent.sh"}},
  {"name": "true_plain", "description": "d", "command": {"program": "true"}},
  {"name": "scalar", "description": "d", "command": {"program": "echo", "args": ["42"]}},
  {"name": "null", "description": "d", "command": {"program": "echo", "args": ["null"]}},
  {"name": "field", "description": "d", "command": {"program": "./noisy.sh"}, "output": {"extract_field": "status", "template": "It is {{output}}."}},
  {"name": "field_of_much", "description": "d", "command": {"program": "./large.sh"}, "output": {"extract_field": "last"}},
  {"name": "much", "description": "d", "command": {"program": "./large.sh"}, "output": {"extract_field": "list"}},
  {"name": "too_much", "description": "d", "command": {"program": "./huge.sh"}, "output": {"extract_field": "last"}},
  {"name": "two", "description": "d", "command": {"program": "./two.sh"}, "policy": {"allowed_exit_codes": [0, 2]}},
  {"name": "slow", "description": "d", "command": {"program": "sleep", "args": ["60"]}, "policy": {"timeout_secs": 1}}
]}
-- p/noisy.sh --
#!/bin/sh
echo "warning: one" >&2
echo '{"status": "ok",'
echo "warning: two" >&2
echo '"count": 5}'
-- p/silent.sh --
#!/bin/sh
exit 1
-- p/dies.sh --
#!/bin/sh
kill -9 $$
-- p/two.sh --
#!/bin/sh
exit 2
-- p/large.sh --
#!/bin/sh
echo '{"list": ["0"'
i=0
while [ $i -lt 5000 ]; do echo ',"abcdefgh"'; i=$((i+1)); done
echo '], "last": "the last"}'
-- p/huge.sh --
#!/bin/sh
printf '{"list": "'
dd if=/dev/zero bs=1024 count=1100 2>/dev/null | tr '\\0' a
echo '", "last": "the last"}'
`

// specs/skill-md-tools §4.3 and specs/capability-packs §6.4: a failed run says so in
// error, and mandatory fields are present even if they are empty.
func TestFailedRunsSayWhy(t *testing.T) {
	needShell(t)
	w := newWorld(t, printers)
	w.answer = decide("once")
	w.initialize()
	w.enable("p")
	for _, tt := range []struct {
		tool, code, message string
		fields              []string // fields that are present and empty
	}{
		{"silent", "command_failed", "Command failed with exit code 1", []string{"output"}},
		{"dies", "command_failed", "Command was ended by SIGKILL", []string{"output"}},
		{"plain", "command_failed", "Command failed with exit code 1", []string{"stdout", "stderr"}},
		{"slow", "timeout", "the program was stopped after 1s", []string{"stdout", "stderr"}},
		{"true_plain", "", "", []string{"stdout", "stderr"}},
		{"two", "", "", []string{"stdout", "stderr"}}, // an exit code that the tool allows
	} {
		got, isError := w.tool("p__"+tt.tool, map[string]any{})
		e, _ := got["error"].(map[string]any)
		if slices.Contains(tt.fields, "output") {
			// The specification's own form, next to ours.
			if got["error"] != tt.message {
				t.Errorf("%s: error = %v, want %q", tt.tool, got["error"], tt.message)
			}
			e, _ = got["failure"].(map[string]any)
		} else if got["failure"] != nil {
			t.Errorf("%s: failure = %v, want none", tt.tool, got["failure"])
		}
		if isError != (tt.code != "") || tt.code != "" && (e["code"] != tt.code || e["message"] != tt.message) || tt.code == "" && e != nil {
			t.Errorf("%s = %v (isError %v), want the error %s: %s", tt.tool, got, isError, tt.code, tt.message)
		}
		for _, f := range tt.fields {
			if got[f] != "" {
				t.Errorf("%s: %s = %v, want an empty text", tt.tool, f, got[f])
			}
		}
		if merged := slices.Contains(tt.fields, "output"); merged != (got["stdout"] == nil) || merged == (got["output"] == nil) {
			t.Errorf("%s = %v, want either output, or stdout and stderr", tt.tool, got)
		}
	}
	got, isError := w.tool("capability_packs_exec_best_effort", map[string]any{"pack_id": "p", "command": "./silent.sh"})
	e, _ := got["error"].(map[string]any)
	if !isError || e["message"] != "Command failed with exit code 1" || got["stdout"] != "" || got["stderr"] != "" {
		t.Errorf("exec_best_effort = %v, want the error and two empty streams", got)
	}
}

// specs/skill-md-tools §4.4 and specs/tool-packs "Output": only standard output is
// parsed, all of it.
func TestParsesStandardOutput(t *testing.T) {
	needShell(t)
	w := newWorld(t, printers)
	w.answer = decide("once")
	w.initialize()
	w.enable("p")
	noisy := map[string]any{"status": "ok", "count": 5.0}
	for _, tt := range []struct {
		tool   string
		parsed any
		output any // nil: not compared
	}{
		{"noisy", noisy, nil},
		{"field", noisy, "It is ok."},
		{"scalar", 42.0, nil},
		{"null", nil, nil},
		{"field_of_much", "list and last", "the last"},
		{"large", "list and last", nil},
	} {
		got := w.ok("p__"+tt.tool, map[string]any{})
		value, isThere := got["parsed"]
		if m, ok := value.(map[string]any); ok && m["list"] != nil {
			if n := len(m["list"].([]any)); n != 5001 {
				t.Errorf("%s: parsed has a list of %d, want all 5001", tt.tool, n)
			}
			value = "list and last"
		}
		if diff := cmp.Diff(tt.parsed, value); diff != "" || !isThere {
			t.Errorf("%s: parsed is there: %v; -want +got\n%s", tt.tool, isThere, diff)
		}
		if tt.output != nil && got["output"] != tt.output {
			t.Errorf("%s: output = %v, want %v", tt.tool, got["output"], tt.output)
		}
		if tt.tool == "noisy" && strings.Count(got["output"].(string), "warning: ") != 2 {
			t.Errorf("noisy: output = %q, want both streams", got["output"])
		}
	}
	// The parsed output is cut like the output itself.
	if got := w.ok("p__much", map[string]any{}); len(got["output"].(string)) > 20<<10 || got["truncated"] != true {
		t.Errorf("much: %d bytes of output, truncated %v; want it cut", len(got["output"].(string)), got["truncated"])
	}
	got := w.ok("p__too_much", map[string]any{})
	if notes := strings.Join(texts(got["notes"]), "\n"); got["parsed"] != nil || !strings.Contains(notes, "more than 1048576 bytes") {
		t.Errorf("too_much: parsed %v, notes %q; want to hear that it is too much", got["parsed"] != nil, notes)
	}
}

// A number can be a secret, too.
func TestParsedNumbersAreRedacted(t *testing.T) {
	needShell(t)
	w := newWorld(t, printers, func(s *setup) { s.server.Environ = append(s.server.Environ, "BANK_SECRET=12345678901") })
	w.answer = decide("once")
	w.initialize()
	got := w.ok("capability_packs_exec_best_effort", map[string]any{"pack_id": "p", "command": "echo", "args": []string{"[1234567890", "12345678901]"}})
	if got["parsed"] != nil || strings.Contains(got["stdout"].(string), "12345678901") {
		t.Errorf("stdout %v, parsed %v", got["stdout"], got["parsed"])
	}
	got = w.ok("capability_packs_exec_best_effort", map[string]any{"pack_id": "p", "command": "echo", "args": []string{"[7,", "12345678901]"}})
	if diff := cmp.Diff([]any{7.0, "[redacted]"}, got["parsed"]); diff != "" {
		t.Errorf("parsed: -want +got\n%s", diff)
	}
}

// What a model passed comes back unchanged, unless it is declared secret or is a
// secret of the environment. The log has neither.
func TestNamesDoNotRedactResults(t *testing.T) {
	needShell(t)
	const tree = `
-- p/SKILL.md --
---
name: p
description: Prints.
---
-- p/tools.json --
{"tools": [{"name": "echo", "description": "d", "inputSchema": {"type": "object", "properties": {
  "token": {"type": "string"}, "password": {"type": "string"}, "other": {"type": "string"},
  "only": {"type": "string", "writeOnly": true}, "phrase": {"type": "string", "format": "password"}, "own": {"type": "string", "secret": true}}},
  "command": {"program": "echo", "args": ["{{token}}", "{{password}}", "{{only}}", "{{phrase}}", "{{own}}", "{{other}}"]}}]}
`
	w := newWorld(t, tree, func(s *setup) { s.server.Environ = append(s.server.Environ, "BANK_SECRET=of-the-environment") })
	w.answer = decide("once")
	w.initialize()
	w.enable("p")
	got := w.ok("p__echo", map[string]any{
		"token": "main-branch", "password": "correct horse", "only": "declared-1", "phrase": "declared-2", "own": "declared-3", "other": "of-the-environment",
	})
	if want := "main-branch correct horse [redacted] [redacted] [redacted] [redacted]\n"; got["stdout"] != want {
		t.Errorf("stdout = %q, want %q", got["stdout"], want)
	}
	w.close()
	log, err := os.ReadFile(w.audit)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"main-branch", "correct horse", "declared-1", "declared-2", "declared-3", "of-the-environment"} {
		if strings.Contains(string(log), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}

package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// workbench has a tool for each way in which a program can end.
const workbench = `
-- bench/SKILL.md --
---
name: bench
description: A workbench.
---
-- bench/tools.json --
{"tools": [
 {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}, "list": {"type": "array", "items": {"type": "string"}}, "n": {"type": "integer", "minimum": 1}},
   "required": ["text"], "additionalProperties": false}, "command": {"program": "./args.sh", "args": ["--", "{{text}}", "{{list...}}"]}},
 {"name": "option", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}, "command": {"program": "./args.sh", "args": ["{{text}}"]}},
 {"name": "fail", "inputSchema": {"type": "object"}, "command": ["./fail.sh"]},
 {"name": "grep", "inputSchema": {"type": "object"}, "command": ["./one.sh"], "policy": {"allowed_exit_codes": [0, 1]}},
 {"name": "hang", "inputSchema": {"type": "object"}, "command": ["./hang.sh"], "policy": {"timeout_secs": 1}},
 {"name": "flood", "inputSchema": {"type": "object"}, "command": ["./flood.sh"]},
 {"name": "long", "inputSchema": {"type": "object"}, "command": ["./long.sh"]},
 {"name": "die", "inputSchema": {"type": "object"}, "command": ["./die.sh"]},
 {"name": "missing", "inputSchema": {"type": "object"}, "command": ["no-such-program-anywhere"]},
 {"name": "nofile", "inputSchema": {"type": "object"}, "command": ["./none.sh"]},
 {"name": "plain", "inputSchema": {"type": "object"}, "command": ["./plain.txt"]},
 {"name": "garbage", "inputSchema": {"type": "object"}, "command": ["./garbage"]},
 {"name": "nointerp", "inputSchema": {"type": "object"}, "command": ["./nointerp.sh"]},
 {"name": "json", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}, "command": {"program": "./cat.sh", "stdin": "json"}},
 {"name": "field", "inputSchema": {"type": "object"}, "command": ["./json.sh"], "output": {"format": "json", "extract_field": "number", "template": "Ticket {{output}}"}},
 {"name": "env", "inputSchema": {"type": "object"}, "command": {"program": "./env.sh", "env": {"BENCH": "set"}}},
 {"name": "secret", "inputSchema": {"type": "object", "properties": {"password": {"type": "string", "format": "password"}}}, "command": {"program": "./args.sh", "args": ["{{password}}"]}},
 {"name": "page", "inputSchema": {"type": "object", "properties": {"page": {"type": "string"}}}, "command": {"program": "./args.sh", "args": ["{{context.url}}"]}},
 {"name": "ansi", "inputSchema": {"type": "object"}, "command": ["./ansi.sh"]},
 {"name": "here", "inputSchema": {"type": "object"}, "command": {"program": "./pwd.sh", "cwd": "pack_root"}}
]}
-- bench/args.sh --
#!/bin/sh
for a; do printf '<%s>' "$a"; done
-- bench/fail.sh --
#!/bin/sh
echo out
echo oops >&2
exit 3
-- bench/one.sh --
#!/bin/sh
exit 1
-- bench/hang.sh --
#!/bin/sh
echo started
exec sleep 60
-- bench/flood.sh --
#!/bin/sh
exec yes 0123456789012345678901234567890123456789
-- bench/long.sh --
#!/bin/sh
echo begin
head -c 100000 /dev/zero | tr '\0' x
echo end
-- bench/die.sh --
#!/bin/sh
kill -9 $$
-- bench/plain.txt --
not a program
-- bench/garbage* --
this is no program and has no first line that names one
-- bench/nointerp.sh --
#!/no/such/interpreter
-- bench/cat.sh --
#!/bin/sh
cat
-- bench/json.sh --
#!/bin/sh
echo '{"number": 42, "other": "\u001b[31m"}'
-- bench/env.sh --
#!/bin/sh
env
-- bench/ansi.sh --
#!/bin/sh
printf '\033[2J\033]52;c;x\007\342\200\256plain\r\n'
-- bench/pwd.sh --
#!/bin/sh
pwd
`

// bench returns a world with all tools of the workbench enabled.
func bench(t *testing.T, l Limits, options ...option) *world {
	t.Helper()
	needShell(t)
	w := newWorld(t, workbench, append([]option{limited(l)}, options...)...)
	w.answer = decide("once")
	w.initialize()
	w.enable("bench")
	return w
}

// run calls a tool of the workbench.
func (w *world) run(tool string, args map[string]any) (map[string]any, bool) {
	w.t.Helper()
	return w.tool("capability_packs_call_tool", map[string]any{"pack_id": "bench", "tool": tool, "arguments": args})
}

func TestCallTool(t *testing.T) {
	w := bench(t, Limits{})
	for _, c := range []struct {
		tool string
		args map[string]any
		want map[string]any
	}{
		{"echo", map[string]any{"text": "a b", "list": []string{"$(id)", "", "{{text}}", "-x"}}, map[string]any{"ok": true, "exit_code": 0.0, "stdout": "<--><a b><$(id)><><{{text}}><-x>"}},
		{"echo", map[string]any{"text": "`id`;id\n&&%x%"}, map[string]any{"stdout": "<--><`id`;id\n&&%x%>"}},
		{"fail", nil, map[string]any{"ok": false, "exit_code": 3.0, "stdout": "out\n", "stderr": "oops\n"}},
		{"grep", nil, map[string]any{"ok": true, "exit_code": 1.0, "error": nil}},
		{"die", nil, map[string]any{"ok": false, "exit_code": -1.0, "signal": "SIGKILL"}},
		{"json", map[string]any{"a": 1}, map[string]any{"ok": true, "stdout": `{"a":1}` + "\n"}},
		{"field", nil, map[string]any{"ok": true, "output": "Ticket 42"}},
		{"secret", map[string]any{"password": "hunter22"}, map[string]any{"stdout": "<[redacted]>"}},
		{"ansi", nil, map[string]any{"stdout": `\x1b[2J\x1b]52;c;x\x07\u202eplain` + "\n"}},
	} {
		got, isError := w.run(c.tool, c.args)
		if isError != (got["ok"] == false) {
			t.Errorf("%s: isError = %v, ok = %v", c.tool, isError, got["ok"])
		}
		for k, want := range c.want {
			if got[k] != want {
				t.Errorf("%s %v: %s = %q, want %q", c.tool, c.args, k, got[k], want)
			}
		}
		if got["run_id"] == "" || got["sandbox"] != "none" || got["workspace"] == "" {
			t.Errorf("%s: the envelope lacks something: %v", c.tool, got)
		}
	}
	field, _ := w.run("field", nil)
	if p, ok := field["parsed"].(map[string]any); !ok || p["number"] != 42.0 || strings.Contains(p["other"].(string), "\x1b") {
		t.Errorf("parsed = %v, want the object with its strings escaped", field["parsed"])
	}
	for _, e := range w.entries() {
		if strings.Contains(e.Args.String(), "hunter22") {
			t.Errorf("the audit log has the password: %s", e.Args)
		}
	}
}

// The names with which a tool can be called, and the error for a tool that is not
// enabled.
func TestCallToolNames(t *testing.T) {
	needShell(t)
	w := newWorld(t, triage)
	w.answer = decide("once")
	w.initialize()
	greet := map[string]any{"who": "Ada"}
	through := func(tool string) map[string]any {
		return map[string]any{"pack_id": "triage", "tool": tool, "arguments": greet}
	}
	if e := w.fails("not_enabled", "capability_packs_call_tool", through("greet")); !strings.Contains(e["hint"].(string), "enable_tools") {
		t.Errorf("hint = %q, want enable_tools in it", e["hint"])
	}
	w.fails("not_enabled", "triage__greet", greet)
	w.fails("not_found", "triage__wave", greet)
	if reply := w.request("tools/call", map[string]any{"name": "no_such_tool", "arguments": map[string]any{}}); reply["error"] == nil {
		t.Errorf("a call of no tool at all = %v, want a protocol error", reply)
	}
	w.enable("triage")
	for name, args := range map[string]map[string]any{
		"triage__greet":              greet,
		"capability_packs_call_tool": through("greet"),
		"capability_packs.call_tool": through("triage__greet"),
	} {
		if got := w.ok(name, args); got["stdout"] != "hello Ada\n" {
			t.Errorf("%s = %v", name, got)
		}
		if q := w.asked[len(w.asked)-1]; !says(q, "greet") || !says(q, "of pack triage?") {
			t.Errorf("%s asks %q, want the pack's tool", name, strings.SplitN(q, "\n", 2)[0])
		}
	}
	if e := w.fails("not_found", "capability_packs_call_tool", through("great")); !slices.Contains(texts(e["near"]), "greet") {
		t.Errorf("near = %v, want greet", e["near"])
	}
}

func TestCallToolRefuses(t *testing.T) {
	w := bench(t, Limits{})
	asked := len(w.asked)
	for _, c := range []struct {
		name, code, tool string
		args             any
		message          string
	}{
		{"required is missing", "invalid_arguments", "echo", map[string]any{}, "text"},
		{"wrong type", "invalid_arguments", "echo", map[string]any{"text": 5}, "/text"},
		{"too small", "invalid_arguments", "echo", map[string]any{"text": "x", "n": 0}, "/n"},
		{"unknown", "invalid_arguments", "echo", map[string]any{"text": "x", "other": 1}, "other"},
		{"objects in a list of strings", "invalid_arguments", "echo", map[string]any{"text": "x", "list": []any{map[string]any{"a": 1}}}, "/list/0"},
		{"not an object", "invalid_arguments", "echo", []string{"x"}, "object"},
		{"text as arguments", "invalid_arguments", "echo", `{"text": "x"}`, "object"},
		{"NUL", "invalid_arguments", "echo", map[string]any{"text": "a\x00b"}, ""},
		{"an option in disguise", "invalid_arguments", "option", map[string]any{"text": "--output=/tmp/evil"}, ""},
		{"program not on PATH", "program_not_found", "missing", nil, "no-such-program-anywhere"},
		{"program not in the pack", "program_not_found", "nofile", nil, "./none.sh"},
		{"no permission", "permission_denied", "plain", nil, "plain.txt"},
	} {
		e := w.fails(c.code, "capability_packs_call_tool", map[string]any{"pack_id": "bench", "tool": c.tool, "arguments": c.args})
		if !strings.Contains(e["message"].(string), c.message) || e["hint"] == nil {
			t.Errorf("%s: %v, want %q and a hint", c.name, e, c.message)
		}
		if c.code == "invalid_arguments" && strings.Contains(c.message, "/") {
			schema, _ := e["schema"].(map[string]any)
			if props, _ := schema["properties"].(map[string]any); props["text"] == nil {
				t.Errorf("%s: the error does not have the tool's schema: %v", c.name, e)
			}
		}
	}
	if len(w.asked) != asked {
		t.Errorf("%d questions were asked, want none", len(w.asked)-asked)
	}
	for _, e := range w.entries() {
		if e.Event == "run.start" {
			t.Errorf("something ran: %+v", e)
		}
	}
}

// A program exists but cannot be started: this is known before the question, or found
// out when it is tried. Nothing hangs, and the log has the end of the run.
func TestCallToolCannotStart(t *testing.T) {
	w := bench(t, Limits{})
	for tool, codes := range map[string][]string{
		"garbage":  {"not_executable"},
		"nointerp": {"program_not_found"},
	} {
		got, isError := w.run(tool, nil)
		e, _ := got["error"].(map[string]any)
		if code, _ := e["code"].(string); !isError || !slices.Contains(codes, code) || e["hint"] == nil {
			t.Errorf("%s = %v, want one of %q and a hint", tool, got, codes)
		}
	}
	starts, ends := 0, 0
	for _, e := range w.entries() {
		switch e.Event {
		case "run.start":
			starts++
		case "run.end":
			ends++
			if e.Error == "" {
				t.Errorf("the end of the run says no error: %+v", e)
			}
		}
	}
	if starts != ends {
		t.Errorf("%d runs started in the log, %d ended", starts, ends)
	}
}

func TestCallToolIsStopped(t *testing.T) {
	w := bench(t, Limits{Run: sandbox.Limits{OutputTotal: 1 << 20, Output: 2 << 10}})
	began := time.Now()
	hang, isError := w.run("hang", nil)
	if e, _ := hang["error"].(map[string]any); !isError || e["code"] != "timeout" || hang["ok"] != false || hang["stdout"] != "started\n" || hang["signal"] == nil {
		t.Errorf("hang = %v, want a timeout, and what it wrote until then", hang)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("a timeout of 1 s took %s", took)
	}
	flood, isError := w.run("flood", nil)
	if e, _ := flood["error"].(map[string]any); !isError || e["code"] != "output_limit" || flood["truncated"] != true {
		t.Errorf("flood: error %v, truncated %v, want output_limit", flood["error"], flood["truncated"])
	}
	if n := len(flood["stdout"].(string)); n > 3<<10 {
		t.Errorf("flood gives %d bytes of output", n)
	}

	// Output that is too long is not lost: the beginning and the end are shown, and
	// all of it is kept.
	long, isError := w.run("long", nil)
	text, _ := long["stdout"].(string)
	if isError || long["truncated"] != true || !strings.HasPrefix(text, "begin\n") || !strings.HasSuffix(text, "end\n") {
		t.Fatalf("long = %v, want head and tail", long)
	}
	artifacts := objects(long["artifacts"])
	notes := strings.Join(texts(long["notes"]), "\n")
	if len(artifacts) == 0 || !strings.Contains(notes, fmt.Sprint(artifacts[0]["path"])) {
		t.Fatalf("artifacts %v, notes %q, want the whole output and its name", artifacts, notes)
	}
	kept := w.ok("capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": artifacts[0]["path"], "offset": 100_000})
	if kept["size_bytes"] != 100_010.0 || kept["content"] != strings.Repeat("x", 6)+"end\n" {
		t.Errorf("the kept output ends %v (%v bytes)", kept["content"], kept["size_bytes"])
	}
}

// The environment of a run is made from a list of allowed variables: the server's own
// environment holds the client's keys.
func TestCallToolEnvironment(t *testing.T) {
	w := bench(t, Limits{}, func(s *setup) {
		s.server.Environ = append(slices.Clone(s.server.Environ), "AWS_SECRET_ACCESS_KEY=hidden-1", "OPENAI_API_KEY=hidden-2", "SSH_AUTH_SOCK=/hidden-3", "LD_PRELOAD=", "HTTP_PROXY=http://hidden-4")
	})
	got, _ := w.run("env", nil)
	env := got["stdout"].(string)
	if strings.Contains(env, "hidden") || strings.Contains(env, "LD_PRELOAD") {
		t.Errorf("the environment of a run has what it must not have:\n%s", env)
	}
	pack, err := filepath.EvalSymlinks(filepath.Join(w.root, "bench"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"BENCH=set\n", "PACKS_PACK_ID=bench\n", "PACKS_PACK_DIR=" + pack + "\n", "PACKS_WORKSPACE=", "PACKS_RUN_ID=" + got["run_id"].(string) + "\n", "PATH=", "TERM=dumb\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment has no %q:\n%s", want, env)
		}
	}
	for line := range strings.Lines(env) {
		if value, ok := strings.CutPrefix(line, "HOME="); ok && !strings.Contains(env, "PACKS_WORKSPACE="+value) {
			t.Errorf("HOME is %q, want the workspace", value)
		}
	}
	here, _ := w.run("here", nil)
	if here["stdout"] != pack+"\n" {
		t.Errorf("cwd pack_root = %q, want %q", here["stdout"], pack)
	}
}

// What a client says about its user's context fills context placeholders.
func TestCallToolContext(t *testing.T) {
	w := bench(t, Limits{}, func(s *setup) { s.server.Context = map[string]string{"url": "http://configured/"} })
	if got, _ := w.run("page", nil); got["stdout"] != "<http://configured/>" {
		t.Errorf("context from the configuration: %v", got)
	}
	reply := result(t, w.request("tools/call", map[string]any{
		"name": "bench__page", "arguments": map[string]any{},
		"_meta": map[string]any{"packs-mcp/context": map[string]any{"url": "http://said/"}},
	}))
	if got := reply["structuredContent"].(map[string]any); got["stdout"] != "<http://said/>" {
		t.Errorf("context from the client: %v", got)
	}
}

// The question shows every argument. A call that is too long to be shown cannot be
// approved.
func TestCallToolQuestion(t *testing.T) {
	w := bench(t, Limits{})
	w.run("echo", map[string]any{"text": strings.Repeat("A", 300) + " --evil\u202e", "list": []string{"\x1b[2J", "рayload"}})
	q := w.asked[len(w.asked)-1]
	for _, want := range []string{strings.Repeat("A", 300) + ` --evil\u202e"`, `\x1b[2J`, `\u0440ayload`} {
		if !says(q, want) {
			t.Errorf("the question does not have %q:\n%s", want, q)
		}
	}
	asked := len(w.asked)
	w.fails("denied", "capability_packs_call_tool", map[string]any{"pack_id": "bench", "tool": "echo", "arguments": map[string]any{"text": strings.Repeat("A", 50_000)}})
	if len(w.asked) != asked {
		t.Errorf("a question was asked that cannot be shown in full")
	}
}

// A chat may run only so many programs at a time; the others wait.
func TestRunsWaitInOrder(t *testing.T) {
	needShell(t)
	w := newWorld(t, `
-- gate/SKILL.md --
---
name: gate
description: Runs until it is let go.
---
-- gate/tools.json --
[{"name": "hold", "inputSchema": {"type": "object", "properties": {"n": {"type": "string"}}}, "command": {"program": "./hold.sh", "args": ["{{n}}"]}}]
-- gate/hold.sh --
#!/bin/sh
echo "$1" > "started-$1"
while ! [ -e go ]; do sleep 0.02; done
`, limited(Limits{Runs: 2}))
	w.answer = decide("chat")
	w.initialize()
	w.enable("gate")
	const calls = 5
	for i := range calls {
		w.send(map[string]any{"id": 1_000_000 + i, "method": "tools/call", "params": map[string]any{"name": "gate__hold", "arguments": map[string]any{"n": fmt.Sprint(i)}}})
	}
	// Answer the questions of the first calls until two programs run. Meanwhile pings
	// are answered.
	started := func() int {
		found, err := filepath.Glob(filepath.Join(w.space(), "started-*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for deadline := time.Now().Add(20 * time.Second); started() < 2; {
		if time.Now().After(deadline) {
			t.Fatal("two programs did not start")
		}
		if got := w.request("ping", nil); got["result"] == nil {
			t.Fatalf("ping = %v", got)
		}
	}
	for range 20 {
		w.request("ping", nil)
	}
	if n := started(); n != 2 {
		t.Errorf("%d programs run, want 2", n)
	}
	if err := os.WriteFile(filepath.Join(w.space(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for range calls {
		got := result(t, w.receive())["structuredContent"].(map[string]any)
		if got["ok"] != true {
			t.Errorf("a run = %v", got)
		}
	}
	if n := started(); n != calls {
		t.Errorf("%d programs ran, want %d", n, calls)
	}
}

// A big number reaches the program exactly as it was written.
func TestCallToolBigNumber(t *testing.T) {
	needShell(t)
	w := newWorld(t, pack("big", "Big.")+`-- big/tools.json --
[{"name": "n", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}, "command": {"program": "echo", "args": ["{{n}}"]}}]
`)
	w.answer = decide("once")
	w.initialize()
	w.enable("big")
	w.raw(`{"jsonrpc":"2.0","id":900,"method":"tools/call","params":{"name":"big__n","arguments":{"n":9007199254740993}}}`)
	got := result(t, w.receive())["structuredContent"].(map[string]any)
	if got["stdout"] != "9007199254740993\n" {
		b, _ := json.Marshal(got)
		t.Errorf("the run = %s, want the number as it was", b)
	}
}

// The schema in an error is the one in the list, in which nothing is hidden.
func TestSchemaOfAnError(t *testing.T) {
	w := newWorld(t, pack("veiled", "V.")+"-- veiled/tools.json --\n"+
		`{"tools": [{"name": "t", "description": "T.", "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "description": "A`+"\U000e0041\u200b\u2028"+`."}}, "required": ["a"]}, "command": {"program": "true", "args": ["{{a}}"]}}]}`+"\n")
	w.answer = decide("once")
	w.initialize()
	w.enable("veiled")
	e := w.fails("invalid_arguments", "veiled__t", map[string]any{"b": 1})
	text := fmt.Sprint(e["schema"])
	if e["schema"] == nil || strings.ContainsAny(text, "\U000e0041\u200b\u2028") || !strings.Contains(text, `\u200b`) {
		t.Errorf("the schema of the error is %q, want what is hidden in it escaped", text)
	}
}

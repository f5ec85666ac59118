//go:build unix

package approvals_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Runs that were really refused something are explained from the log alone, with the
// line that allows it, or with the statement that nothing does.
func TestExplain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(triage, `{"tools": [`, `{"tools": [
  {"name": "cat", "description": "Show it.", "command": {"program": "cat", "args": ["{{f}}"]},
   "inputSchema": {"type": "object", "properties": {"f": {"type": "string"}}, "required": ["f"]}},
  {"name": "sh", "description": "Do it.", "command": {"program": "sh", "args": ["-c", "eval \"$1\"", "sh", "{{f}}"]},
   "inputSchema": {"type": "object", "properties": {"f": {"type": "string"}}, "required": ["f"]}},`, 1))
	w.put("home/config.yaml", "limits: {file_size: 1MiB, processes: 40, memory: 256MiB, timeout: 20s}\n")
	w.put("secrets/.ssh/id_rsa", "not for you\n")
	if err := os.Chmod(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	c := w.connect(choose("once"))
	c.enable("triage")
	var box struct{ Level string }
	type refused struct {
		Run, Tool, Sandbox string
		Findings           []struct{ What, Path, Why, Allow, Where string }
	}
	explain := func(args ...string) (r refused, text string) {
		t.Helper()
		if err := json.Unmarshal([]byte(w.ok(append([]string{"sandbox", "explain", "--json"}, args...)...)), &r); err != nil {
			t.Fatal(err)
		}
		return r, w.ok(append([]string{"sandbox", "explain"}, args...)...)
	}
	ssh := filepath.Join(w.root, "secrets", ".ssh", "id_rsa")
	pack := filepath.Join(w.packs, "triage")
	python := "python3 -c 'a = []\nwhile True: a.append(bytes(1 << 24))'"
	var runs []string
	for _, tc := range []struct {
		name, tool, arg  string
		path, why, allow string // words
		none             bool   // this also holds if nothing confines
	}{
		{name: "a key", tool: "cat", arg: ssh, path: ssh, why: "could not see this", allow: "read: [" + ssh + "]"},
		{name: "our own files", tool: "cat", arg: w.log(), path: w.log(), why: "packs-mcp's own"},
		{name: "the pack", tool: "sh", arg: "echo x > " + pack + "/new", path: pack + "/new", why: "This is the pack"},
		{name: "the system", tool: "sh", arg: "touch /usr/new", path: "/usr/new", why: "This is the system's"},
		{name: "another folder", tool: "sh", arg: "mkdir " + w.root + "/secrets/new", path: w.root + "/secrets/new", why: "could not see this", allow: "write: [" + w.root + "/secrets]"},
		{name: "a large file", tool: "sh", arg: "head -c 3000000 /dev/zero > big", why: "The limit of a file is 1MiB", allow: "file_size: 2MiB"},
		{name: "processes", tool: "sh", arg: "for i in $(seq 100); do sleep 3 & done; wait", why: "The limit of processes is 40", allow: "processes: 80"},
		{name: "memory", tool: "sh", arg: python, why: "The limit of memory of a process is 256MiB", allow: "memory: 512MiB"},
		{name: "the network", tool: "sh", arg: "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 2)'", why: `the network "none"`, allow: "network: full"},
		{name: "its own error", tool: "sh", arg: "exit 3"},
	} {
		o := c.tool(callTool, object{"pack_id": "triage", "tool": tc.tool, "arguments": object{"f": tc.arg}})
		if o.code == "" && o.content["ok"] == true {
			t.Logf("%s: was not refused here", tc.name)
			continue
		}
		r, text := explain()
		box.Level = r.Sandbox
		runs = append(runs, r.Run)
		if r.Sandbox == "none" {
			t.Skip("sandbox none: nothing is refused here")
		}
		if tc.why == "" {
			if len(r.Findings) != 0 || !strings.Contains(text, "Nothing in the log says") || !strings.Contains(text, "exit 3") {
				t.Errorf("%s: %+v\n%s", tc.name, r, text)
			}
			continue
		}
		found := false
		for _, f := range r.Findings {
			if strings.Contains(f.Why, tc.why) && strings.Contains(f.Path, tc.path) && strings.Contains(f.Allow, tc.allow) && (tc.allow != "") == (f.Allow != "") && (f.Allow != "") == (f.Where != "") {
				found = true
			}
		}
		if !found || r.Tool != tc.tool || !strings.Contains(text, tc.why) {
			b, _ := json.Marshal(o.content)
			t.Errorf("%s: explained as %+v\n%s\nThe run was %s", tc.name, r, text, b)
		}
	}
	if r, _ := explain(runs[0]); r.Run != runs[0] {
		t.Errorf("explain %s = %+v", runs[0], r)
	}
	w.fails(1, "runs begin with", "sandbox", "explain", "run-")
	w.fails(1, "has no run", "sandbox", "explain", "run-NONE")
	w.fails(2, "sandbox explain takes no more than 1", "sandbox", "explain", "a", "b")

	// The explanation is true: with the line that it gives, the run succeeds.
	c.close()
	r, _ := explain(runs[0])
	w.put("home/config.yaml", r.Findings[0].Allow+"\n")
	c = w.connect(choose("once"))
	c.enable("triage")
	c.tool(callTool, object{"pack_id": "triage", "tool": "cat", "arguments": object{"f": ssh}}).want("", "not for you")
}

// A program can name any path. Paths that no run should get are not proposed, and
// what is proposed is correct YAML.
func TestExplainProposesOnlySafePaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.NewReplacer("-- triage/", "-- null/", "name: triage", `name: "null"`).Replace(triage))
	w.put("config.txt", "x\n")
	w.put(".ssh/id_rsa", "not for you\n")
	c := w.connect(choose("once"))
	for _, tc := range []struct{ path, why, allow string }{
		{"/", "your whole home folder", ""},
		{"/var", "the system's top", ""},
		{"/var/..//var", "the system's top", ""},
		{"/proc/1/root/etc", "the system's own", ""},
		{"/dev/tty", "the system's own", ""},
		{"~/.ssh", "a folder of keys or passwords", ""},
		{"~/.ssh/id_rsa", "grant it only if you know what for", ".ssh/id_rsa]"},
		{"/no/such/file", "nothing at that path", ""},
		{filepath.Join(w.root, "config.txt"), "could not see this", `pack: "null"`},
	} {
		o := c.tool(execTool, object{"pack_id": "null", "command": "sh", "args": []string{"-c", `echo "cat: '$1': Permission denied" >&2; exit 1`, "sh", tc.path}})
		if o.content["sandbox"] == "none" {
			t.Skip("sandbox none: nothing is refused here")
		}
		var r struct{ Findings []struct{ Why, Allow string } }
		if err := json.Unmarshal([]byte(w.ok("sandbox", "explain", "--json")), &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Why, tc.why) || !strings.Contains(r.Findings[0].Allow, tc.allow) || (tc.allow == "") != (r.Findings[0].Allow == "") {
			t.Errorf("%s: explained as %+v, want %q and %q", tc.path, r.Findings, tc.why, tc.allow)
		}
	}
}

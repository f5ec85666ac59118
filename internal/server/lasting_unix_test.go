//go:build unix

package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lastIfOffered is a user who allows for the chat whenever that is offered.
func lastIfOffered(offered *bool) func(string, map[string]any) map[string]any {
	return func(_ string, schema map[string]any) map[string]any {
		decision := schema["properties"].(map[string]any)["decision"].(map[string]any)
		*offered = slices.Contains(decision["enum"].([]any), any("chat"))
		if *offered {
			return decide("chat")("", nil)
		}
		return decide("once")("", nil)
	}
}

// §9.13: an answer for the chat ends when a file changes that the command could read,
// whether its arguments name it, in any way, or the command reads it by itself.
func TestLastingAnswers(t *testing.T) {
	needShell(t)
	large := func(t *testing.T, dir string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range 600 { // package plan binds folders of at most 512 entries
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		about   string
		command string
		args    []string // WS is the workspace, OUT another folder
		large   string   // a folder with more files than can be bound
		offered bool
		change  string // the file that changes after the answer
		asks    bool   // whether the call after that asks
	}{
		{about: "a script", args: []string{"r.sh"}, change: "WS/r.sh", offered: true, asks: true},
		{about: "an option's file", args: []string{"-c", "true", "-fr.sh"}, change: "WS/r.sh", offered: true, asks: true},
		{about: "an option's file elsewhere", args: []string{"-c", "true", "-fOUT/r.sh"}, change: "OUT/r.sh", offered: true, asks: true},
		{about: "a value", args: []string{"-c", "true", "--x=OUT/r.sh"}, change: "OUT/r.sh", offered: true, asks: true},
		{about: "@FILE", args: []string{"-c", "true", "@OUT/r.sh"}, change: "OUT/r.sh", offered: true, asks: true},
		{about: "one of a list", args: []string{"-c", "true", "a:OUT/r.sh:b"}, change: "OUT/r.sh", offered: true, asks: true},
		{about: "a folder", args: []string{"-c", "true", "-C", "OUT"}, change: "OUT/new", offered: true, asks: true},
		{about: "a folder at its option", args: []string{"-c", "true", "-COUT"}, change: "OUT/sub/m.py", offered: true, asks: true},
		{about: "a folder's value", args: []string{"-c", "true", "--directory=OUT"}, change: "OUT/Makefile", offered: true, asks: true},
		{about: "beside a file that is named", args: []string{"-c", "true", "OUT/r.sh"}, change: "OUT/helper.py", offered: true, asks: true},
		{about: "a module of the working folder", args: []string{"-c", "true", "-m", "mod"}, change: "WS/mod.py", offered: true, asks: true},
		{about: "what no argument names", args: []string{"-c", "true"}, change: "WS/Makefile", offered: true, asks: true},
		{about: "a hidden file", args: []string{"-c", "true"}, change: "WS/.config/x/rc", offered: true, asks: true},
		{about: "nothing changes", args: []string{"-c", "true"}, offered: true},
		{about: "a file elsewhere that nothing names", args: []string{"-c", "true"}, change: "OUT/r.sh", offered: true},
		{about: "a large folder", args: []string{"-c", "true", "-COUT/large"}, large: "OUT/large", asks: true},
		{about: "a large folder around a file", args: []string{"-c", "true", "OUT/large/1"}, large: "OUT/large", asks: true},
		{about: "a large workspace", args: []string{"-c", "true"}, large: "WS/large", asks: true},
		{about: "through /proc", args: []string{"-c", "true", "/proc/self/cwd/r.sh"}, asks: true},
		{about: "the top", args: []string{"-c", "true", "-C/"}, asks: true},

		{about: "ls, anything changes", command: "ls", args: []string{"-a"}, change: "WS/new", offered: true},
		{about: "ls, a large workspace", command: "ls", large: "WS/large", offered: true},
		{about: "cat, its file", command: "cat", args: []string{"r.sh"}, change: "WS/r.sh", offered: true, asks: true},
		{about: "uniq, which can write a file", command: "uniq", args: []string{"r.sh"}, change: "WS/x", offered: true, asks: true},
		{about: "ls, through a link to /proc", command: "ls", args: []string{"WS/self/etc/passwd"}, asks: true},
		{about: "cat, another file", command: "cat", args: []string{"r.sh"}, change: "WS/x", offered: true},
		{about: "a link that is called ls", command: "OUT/ls", args: []string{"-c", "true"}, large: "WS/large", asks: true},
	} {
		t.Run(tt.about, func(t *testing.T) {
			w := newWorld(t, triage)
			var offered bool
			w.answer = lastIfOffered(&offered)
			w.initialize()
			out, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			ws := w.srv.chats.All()[0].Workspaces.First().Dir
			at := func(path string) string { return filled(path, ws, out) }
			for _, name := range []string{"WS/r.sh", "OUT/r.sh"} {
				if err := os.WriteFile(at(name), []byte("true\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink("/bin/sh", at("OUT/ls")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("/proc/self/root", at("WS/self")); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(at("WS/self")); err != nil && strings.Contains(tt.about, "a link to /proc") {
				t.Skip("there is no /proc here")
			}
			if tt.large != "" {
				large(t, at(tt.large))
			}
			call := map[string]any{"pack_id": "triage", "command": "sh"}
			if tt.command != "" {
				call["command"] = at(tt.command)
			}
			args := []string{}
			for _, arg := range tt.args {
				args = append(args, at(arg))
			}
			call["args"] = args
			w.ok(execMethod, call)
			if offered != tt.offered {
				t.Errorf("an answer for the chat was offered: %v, want %v\n%s", offered, tt.offered, w.lastQuestion())
			}
			if !offered && !says(w.lastQuestion(), "only once") {
				t.Errorf("the question does not say why it is only once:\n%s", w.lastQuestion())
			}
			if tt.change != "" {
				path := at(tt.change)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("# changed\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			w.ok(execMethod, call)
			if asks := len(w.asked) == 2; asks != tt.asks {
				t.Errorf("the next call asks: %v, want %v", asks, tt.asks)
			}
		})
	}
}

// filled replaces the placeholders of a table's path with the folders of a test.
func filled(path, ws, out string) string {
	for _, part := range [][2]string{{"WS", ws}, {"OUT", out}} {
		for i := 0; i+len(part[0]) <= len(path); i++ {
			if path[i:i+len(part[0])] == part[0] {
				return path[:i] + part[1] + path[i+len(part[0]):]
			}
		}
	}
	return path
}

// A declared tool's own arguments, fixed or from the context, are bound; what its
// caller passes is not.
func TestLastingToolAnswers(t *testing.T) {
	needShell(t)
	out, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(out, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	tool := func(name, args string) string {
		return `{"name": "` + name + `", "inputSchema": {"type": "object", "properties": {"file": {"type": "string"}}}, "command": ["/bin/sh", "-c", "true", ` + args + `]}`
	}
	for _, tt := range []struct {
		about, args   string
		offered, asks bool
	}{
		{"a fixed file", `"-f` + out + `/x"`, true, true},
		{"a file of the context", `"{{context.file}}"`, true, true},
		{"a file that the caller names", `"{{file}}"`, true, false},
		{"a fixed folder elsewhere", `"-C", "` + out + `/dir"`, false, true},
		{"no file", `"x"`, true, false},
	} {
		t.Run(tt.about, func(t *testing.T) {
			file := filepath.Join(out, "x")
			w := newWorld(t, triage, func(s *setup) { s.server.Context = map[string]string{"file": file} })
			if err := os.WriteFile(file, []byte("one"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.put("triage/tools.json", `{"tools": [`+tool("t", tt.args)+`]}`, 0o644)
			w.refresh()
			var offered bool
			w.answer = lastIfOffered(&offered)
			w.initialize()
			w.enable("triage")
			asked := len(w.asked)
			w.ok("triage__t", map[string]any{"file": file})
			if offered != tt.offered {
				t.Errorf("an answer for the chat was offered: %v, want %v\n%s", offered, tt.offered, w.lastQuestion())
			}
			if err := os.WriteFile(file, []byte("two"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.ok("triage__t", map[string]any{"file": file})
			if asks := len(w.asked) == asked+2; asks != tt.asks {
				t.Errorf("the call after the file changed asks: %v, want %v", asks, tt.asks)
			}
		})
	}
}

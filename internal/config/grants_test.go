package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/config/problem"
)

func TestGrantProblems(t *testing.T) {
	const home = "that holds your whole home folder, with keys and passwords: name what the tool needs in it"
	const variable = "want the name of one variable, such as GITHUB_TOKEN; its value is the one that this program was started with"
	const ownTool = "every program gets its own: remove it"
	for _, tc := range []struct{ name, grant, want string }{
		{"no list", `{pack: a}`, `FILE:3:5: sandbox.grants: is a mapping; want a list`},
		{"no mapping", `[GITHUB_TOKEN]`, `FILE:3:6: sandbox.grants[0]: is "GITHUB_TOKEN"; want a mapping, such as {pack: acme/deploy, env: [GITHUB_TOKEN]}`},
		{"no pack", `[{env: [A]}]`, `FILE:3:6: sandbox.grants[0]: has no pack; add pack: ID, or pack: "*" for every pack`},
		{"review", `[{pack: a, review: none}]`, `FILE:3:24: sandbox.grants[0].review: is "none"; want all, or leave it out`},
		{"review of another kind", `[{pack: a, review: true}]`, `FILE:3:24: sandbox.grants[0].review: is the truth value "true"; want text`},
		{"nothing granted", `[{pack: a, tool: b, env: [], home: false}]`, `FILE:3:6: sandbox.grants[0]: grants nothing; add env, read, write, home: true, git: write or review: all, or remove it`},
		{"unknown key", `[{pack: a, reed: [/x], home: true}]`, `FILE:3:16: sandbox.grants[0].reed: unknown key; did you mean read?`},
		{"empty pack", `[{pack: " ", home: true}]`, `FILE:3:13: sandbox.grants[0].pack: is " "; want a pack's id or a pattern of ids, such as acme/deploy, "acme/*" or "*"`},
		{"pack number", `[{pack: 5, home: true}]`, `FILE:3:13: sandbox.grants[0].pack: is the number "5"; want text`},
		{"bad pattern", `[{pack: "a[", home: true}]`, `FILE:3:13: sandbox.grants[0].pack: is "a["; want a pack's id or a pattern of ids, such as acme/deploy, "acme/*" or "*"`},
		{"bad tool", `[{pack: a, tool: "[]", home: true}]`, `FILE:3:22: sandbox.grants[0].tool: is "[]"; want a tool's name, a pack and a name such as acme/deploy/open_ticket, or a pattern of these`},
		{"empty tool", `[{pack: a, tool: "", home: true}]`, `FILE:3:22: sandbox.grants[0].tool: is ""; want a tool's name, a pack and a name such as acme/deploy/open_ticket, or a pattern of these`},
		{"old spelling", `[{pack: a, tool: Exec-Best-Effort, home: true}]`, `FILE:3:22: sandbox.grants[0].tool: is "Exec-Best-Effort"; a command of the model's own is a kind of call, not a tool: write kind: exec instead of tool`},
		{"old pattern", `[{pack: a, tool: "exec*", home: true}]`, `FILE:3:22: sandbox.grants[0].tool: is "exec*", which could mean commands of the model's own or declared tools: write kind: exec instead of tool for the commands, or tool: "a/exec*", without pack, for the tools`},
		{"pack twice", `[{pack: a, tool: a/b, home: true}]`, `FILE:3:22: sandbox.grants[0].tool: is "a/b", which names the pack too; remove pack, or the part of tool before the last slash`},
		{"kind", `[{pack: a, kind: open, home: true}]`, `FILE:3:22: sandbox.grants[0].kind: is "open"; want run or exec`},
		{"no kind", `[{pack: a, kind: [], home: true}]`, `FILE:3:22: sandbox.grants[0].kind: is an empty list; name at least one, or remove it`},
		{"kind and tool", `[{pack: a, kind: [run, exec], tool: b, home: true}]`, `FILE:3:41: sandbox.grants[0].tool: is for declared tools, and a command of the model's own is none; remove it, or make two grants`},
		{"home no truth", `[{pack: a, home: "true"}]`, `FILE:3:22: sandbox.grants[0].home: is the text "true"; want true or false`},
		{"home a folder", `[{pack: a, home: ~/x}]`, `FILE:3:22: sandbox.grants[0].home: is the text "~/x"; want true or false`},
		{"env no list", `[{pack: a, env: A}]`, `FILE:3:21: sandbox.grants[0].env: is "A"; want a list`},
		{"env pattern", `[{pack: a, env: ["LD_*"]}]`, `FILE:3:22: sandbox.grants[0].env[0]: is "LD_*"; ` + variable},
		{"env with a value", `[{pack: a, env: ["A=b"]}]`, `FILE:3:22: sandbox.grants[0].env[0]: is "A=b"; ` + variable},
		{"env empty", `[{pack: a, env: [""]}]`, `FILE:3:22: sandbox.grants[0].env[0]: is ""; ` + variable},
		{"env zero byte", `[{pack: a, env: ["A\0"]}]`, `FILE:3:22: sandbox.grants[0].env[0]: is "A\x00"; ` + variable},
		{"env twice", `[{pack: a, env: [A, A]}]`, `FILE:3:25: sandbox.grants[0].env[1]: is "A"; name it once`},
		{"env home", `[{pack: a, env: [Home]}]`, `FILE:3:22: sandbox.grants[0].env[0]: is "Home"; write home: true instead`},
		{"env path", `[{pack: a, env: [PATH]}]`, `FILE:3:22: sandbox.grants[0].env[0]: is "PATH"; ` + ownTool},
		{"env temp", `[{pack: a, env: [TMPDIR]}]`, `FILE:3:22: sandbox.grants[0].env[0]: is "TMPDIR"; ` + ownTool},
		{"env ours", `[{pack: a, env: [PACKS_MCP_TOKEN]}]`, `FILE:3:22: sandbox.grants[0].env[0]: is "PACKS_MCP_TOKEN"; ` + ownTool},
		{"relative", `[{pack: a, read: [./x]}]`, `FILE:3:23: sandbox.grants[0].read[0]: is "./x"; want an absolute path, or one that begins with ~/`},
		{"relative, up", `[{pack: a, write: [../x]}]`, `FILE:3:24: sandbox.grants[0].write[0]: is "../x"; want an absolute path, or one that begins with ~/`},
		{"empty path", `[{pack: a, read: [""]}]`, `FILE:3:23: sandbox.grants[0].read[0]: is ""; want a path`},
		{"path twice", `[{pack: a, read: [/x/y, /x//y/]}]`, `FILE:3:29: sandbox.grants[0].read[1]: is "/x//y/"; name it once`},
		{"zero byte", `[{pack: a, read: ["/x\0"]}]`, `FILE:3:23: sandbox.grants[0].read[0]: is "/x\x00"; a path has no zero bytes`},
		{"other home", `[{pack: a, read: [~bob/x]}]`, `FILE:3:23: sandbox.grants[0].read[0]: is "~bob/x"; only ~ and ~/ are replaced by a home folder; write the path in full, or ./~… for that very name`},
		{"everything", `[{pack: a, read: [/]}]`, `FILE:3:23: sandbox.grants[0].read[0]: is "/"; ` + home},
		{"everything, spelled otherwise", `[{pack: a, write: [/x/../]}]`, `FILE:3:24: sandbox.grants[0].write[0]: is "/x/../"; ` + home},
		{"home", `[{pack: a, read: ["~"]}]`, `FILE:3:23: sandbox.grants[0].read[0]: is "~"; ` + home},
		{"home in full", `[{pack: a, read: [/home/ann/]}]`, `FILE:3:23: sandbox.grants[0].read[0]: is "/home/ann/"; ` + home},
		{"every home", `[{pack: a, read: [/home]}]`, `FILE:3:23: sandbox.grants[0].read[0]: is "/home"; ` + home},
		{"way up", `[{pack: a, read: [~/x/..]}]`, `FILE:3:23: sandbox.grants[0].read[0]: is "~/x/.."; ` + home},
		{"processes", `[{pack: a, read: [/proc/1]}]`, `FILE:3:23: sandbox.grants[0].read[0]: is "/proc/1"; every program gets its own /proc and /dev: remove it`},
		{"our packs", `[{pack: a, write: [~/.local/share]}]`,
			`FILE:3:24: sandbox.grants[0].write[0]: is "~/.local/share"; a program that can write there could change what packs-mcp does, through "/home/ann/.local/share/packs-mcp/packs": name another folder`},
		{"our copies of packs", `[{pack: a, write: [~/.cache]}]`,
			`FILE:3:24: sandbox.grants[0].write[0]: is "~/.cache"; a program that can write there could change what packs-mcp does, through "/home/ann/.cache/packs-mcp/copies": name another folder`},
		{"in our state", `[{pack: a, write: [~/.local/state/packs-mcp/x]}]`,
			`FILE:3:24: sandbox.grants[0].write[0]: is "~/.local/state/packs-mcp/x"; a program that can write there could change what packs-mcp does, through "/home/ann/.local/state/packs-mcp": name another folder`},
		{"our keys", `[{pack: a, read: [~/.local/state]}]`,
			`FILE:3:23: sandbox.grants[0].read[0]: is "~/.local/state"; a program that can read it could approve calls with the keys in "/home/ann/.local/state/packs-mcp": name another file or folder`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, dir, err := load(t, "sandbox:\n  grants:\n    "+tc.grant+"\n", nil)
			want := strings.ReplaceAll(tc.want, "FILE", filepath.Join(dir, "config.yaml"))
			if err == nil || err.Error() != want {
				t.Errorf("Load(%q) =\n%v\nwant\n%v", tc.grant, err, want)
			}
			if _, ok := errors.AsType[*problem.Error](err); !ok {
				t.Errorf("Load(%q) = %T, want an *Error", tc.grant, err)
			}
		})
	}

	// Each grant has its own line, and a file with a mistake gives none.
	_, dir, err := load(t, "sandbox:\n  grants:\n  - {pack: a, env: [A]}\n  - {pack: b}\n  - {pack: c, read: [x]}\n", nil)
	want := strings.ReplaceAll("FILE:4:5: sandbox.grants[1]: grants nothing; add env, read, write, home: true, git: write or review: all, or remove it\n"+
		`FILE:5:22: sandbox.grants[2].read[0]: is "x"; want an absolute path, or one that begins with ~/`, "FILE", filepath.Join(dir, "config.yaml"))
	if err == nil || err.Error() != want {
		t.Errorf("Load() =\n%v\nwant\n%v", err, want)
	}
	// Wherever the file is, no program may write to it.
	_, _, err = load(t, "", func(o *Options) {
		content := "sandbox: {grants: [{pack: a, write: ['" + filepath.Dir(o.File) + "']}]}\n"
		if err := os.WriteFile(o.File, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if err == nil || !strings.Contains(err.Error(), "a program that can write there could change what packs-mcp does, through ") {
		t.Errorf("Load() = %v, want an error about the folder of the file", err)
	}
}

func TestGrantedPathsElsewhere(t *testing.T) {
	for _, tc := range []struct {
		goos, home, path string
		wrong            string // its beginning; empty: none
	}{
		{"linux", "", "/", "that is the whole"},
		{"linux", "", "~/x", "the home folder cannot be found"},
		{"linux", "/home/ann", "/home/annabel", ""},
		{"linux", "/home/ann", "/Home", ""},
		{"linux", "/home/ann", "/dev", "every program gets"},
		{"darwin", "/Users/ann", "/users", "that holds your whole"},
		{"darwin", "/Users/ann", "~/Library/Application Support/gh", ""},
		{"windows", `C:\Users\ann`, `c:/`, "that holds your whole"},
		{"windows", `C:\Users\ann`, `c:\users\ANN\`, "that holds your whole"},
		{"windows", `C:\Users\ann`, `D:\`, "that is the whole"},
		{"windows", `C:\Users\ann`, `~\AppData\Roaming\gh`, ""},
		{"windows", `C:\Users\ann`, `\Users\ann\x`, "want an absolute path"},
	} {
		f := &fileReader{loader: &loader{cfg: Default()}, base: places.Base{Dir: "/", Home: tc.home, GOOS: tc.goos}}
		got, wrong := f.grantedPath(tc.path, false)
		if tc.wrong == "" && (wrong != "" || got == "") || tc.wrong != "" && !strings.HasPrefix(wrong, tc.wrong) {
			t.Errorf("%s: grantedPath(%q) = %q, %q, want %q", tc.goos, tc.path, got, wrong, tc.wrong)
		}
	}
}

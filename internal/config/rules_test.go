package config

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/config/problem"
)

func TestRuleProblems(t *testing.T) {
	const argv = `want a list with the program and each of its arguments, such as [git, push, "**"]`
	for _, tc := range []struct{ name, rule, want string }{ // the rule begins in column 5 of line 2
		{"no list", `{deny: {}}`, `FILE:2:5: rules: is a mapping; want a list`},
		{"no mapping", `[git push]`, `FILE:2:6: rules[0]: is "git push"; want a mapping, such as deny: {argv: [git, push, "**"]}`},
		{"no effect", `[{match: [[git]]}]`, `FILE:2:6: rules[0]: decides nothing; add deny, ask or allow`},
		{"two effects", `[{deny: {}, ask: {}}]`, `FILE:2:17: rules[0].ask: is one too many: a rule is deny or ask; make two of it`},
		{"unknown effect", `[{denny: {}}]`, `FILE:2:7: rules[0].denny: unknown key; did you mean deny?`},
		{"unknown key", `[{deny: {}, notmatch: [[git]]}]`, `FILE:2:17: rules[0].notmatch: unknown key; did you mean not_match?`},
		{"unknown selector", `[{deny: {arg: [git]}}]`, `FILE:2:14: rules[0].deny.arg: unknown key; did you mean argv?`},
		{"selectors beside", `[{deny: {}, argv: [git]}]`, `FILE:2:17: rules[0].argv: unknown key; known here are deny, ask, allow, review, match, not_match`},
		{"nothing selected", `[{deny: }]`, `FILE:2:13: rules[0].deny: has no value; write {} for every call`},
		{"selectors no mapping", `[{deny: git}]`, `FILE:2:13: rules[0].deny: is "git"; want a mapping of keys to values`},
		{"pack", `[{deny: {pack: "a["}}]`, `FILE:2:20: rules[0].deny.pack: is "a["; want a pack's id or a pattern of ids, such as acme/deploy, "acme/*" or "*"`},
		{"tool", `[{deny: {tool: ""}}]`, `FILE:2:20: rules[0].deny.tool: is ""; want a tool's name, a pack and a name such as acme/deploy/open_ticket, or a pattern of these`},
		{"kind", `[{deny: {kind: runs}}]`, `FILE:2:20: rules[0].deny.kind: is "runs"; want open, read, enable, run, exec or attach`},
		{"kind in a list", `[{deny: {kind: [run, list]}}]`, `FILE:2:26: rules[0].deny.kind[1]: is "list"; want open, read, enable, run, exec or attach`},
		{"kind twice", `[{deny: {kind: [run, run]}}]`, `FILE:2:26: rules[0].deny.kind[1]: is "run"; name it once`},
		{"no kind", `[{deny: {kind: []}}]`, `FILE:2:20: rules[0].deny.kind: is an empty list; name at least one, or remove it`},
		{"kind without argv", `[{deny: {kind: open, argv: [git]}}]`, `FILE:2:20: rules[0].deny.kind: is open; a rule with tool, argv, env, cwd or stdin is about runs: write run or exec, or make two rules`},
		{"kind without tool", `[{deny: {tool: x, kind: [run, enable]}}]`, `FILE:2:29: rules[0].deny.kind: is run and enable; a rule with tool, argv, env, cwd or stdin is about runs: write run or exec, or make two rules`},
		{"allow everything", `[{allow: {pack: a}}]`, `FILE:2:14: rules[0].allow: allows every kind of call; say which: kind: open, read, enable, run, exec or attach, or a list of them`},
		{"argv text", `[{deny: {argv: git push}}]`, `FILE:2:20: rules[0].deny.argv: is "git push"; ` + argv},
		{"argv one text", `[{deny: {argv: [git push]}}]`, `FILE:2:21: rules[0].deny.argv[0]: has a blank; write each argument as an element of its own, such as [git, push, "**"]`},
		{"argv empty", `[{deny: {argv: []}}]`, `FILE:2:20: rules[0].deny.argv: is empty; write the program and its arguments, such as [git, push, "**"]`},
		{"argv nothing", `[{deny: {argv: [git, ~]}}]`, `FILE:2:26: rules[0].deny.argv[1]: is empty; want text, in quotes`},
		{"argv nested", `[{deny: {argv: [git, [push]]}}]`, `FILE:2:26: rules[0].deny.argv[1]: is a list; want text, in quotes`},
		{"old spelling", `[{allow: {kind: run, tool: exec_best_effort, argv: [python3, "**"]}}]`,
			`FILE:2:32: rules[0].allow.tool: is "exec_best_effort"; a command of the model's own is a kind of call, not a tool: write allow: {kind: exec, argv: [python3, "**"]}`},
		{"old pattern", `[{deny: {pack: acme/x, tool: "exec_*"}}]`,
			`FILE:2:34: rules[0].deny.tool: is "exec_*", which could mean commands of the model's own or declared tools: ` +
				`write deny: {pack: acme/x, kind: exec} for the commands, or tool: "acme/x/exec_*", without pack, for the tools`},
		{"env", `[{allow: {argv: [cc], env: [CC, "A B"]}}]`, `FILE:2:32: rules[0].allow.env: has "A B"; want names of variables, or patterns of names`},
		{"no env", `[{allow: {argv: [cc], env: []}}]`, `FILE:2:32: rules[0].allow.env: is empty; name variables, or write "*" for any`},
		{"cwd", `[{allow: {argv: [cc], cwd: src}}]`, `FILE:2:32: rules[0].allow.cwd: is src; want workspace, pack_root, project, an absolute folder, or "*" for any`},
		{"no cwd", `[{allow: {argv: [cc], cwd: ""}}]`, `FILE:2:32: rules[0].allow.cwd: is empty; want workspace, pack_root, project or a folder`},
		{"no stdin", `[{deny: {argv: [cc], stdin: false}}]`, `FILE:2:33: rules[0].deny.stdin: is "false"; want true, or remove it`},
		{"match with env", `[{allow: {argv: [cc]}, match: [{argv: [cc], env: [CC]}]}]`,
			`FILE:2:36: rules[0].match[0]: the rule does not match this call: the call has more than the rule names; to allow it, add env: [CC]`},
		{"match of the model's own", `[{allow: {tool: lint}, match: [{kind: exec}]}]`,
			`FILE:2:36: rules[0].match[0]: the rule does not match this call: kind is exec, not run`},
		{"program", `[{allow: {argv: [bin/git]}}]`, `FILE:2:22: rules[0].allow.argv[0]: want a name without a slash, an absolute path, or one that begins with ./ for a program of the pack`},

		{"review", `[{allow: {tool: x}, review: some}]`, `FILE:2:33: rules[0].review: is "some"; want all, or leave it out`},
		{"review no text", `[{allow: {tool: x}, review: true}]`, `FILE:2:33: rules[0].review: is the truth value "true"; want text`},
		{"review of a denial", `[{deny: {tool: x}, review: all}]`, `FILE:2:32: rules[0].review: is for rules that allow; to see all changes of runs that you are asked about, write review: all in sandbox.grants`},
		{"review of documents", `[{review: all, allow: {kind: open}}]`, `FILE:2:15: rules[0].review: is about what runs change, and the rule is about open; add run or exec to kind, or remove it`},
		{"review among selectors", `[{allow: {tool: x, review: all}}]`, `FILE:2:24: rules[0].allow.review: is not about which calls the rule matches; write it beside allow, with the same indent`},
		{"reviews", `[{allow: {tool: x}, reviews: all}]`, `FILE:2:25: rules[0].reviews: unknown key; did you mean review?`},

		{"match", `[{deny: {argv: [git, push, "**"]}, match: [[git, push], [git, -c, x, push]]}]`,
			`FILE:2:61: rules[0].match[1]: the rule does not match this call: argv is [git, -c, x, push], not [git, push, "**"]; it only comes near, and is asked about`},
		{"match before", `[{match: [[git]], deny: {argv: [git, push]}}]`,
			`FILE:2:15: rules[0].match[0]: the rule does not match this call: argv is [git], not [git, push]`},
		{"match of a pack", `[{allow: {pack: "acme/*", kind: open}, match: [{pack: x}]}]`,
			`FILE:2:52: rules[0].match[0]: the rule does not match this call: pack is x, not "acme/*"`},
		{"match of a kind", `[{allow: {kind: [open, read]}, match: [[git]]}]`,
			`FILE:2:44: rules[0].match[0]: the rule does not match this call: kind is run, not open or read`},
		{"not_match", `[{allow: {argv: [git, "*"]}, not_match: [[git, log], [git, status]]}]`,
			"FILE:2:46: rules[0].not_match[0]: the rule matches this call: it is allow {argv: [git, \"*\"]}\n" +
				`FILE:2:58: rules[0].not_match[1]: the rule matches this call: it is allow {argv: [git, "*"]}`},
		{"match no list", `[{deny: {}, match: {}}]`, `FILE:2:24: rules[0].match: is a mapping; want a list`},
		{"match one text", `[{deny: {}, match: [git push]}]`, `FILE:2:25: rules[0].match[0]: is "git push"; want an argv, such as [git, push], or a mapping of pack, kind, tool, argv, env, cwd and stdin`},
		{"match empty argv", `[{deny: {}, match: [[]]}]`, `FILE:2:25: rules[0].match[0].argv: has no program; write its name first`},
		{"match empty", `[{deny: {}, match: [{}]}]`, `FILE:2:25: rules[0].match[0]: says nothing; write an argv, such as [git, push], or a mapping of pack, kind, tool, argv, env, cwd and stdin`},
		{"match kinds", `[{deny: {}, match: [{kind: [open]}]}]`, `FILE:2:32: rules[0].match[0].kind: is a list; want text`},
		{"match kind", `[{deny: {}, match: [{kind: opn}]}]`, `FILE:2:32: rules[0].match[0].kind: is "opn"; want open, read, enable, run, exec or attach`},
		{"match kind with argv", `[{deny: {}, match: [{kind: open, argv: [git]}]}]`, `FILE:2:32: rules[0].match[0].kind: is open; only run and exec have an argv, and run a tool, variables and input`},
		{"match empty pack", `[{deny: {}, match: [{pack: " "}]}]`, `FILE:2:32: rules[0].match[0].pack: is empty; want a name`},
		{"match unknown key", `[{deny: {}, match: [{pakc: a}]}]`, `FILE:2:26: rules[0].match[0].pakc: unknown key; did you mean pack?`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, dir, err := load(t, "rules:\n    "+tc.rule+"\n", nil)
			want := strings.ReplaceAll(tc.want, "FILE", filepath.Join(dir, "config.yaml"))
			if err == nil || err.Error() != want {
				t.Errorf("Load(%q) = %v\n%v\nwant\n%v", tc.rule, c, err, want)
			}
			if _, ok := errors.AsType[*problem.Error](err); !ok {
				t.Errorf("Load(%q) = %T, want an *Error", tc.rule, err)
			}
		})
	}
}

func TestRuleInNobodysHome(t *testing.T) {
	_, dir, err := load(t, "rules: [{deny: {argv: [~/bin/x]}}]\n", func(o *Options) { o.Environ = []string{"PACKS_MCP_HOME=/data"} })
	want := filepath.Join(dir, "config.yaml") + ":1:24: rules[0].deny.argv[0]: the home folder cannot be found: write the path in full, or set HOME"
	if err == nil || err.Error() != want {
		t.Errorf("Load() = %v, want %v", err, want)
	}
}

// AP-08: a configuration file in a project, a pack or a workspace is never read,
// whatever its name.
func TestRulesOfOthersAreNotRead(t *testing.T) {
	home, desk := t.TempDir(), t.TempDir()
	for _, name := range []string{"config.yaml", "rules.yaml", "packs-mcp.yaml", ".packs-mcp/config.yaml", "packs-mcp/config.yaml", ".config/packs-mcp/config.yaml"} {
		path := filepath.Join(desk, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("rules: [{allow: {kind: [open, read, enable, run]}}]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, root := range [][]string{nil, {desk}} {
		c, err := Load(Options{
			Environ: []string{"HOME=" + home, "USERPROFILE=" + home, "PACKS_MCP_PROJECT=" + desk, "XDG_CONFIG_HOME=."}, Dir: desk, Packs: root,
		})
		if err != nil || len(c.Rules) > 0 || c.File != "" {
			t.Errorf("Load() = %+v, %v, want no rules and no file", c, err)
		}
	}
}

// The rules in the documentation load, and their examples are right.
func TestDocumentedRules(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "```yaml\nrules:\n")
	block, _, _ = strings.Cut(block, "```")
	if c, _, err := load(t, "rules:\n"+block, nil); !ok || err != nil || len(c.Rules) != 10 || !c.Rules[7].Review || c.Rules[8].Review {
		t.Errorf("Load(%q) = %v, want the ten rules, and review: all of one", block, err)
	}
}

// What the guides say to write into the configuration loads.
func TestDocumentedConfigurations(t *testing.T) {
	guides, err := filepath.Glob("../../docs/how-to/*.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?sm)^( *)```yaml\n(.*?)^ *```$")
	found := 0
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[2], "yaml-language-server:") { // a file of another kind, which names its schema
				continue
			}
			found++
			written := strings.ReplaceAll("\n"+m[2], "\n"+m[1], "\n")
			if _, _, err := load(t, written, nil); err != nil {
				t.Errorf("%s: Load(%q): %v", guide, written, err)
			}
		}
	}
	if found < 6 {
		t.Errorf("the guides have %d configurations, want at least 6", found)
	}
}

package rules

import (
	"strings"
	"testing"
)

// A command that the model writes is its own kind of call, whatever a declared
// tool is named and whatever a rule says.
func TestDecideKinds(t *testing.T) {
	exec, tool := run("python3", "x.py"), toolCall("open_ticket", "python3", "x.py")
	spoofed := toolCall("exec_best_effort", "python3", "x.py")
	python := []string{"python3", "**"}
	for _, tc := range []struct {
		name       string
		rule       Rule
		exec, tool Effect
	}{
		{"allow exec", Rule{Effect: Allow, Kinds: []string{"exec"}, Argv: python}, Allow, 0},
		{"allow run", Rule{Effect: Allow, Kinds: []string{"run"}, Argv: python}, 0, Allow},
		{"allow both", Rule{Effect: Allow, Kinds: []string{"run", "exec"}, Argv: python}, Allow, Allow},
		{"allow by argv", Rule{Effect: Allow, Argv: python}, Allow, Allow},
		{"allow every tool", Rule{Effect: Allow, Tool: "*"}, 0, Allow},
		{"allow every tool of a pack", Rule{Effect: Allow, Tool: "acme/deploy/*"}, 0, Allow},
		{"allow a pattern", Rule{Effect: Allow, Tool: "open_*", Argv: python}, 0, Allow},
		{"deny exec", Rule{Effect: Deny, Kinds: []string{"exec"}}, Deny, 0},
		{"deny run holds for exec", Rule{Effect: Deny, Kinds: []string{"run"}}, Deny, Deny},
		{"ask about run holds for exec", Rule{Effect: Ask, Kinds: []string{"open", "run"}}, Ask, Ask},
		{"deny by argv", Rule{Effect: Deny, Argv: python}, Deny, Deny},
		{"deny every tool holds for exec", Rule{Effect: Deny, Tool: "*"}, Deny, Deny},
		{"and with an argv", Rule{Effect: Deny, Tool: "*", Argv: python}, Deny, Deny},
		{"and with a kind", Rule{Effect: Deny, Tool: "*", Kinds: []string{"run"}}, Deny, Deny},
		{"deny every tool of a pack holds for exec", Rule{Effect: Deny, Tool: "acme/deploy/*"}, Deny, Deny},
		{"deny every tool of another pack", Rule{Effect: Deny, Tool: "acme/other/*"}, 0, 0},
		{"deny a tool", Rule{Effect: Deny, Tool: "open_ticket"}, 0, Deny},
		{"deny a tool in another spelling", Rule{Effect: Deny, Tool: "Open-Ticket"}, 0, Deny},
		{"allow a tool in another spelling", Rule{Effect: Allow, Tool: "Open-Ticket"}, 0, 0},
		{"a class is not a spelling", Rule{Effect: Deny, Tool: "[n-p]pen_ticket"}, 0, Deny},
		{"deny one tool of one pack", Rule{Effect: Deny, Tool: "acme/deploy/open_ticket"}, 0, Deny},
		{"allow one tool of one pack", Rule{Effect: Allow, Tool: "acme/deploy/open_ticket"}, 0, Allow},
		{"allow one of any pack", Rule{Effect: Allow, Tool: "*/open_ticket"}, 0, Allow},
		{"allow one of a team's packs", Rule{Effect: Allow, Tool: "acme/*/open_ticket"}, 0, Allow},
		{"a star has no slash", Rule{Effect: Allow, Tool: "ac*/open_ticket"}, 0, 0},
		{"allow one of another pack", Rule{Effect: Allow, Tool: "deploy/open_ticket"}, 0, 0},
		{"the old spelling allows nothing", Rule{Effect: Allow, Tool: "exec_best_effort"}, 0, 0},
		{"the old spelling denies everything", Rule{Effect: Deny, Tool: "exec_best_effort"}, Deny, Deny},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := decide([]Rule{tc.rule}, exec, false); got.Effect != tc.exec {
				t.Errorf("decide(%v, exec) = %v, want %v", tc.rule, got.Effect, tc.exec)
			}
			if got := decide([]Rule{tc.rule}, tool, false); got.Effect != tc.tool {
				t.Errorf("decide(%v, run) = %v, want %v", tc.rule, got.Effect, tc.tool)
			}
			if tc.exec == Allow && tc.tool == 0 {
				if got := decide([]Rule{tc.rule}, spoofed, false); got.Effect != 0 {
					t.Errorf("decide(%v, run of exec_best_effort) = %v, want no rule", tc.rule, got.Effect)
				}
			}
		})
	}
}

func TestOldSpelling(t *testing.T) {
	for _, tc := range []struct{ tool, want string }{ // want is the beginning of the error; empty: none
		{"exec_best_effort", `tool: is "exec_best_effort"; a command of the model's own is a kind of call, not a tool: write allow: {pack: x, kind: exec, argv: [a]}`},
		{"Exec-Best-Effort", `tool: is "Exec-Best-Effort"; a command`},
		{"execBestEffort", `tool: is "execBestEffort"; a command`},
		{`exec\_best_effort`, `tool: is "exec\\_best_effort"; a command`},
		{"capability_packs_exec_best_effort", `tool: is "capability_packs_exec_best_effort"; a command`},
		{"capability-packs-*", `tool: is "capability-packs-*"; a command`},
		{"capability_packs.exec_best_effort", `tool: is "capability_packs.exec_best_effort"; names of tools have only`},
		{"exec_*", `tool: is "exec_*", which could mean commands of the model's own or declared tools: write allow: {pack: x, kind: exec, argv: [a]} for the commands, or tool: "x/exec_*", without pack, for the tools`},
		{"EXEC-*", `tool: is "EXEC-*", which could mean`},
		{"Exec_Best_*", `tool: is "Exec_Best_*", which could mean`},
		{"*effort", `tool: is "*effort", which could mean`},
		{"[a-z]*", `tool: is "[a-z]*", which could mean`},
		{"?*", `tool: is "?*", which could mean`},
		{"ｅｘｅｃ_best_effort", `tool: is "ｅｘｅｃ_best_effort"; names of tools have only letters, digits, _ and -`},
		{"еxec_best_effort", `tool: is "еxec_best_effort"; names of tools have only`}, // Cyrillic
		{"open ticket", `tool: is "open ticket"; names of tools have only`},
		{"*", ""},
		{"**", ""},
		{"open_*", ""},
		{"exec", ""},
		{"executor*", ""},
	} {
		r := Rule{Effect: Allow, Pack: "x", Tool: tc.tool, Argv: []string{"a"}}
		switch err := r.Check(); {
		case tc.want == "" && err != nil:
			t.Errorf("%v.Check() = %v, want no error", r, err)
		case tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)):
			t.Errorf("%v.Check() = %v, want %v", r, err, tc.want)
		}
	}
	for _, tc := range []struct{ tool, want string }{
		{"*/exec_*", ""},
		{"acme/deploy/e*", ""},
		{"acme/exec_best_effort", "write deny: {pack: acme, kind: exec}"},
		{"/x", "want a tool's name"},
		{"acme/", "want a tool's name"},
		{"[a/b]", "want a tool's name"},
	} {
		r := Rule{Effect: Deny, Tool: tc.tool}
		if err := r.Check(); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v.Check() = %v, want %v", r, err, tc.want)
		}
	}
}

// The attacks of hostile-cases §9.6, and what else a run has besides its argv.
func TestDecideSettings(t *testing.T) {
	gcc := func(change func(*Call)) Call {
		c := toolCall("compile", "gcc", "-c", "x.c")
		c.Dir, c.Folders = "/ws/1", map[string]string{"workspace": "/ws/1", "pack_root": "/packs/deploy", "project": "/home/ann/site"}
		change(&c)
		return c
	}
	plain := gcc(func(*Call) {})
	sets := func(names ...string) Call { return gcc(func(c *Call) { c.Env = names }) }
	in := func(dir string) Call { return gcc(func(c *Call) { c.Dir, c.Usual = dir, false }) }
	linked := func(dir string) Call {
		return gcc(func(c *Call) {
			c.Dir, c.Usual = dir, false
			c.Within = func(folder string) bool { return folder == "/link" }
		})
	}
	input := gcc(func(c *Call) { c.Stdin = true })
	by := func(e Effect, change func(*Rule)) Rule {
		r := Rule{Effect: e, Argv: []string{"gcc", "-c", "*.c"}}
		change(&r)
		return r
	}
	env := func(names ...string) func(*Rule) { return func(r *Rule) { r.Env = names } }
	cwd := func(dir string) func(*Rule) { return func(r *Rule) { r.Cwd = dir } }
	stdin := func(r *Rule) { r.Stdin = true }
	named := Rule{Effect: Allow, Tool: "acme/deploy/compile"}
	all := gcc(func(c *Call) { c.Env, c.Dir, c.Usual, c.Stdin = []string{"CC", "B"}, "/packs/deploy", false, true })
	for _, tc := range []struct {
		name string
		rule Rule
		call Call
		want Effect
		add  string // what the rule lacks, joined
	}{
		{"nothing else", by(Allow, func(*Rule) {}), plain, Allow, ""},
		{"a variable", by(Allow, func(*Rule) {}), sets("COMPILER_PATH"), 0, "env: [COMPILER_PATH]"},
		{"a named variable", by(Allow, env("COMPILER_PATH")), sets("COMPILER_PATH"), Allow, ""},
		{"a named variable that is not set", by(Allow, env("COMPILER_PATH")), plain, Allow, ""},
		{"a pattern", by(Allow, env("COMPILER_*")), sets("COMPILER_PATH"), Allow, ""},
		{"another letter case", by(Allow, env("compiler_path")), sets("COMPILER_PATH"), 0, "env: [COMPILER_PATH]"},
		{"one of two", by(Allow, env("LANG")), sets("LANG", "GCC_EXEC_PREFIX"), 0, "env: [GCC_EXEC_PREFIX]"},
		{"any variable", by(Allow, env("*")), sets("LANG", "GCC_EXEC_PREFIX"), Allow, ""},
		{"the pack's folder", by(Allow, func(*Rule) {}), in("/packs/deploy"), 0, "cwd: pack_root"},
		{"the named folder", by(Allow, cwd("pack_root")), in("/packs/deploy"), Allow, ""},
		{"the project", by(Allow, cwd("pack_root")), in("/home/ann/site"), 0, "cwd: project"},
		{"a folder of the project", by(Allow, cwd("project")), in("/home/ann/site/sub"), 0, "cwd: /home/ann/site/sub"},
		{"an absolute folder", by(Allow, cwd("/home/ann/site/sub")), in("/home/ann/site/sub"), Allow, ""},
		{"any folder", by(Allow, cwd("*")), in("/home/ann/site/sub"), Allow, ""},
		{"a named folder is the only one", by(Allow, cwd("project")), plain, 0, "cwd: workspace"},
		{"input", by(Allow, func(*Rule) {}), input, 0, "stdin: true"},
		{"named input", by(Allow, stdin), input, Allow, ""},
		{"everything", by(Allow, func(*Rule) {}), all, 0, "env: [CC, B]; cwd: pack_root; stdin: true"},

		{"the tool as declared", named, all, Allow, ""},
		{"with the pack apart", Rule{Effect: Allow, Pack: "acme/deploy", Tool: "compile"}, all, Allow, ""},
		{"with an argv", Rule{Effect: Allow, Tool: named.Tool, Argv: []string{"gcc", "**"}}, all, 0, "env: [CC, B]; cwd: pack_root; stdin: true"},
		{"with a variable", Rule{Effect: Allow, Tool: named.Tool, Env: []string{"CC"}}, all, 0, "env: [B]; cwd: pack_root; stdin: true"},
		{"a pattern of tools", Rule{Effect: Allow, Tool: "acme/deploy/comp*"}, all, 0, "env: [CC, B]; cwd: pack_root; stdin: true"},
		{"a pattern of packs", Rule{Effect: Allow, Tool: "acme/*/compile"}, all, 0, "env: [CC, B]; cwd: pack_root; stdin: true"},
		{"a tool of any pack", Rule{Effect: Allow, Tool: "compile"}, all, 0, "env: [CC, B]; cwd: pack_root; stdin: true"},
		{"every run", Rule{Effect: Allow, Kinds: []string{"run"}}, all, Allow, ""},
		{"every tool", Rule{Effect: Allow, Tool: "*"}, all, Allow, ""},
		{"every run with some variables", Rule{Effect: Allow, Kinds: []string{"run"}, Env: []string{"B", "CC"}}, all, 0, "cwd: pack_root; stdin: true"},
		{"every run with everything", Rule{Effect: Allow, Kinds: []string{"run"}, Env: []string{"*"}, Cwd: "*", Stdin: true}, all, Allow, ""},

		{"a denial looks at none of it", by(Deny, func(*Rule) {}), all, Deny, ""},
		{"a denial of a variable", by(Deny, env("LD_*", "cc")), all, Deny, ""},
		{"a variable more does not dodge it", by(Deny, env("CC")), sets("A", "CC", "Z"), Deny, ""},
		{"a denial of a variable that is not set", by(Deny, env("CC")), plain, 0, ""},
		{"a question about a folder", by(Ask, cwd("pack_root")), in("/packs/deploy"), Ask, ""},
		{"holds below it", by(Ask, cwd("pack_root")), in("/packs/deploy/x"), Ask, ""},
		{"not beside it", by(Ask, cwd("pack_root")), in("/packs/deployed"), 0, ""},
		{"a denial of a path", by(Deny, cwd("/home/ann/")), in("/home/Ann/site"), Deny, ""},
		{"a denial of another path of it", by(Deny, cwd("/link")), linked("/home/ann/site"), Deny, ""},
		{"a question about another path of it", by(Ask, cwd("/link")), linked("/home/ann/site"), Ask, ""},
		{"an allowance of another path of it", by(Allow, cwd("/link")), linked("/home/ann/site"), 0, "cwd: project"},
		{"a denial of a link to elsewhere", by(Deny, cwd("/other")), linked("/home/ann/site"), 0, ""},
		{"where the folder is not known", by(Deny, cwd("project")), toolCall("compile", "gcc", "-c", "x.c"), Deny, ""},
		{"a denial of input", by(Deny, stdin), input, Deny, ""},
		{"without input", by(Deny, stdin), plain, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.rule.Check(); err != nil {
				t.Fatalf("%v.Check() = %v, want no error", tc.rule, err)
			}
			got := decide([]Rule{tc.rule}, tc.call, false)
			add := ""
			if got.Short != nil {
				add = strings.Join(got.Short.Add, "; ")
			}
			if got.Effect != tc.want || add != tc.add {
				t.Errorf("decide(%v, %+v) = %v, short of %q, want %v, short of %q", tc.rule, tc.call, got.Effect, add, tc.want, tc.add)
			}
		})
	}
}

// An allowance that falls short is not reported where another rule decides, and
// never decides itself.
func TestDecideShort(t *testing.T) {
	short := argv(Allow, "gcc", "**")
	call := toolCall("compile", "gcc", "x.c")
	call.Env = []string{"CC"}
	for _, other := range []Rule{
		{Effect: Deny, Tool: "compile"}, {Effect: Ask, Kinds: []string{"run"}}, {Effect: Allow, Tool: "acme/deploy/compile"},
	} {
		if got := decide([]Rule{short, other}, call, false); got.Effect != other.Effect || got.Short != nil {
			t.Errorf("decide(%v) = %v, short %v, want %v", other, got.Effect, got.Short, other.Effect)
		}
	}
}

func TestTrySettings(t *testing.T) {
	for _, tc := range []struct {
		rule    Rule
		example Example
		want    string // why not; empty: it matches
	}{
		{argv(Allow, "gcc", "*"), Example{Argv: []string{"gcc", "x"}}, ""},
		{argv(Allow, "gcc", "*"), Example{Kind: "exec", Argv: []string{"gcc", "x"}}, ""},
		{argv(Allow, "gcc", "*"), Example{Argv: []string{"gcc", "x"}, Env: []string{"CC"}}, "the call has more than the rule names; to allow it, add env: [CC]"},
		{argv(Allow, "gcc", "*"), Example{Argv: []string{"gcc", "x"}, Cwd: "project"}, "the call has more than the rule names; to allow it, add cwd: project"},
		{argv(Allow, "gcc", "*"), Example{Argv: []string{"gcc", "x"}, Stdin: true}, "the call has more than the rule names; to allow it, add stdin: true"},
		{Rule{Effect: Allow, Argv: []string{"gcc"}, Env: []string{"C*"}, Cwd: "project"}, Example{Env: []string{"CC"}}, ""},
		{Rule{Effect: Allow, Argv: []string{"gcc"}, Cwd: "project"}, Example{Cwd: "project"}, ""},
		{Rule{Effect: Allow, Tool: "a/t"}, Example{Tool: "t", Stdin: true}, ""},
		{Rule{Effect: Allow, Tool: "a/t"}, Example{Pack: "a", Tool: "t"}, ""},
		{Rule{Effect: Allow, Tool: "a/t"}, Example{Pack: "b", Tool: "t"}, "tool is b/t, not a/t"},
		{Rule{Effect: Allow, Tool: "a/t"}, Example{Pack: "b"}, "pack is b, not a"},
		{Rule{Effect: Allow, Tool: "a/t"}, Example{Tool: "x"}, "tool is x, not t"},
		{Rule{Effect: Allow, Kinds: []string{"run"}}, Example{Kind: "exec"}, "kind is exec, not run"},
		{Rule{Effect: Allow, Kinds: []string{"exec"}, Argv: []string{"git"}}, Example{Argv: []string{"git"}}, ""},
		{Rule{Effect: Allow, Kinds: []string{"exec"}, Argv: []string{"git"}}, Example{Tool: "t", Argv: []string{"git"}}, "kind is run, not exec"},
		{Rule{Effect: Allow, Tool: "*"}, Example{Kind: "exec"}, "kind is exec, not run"},
		{Rule{Effect: Deny, Tool: "*"}, Example{Kind: "exec"}, ""},
		{Rule{Effect: Deny, Kinds: []string{"run"}}, Example{Kind: "exec", Argv: []string{"git"}}, ""},
		{Rule{Effect: Deny, Env: []string{"LD_*"}}, Example{Tool: "t"}, ""},
		{Rule{Effect: Deny, Env: []string{"LD_*"}}, Example{Env: []string{"CC"}}, `env is [CC], not ["LD_*"]`},
		{Rule{Effect: Deny, Cwd: "project"}, Example{Cwd: "workspace"}, "cwd is workspace, not project"},
	} {
		if err := tc.rule.Check(); err != nil {
			t.Errorf("%v.Check() = %v, want no error", tc.rule, err)
		}
		if err := tc.example.Check(); err != nil {
			t.Errorf("%+v.Check() = %v, want no error", tc.example, err)
		}
		if got, why := tc.rule.try(tc.example, false); got != (tc.want == "") || why != tc.want {
			t.Errorf("%v.try(%+v) = %v, %q, want %q", tc.rule, tc.example, got, why, tc.want)
		}
	}
}

func TestCheckSettings(t *testing.T) {
	for _, tc := range []struct {
		rule Rule
		want string
	}{
		{Rule{Effect: Deny, Env: []string{}}, `env: is empty; name variables, or write "*" for any`},
		{Rule{Effect: Deny, Env: []string{"A B"}}, `env: has "A B"; want names of variables, or patterns of names`},
		{Rule{Effect: Deny, Env: []string{"["}}, `env: has "["; want names of variables, or patterns of names`},
		{Rule{Effect: Deny, Cwd: "src"}, `cwd: is src; want workspace, pack_root, project, an absolute folder, or "*" for any`},
		{Rule{Effect: Deny, Kinds: []string{"exec"}, Env: []string{"A"}}, `env: is about tools that packs declare; a command of the model's own sets no variables and has no input: remove it`},
		{Rule{Effect: Allow, Kinds: []string{"exec"}, Stdin: true}, `stdin: is about tools that packs declare; a command of the model's own sets no variables and has no input: remove it`},
		{Rule{Effect: Allow, Env: []string{"A"}}, "allows every kind of call; say which: kind: open, read, enable, run, exec or attach, or a list of them"},
		{Rule{Effect: Allow, Kinds: []string{"open"}, Cwd: "project"}, `kind: is open; a rule with tool, argv, env, cwd or stdin is about runs: write run or exec, or make two rules`},
		{Rule{Effect: Allow, Kinds: []string{"exec"}, Tool: "t"}, `kind: is exec; a command of the model's own is not a declared tool: remove tool, or make two rules`},
		{Rule{Effect: Allow, Pack: "a", Tool: "a/t"}, `tool: is "a/t", which names the pack too; remove pack, or the part of tool before the last slash`},
	} {
		if err := tc.rule.Check(); err == nil || err.Error() != tc.want {
			t.Errorf("%v.Check() = %v, want %v", tc.rule, err, tc.want)
		}
	}
}

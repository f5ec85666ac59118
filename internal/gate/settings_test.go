package gate

import (
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// loaderVariables make an allowed program run or read something from the pack: those
// in hostile-cases §9.6, and similar ones.
var loaderVariables = []string{
	"BUNDLE_GEMFILE", "CARGO_BUILD_RUSTC_WRAPPER", "CARGO_HOME", "CC", "CXX", "CMAKE_TOOLCHAIN_FILE", "COMPILER_PATH", "COMPOSER_HOME",
	"DOTNET_ROOT", "ERL_FLAGS", "GCC_EXEC_PREFIX", "GEM_HOME", "GOCACHEPROG", "GRADLE_OPTS", "JULIA_LOAD_PATH", "LIBRARY_PATH", "MAVEN_OPTS",
	"MYSQL_HOME", "OCAMLRUNPARAM", "PAGER_PROGRAM", "PGSERVICEFILE", "PIP_INDEX_URL", "PSQLRC", "RIPGREP_CONFIG_PATH", "RUSTFLAGS",
	"SBT_OPTS", "SQLITE_HISTORY", "TF_CLI_CONFIG_FILE", "UV_INDEX_URL", "YARN_RC_FILENAME",
}

// §9.6: an allow rule by argv does not cover a tool that sets variables, unless it
// names each of them. The question and the log say which.
func TestAllowNamesVariables(t *testing.T) {
	gcc := func(env ...string) call.Request {
		return with(toolRun(), func(r *call.Request) {
			r.Run.Command.Program = program.Program{Name: "gcc", Path: "/usr/bin/gcc", Resolved: "/usr/bin/gcc", Digest: strings.Repeat("03", 32)}
			r.Run.Command.Args = []string{"-c", "x.c"}
			r.Run.Env = env
			r.Run.Command.Env = append([]string{"HOME=/desk/chat"}, env...)
		})
	}
	argv := rules.Rule{Effect: rules.Allow, Argv: []string{"gcc", "-c", "*.c"}, Where: "config.yaml:7"}
	if got := newBench(t, ruled(argv)).outcome(gcc()); got != allows {
		t.Fatalf("without variables: %s, want %s", got, allows)
	}
	for _, name := range loaderVariables {
		req := gcc("LANG=C", name+"=/packs/triage/evil")
		b := newBench(t, ruled(argv))
		q := b.ask(req)
		want := "config.yaml:7 allows it only with env: [LANG, " + name + "]"
		if text := strings.Join(strings.Fields(textOf(q)), " "); !strings.Contains(strings.ReplaceAll(text, `"`, ""), want) {
			t.Errorf("%s: the question does not say %q:\n%s", name, want, textOf(q))
		}
		if got := b.goes(req, accept(q.State, "deny")); got == allows {
			t.Errorf("%s: a denial allows", name)
		}
		all := b.log.all()
		if e := all[len(all)-1]; !strings.Contains(strings.ReplaceAll(e.Reason, `"`, ""), want) || e.Rule != "" {
			t.Errorf("%s: the line is %+v, want the reason %q", name, e, want)
		}
		for _, env := range [][]string{{"LANG", name}, {"*"}} {
			named := argv
			named.Env = env
			if got := newBench(t, ruled(named)).outcome(req); got != allows {
				t.Errorf("%s, named by %q: %s, want %s", name, env, got, allows)
			}
		}
		// A variable cannot evade a deny rule.
		deny := rules.Rule{Effect: rules.Deny, Argv: argv.Argv, Where: "config.yaml:8"}
		if got := newBench(t, ruled(argv, deny)).outcome(req); !strings.HasPrefix(got, "denied: ") {
			t.Errorf("%s: %s, want a denial", name, got)
		}
	}
	// Variables that the user grants do not count as the pack's.
	granted := with(gcc(), func(r *call.Request) {
		r.Run.Granted.Env = []string{"CC"}
		r.Run.Command.Env = append(r.Run.Command.Env, "CC=mine")
	})
	if got := newBench(t, ruled(argv)).outcome(granted); got != allows {
		t.Errorf("with a granted variable: %s, want %s", got, allows)
	}
}

// The same for the folder and standard input, and for what they do not affect.
func TestAllowNamesFolderAndInput(t *testing.T) {
	argv := rules.Rule{Effect: rules.Allow, Argv: []string{"git", "**"}, Where: "c:1"}
	inPack := func(r *call.Request) { r.Run.Command.Dir, r.Run.UsualDir = r.Pack.Dir, false }
	inProject := func(r *call.Request) {
		r.Run.Command.Dir, r.Run.Project, r.Run.UsualDir = "/home/ada/site", "/home/ada/site", false
	}
	in := func(cwd string) rules.Rule { r := argv; r.Cwd = cwd; return r }
	command := func(change func(*call.Request)) call.Request { return with(execRun(), change) }
	for _, tc := range []struct {
		says string
		rule rules.Rule
		req  call.Request
		want string
		add  string
	}{
		{"a command of the model's own", argv, execRun(), allows, ""},
		{"in the pack", argv, command(inPack), asks, "cwd: pack_root"},
		{"in the pack, named", in("pack_root"), command(inPack), allows, ""},
		{"in the project", in("pack_root"), command(inProject), asks, "cwd: project"},
		{"in the project, named", in("project"), command(inProject), allows, ""},
		{"in the project, by its path", in("/home/ada/site"), command(inProject), allows, ""},
		{"input", argv, command(func(r *call.Request) { r.Run.Command.Stdin = []byte("x") }), asks, "stdin: true"},
		{"what is not trusted", argv, command(func(r *call.Request) { r.Pack.Trust = call.TrustUntrusted; inPack(r) }), asks, ""},
	} {
		b := newBench(t, ruled(tc.rule))
		if got := b.outcome(tc.req); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.says, got, tc.want)
		}
		if tc.want == asks {
			if q := b.ask(tc.req); strings.Contains(textOf(q), "allows it only with") != (tc.add != "") || !strings.Contains(textOf(q), tc.add) {
				t.Errorf("%s: the question should say %q:\n%s", tc.says, tc.add, textOf(q))
			}
		}
	}
}

// A command and a tool are different requests, whatever their names.
func TestKindsOfRuns(t *testing.T) {
	b := newBench(t)
	for name, req := range map[string]call.Request{
		"a run without a tool": with(toolRun(), func(r *call.Request) { r.Run.Tool = "" }),
		"an exec with a tool":  with(execRun(), func(r *call.Request) { r.Run.Tool, r.Run.Definition = "git", "00" }),
		"an exec of nothing":   with(execRun(), func(r *call.Request) { r.Run = nil }),
	} {
		if got := b.outcome(req); !strings.HasPrefix(got, "denied: the request is incomplete") {
			t.Errorf("%s: %s, want a denial", name, got)
		}
	}
	// A program whose name would make the title read like a tool's.
	title := prompt.Title(new(with(execRun(), func(r *call.Request) {
		r.Run.Command.Program.Name, r.Run.Command.Args = "tool", []string{"deploy", "of", "pack", "acme"}
	})))
	if strings.HasPrefix(title, "Run tool ") {
		t.Errorf("a command is asked about as %q, like a tool", title)
	}
	// In the log, too.
	b = newBench(t)
	b.approve(execRun(), queue.Once)
	for _, e := range b.log.all() {
		if e.Kind != "exec" {
			t.Errorf("the line is of the kind %q, want exec: %+v", e.Kind, e)
		}
	}
}

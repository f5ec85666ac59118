package rules

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// run returns a call that the model wrote itself, of a program on PATH.
func run(argv ...string) Call {
	return Call{
		Pack: "acme/deploy", Kind: "exec", Bare: true, Usual: true,
		Program: []string{argv[0], "/usr/bin/" + argv[0], "/usr/lib/real/" + argv[0]}, Args: argv[1:],
	}
}

// at returns the call of a program by a path, found there.
func at(asked string, args ...string) Call {
	c := run("x")
	c.Program, c.Args, c.Bare = []string{asked, asked, asked}, args, false
	return c
}

// toolCall returns the run of a declared tool.
func toolCall(tool string, argv ...string) Call {
	c := run(argv...)
	c.Kind, c.Tool = "run", tool
	return c
}

func argv(e Effect, patterns ...string) Rule { return Rule{Effect: e, Argv: patterns} }

func TestReview(t *testing.T) {
	tool := Rule{Effect: Allow, Tool: "fmt", Review: true, Where: "c:1"}
	git := Rule{Effect: Allow, Argv: []string{"git", "**"}, Review: true, Where: "c:2"}
	withEnv := toolCall("fmt", "x")
	withEnv.Env, withEnv.Stdin = []string{"CC"}, true
	withGit := run("git", "commit")
	for _, tc := range []struct {
		says  string
		rules []Rule
		call  Call
		want  string // where the rule is written; empty: no rule
	}{
		{"the tool", []Rule{tool, git}, toolCall("fmt", "x"), "c:1"},
		{"another tool", []Rule{tool, git}, toolCall("vet", "x"), ""},
		{"the program", []Rule{tool, git}, withGit, "c:2"},
		{"an allowance that falls short", []Rule{git, {Effect: Allow, Tool: "fmt", Argv: []string{"**"}, Review: true, Where: "c:3"}}, withEnv, "c:3"},
		{"beside a denial", []Rule{argv(Deny, "git", "**"), git}, withGit, "c:2"},
		{"a document", []Rule{{Effect: Allow, Kinds: []string{"open", "run"}, Review: true, Where: "c:4"}}, Call{Pack: "p", Kind: "open"}, ""},
		{"without the word", []Rule{{Effect: Allow, Tool: "fmt"}}, toolCall("fmt", "x"), ""},
		{"a rule that is refused", []Rule{{Effect: Deny, Pack: "other", Review: true, Where: "c:5"}}, withGit, "c:5"},
	} {
		rule, ok := Review(tc.rules, tc.call)
		if ok != (tc.want != "") || rule.Where != tc.want {
			t.Errorf("%s: Review() = %q, %v, want %q", tc.says, rule.Where, ok, tc.want)
		}
	}
}

func TestDecide(t *testing.T) {
	allowGit, denyPush := argv(Allow, "git", "**"), argv(Deny, "git", "push", "**")
	link := run("vi", "x")
	link.Program = []string{"vi", "/usr/bin/vi", "/usr/bin/vim.basic"}
	open := Call{Pack: "acme/deploy", Kind: "open"}
	ticket := toolCall("open_ticket", "python3", "t.py")
	inPack := run("x", "1")
	inPack.Program, inPack.Bare = []string{"./scripts/t.py", "/packs/deploy/scripts/t.py", "/packs/deploy/scripts/t.py"}, false
	const near = 10 // Ask, and Near
	for _, tc := range []struct {
		name  string
		rules []Rule
		call  Call
		want  Effect
	}{
		{"no rules", nil, run("git"), 0},
		{"AP-09, allowed", []Rule{allowGit, denyPush}, run("git", "status"), Allow},
		{"AP-09, denied", []Rule{allowGit, denyPush}, run("git", "push", "-f"), Deny},
		{"AP-09, denied without more", []Rule{allowGit, denyPush}, run("git", "push"), Deny},
		{"AP-09, options between", []Rule{allowGit, denyPush}, run("git", "-c", "x", "push"), near},
		{"AP-09, a glob for the program", []Rule{argv(Allow, "git*", "**"), denyPush}, run("git", "-c", "x", "push"), near},
		{"AP-09, with a kind", []Rule{{Effect: Allow, Kinds: []string{"exec"}, Argv: []string{"git*"}}, denyPush}, run("git", "-c", "x", "push"), near},
		{"AP-09, near a question", []Rule{allowGit, argv(Ask, "git", "push", "**")}, run("git", "-C", "/x", "push"), near},
		{"near without an allow", []Rule{denyPush}, run("git", "-c", "x", "push"), near},
		{"near a denial, and a question", []Rule{denyPush, argv(Ask, "git", "**")}, run("git", "-c", "x", "push"), Ask},
		{"near a denial, and another denial", []Rule{denyPush, argv(Deny, "git", "-c", "**")}, run("git", "-c", "x", "push"), Deny},
		{"an allow that comes near allows nothing", []Rule{argv(Allow, "git", "log")}, run("git", "-c", "x", "log"), 0},

		{"everything", []Rule{{Effect: Deny}}, open, Deny},
		{"kind", []Rule{{Effect: Allow, Kinds: []string{"open", "read"}}}, open, Allow},
		{"other kind", []Rule{{Effect: Allow, Kinds: []string{"read"}}}, open, 0},
		{"pack", []Rule{{Effect: Deny, Pack: "acme/*"}}, open, Deny},
		{"pack, no slash in a star", []Rule{{Effect: Deny, Pack: "ac*"}}, open, 0},
		{"every pack", []Rule{{Effect: Deny, Pack: "*"}}, open, Deny},
		{"tool", []Rule{{Effect: Deny, Tool: "open_*"}}, ticket, Deny},
		{"other tool", []Rule{{Effect: Deny, Tool: "ticket"}}, ticket, 0},
		{"every tool is not a document", []Rule{{Effect: Deny, Tool: "*"}}, open, 0},
		{"every argv is not a document", []Rule{argv(Deny, "**")}, open, 0},
		{"all selectors", []Rule{{Effect: Deny, Pack: "acme/deploy", Kinds: []string{"exec"}, Argv: []string{"git", "*"}}}, run("git", "x"), Deny},
		{"all but the pack", []Rule{{Effect: Deny, Pack: "acme/other", Kinds: []string{"exec"}, Argv: []string{"git", "*"}}}, run("git", "x"), 0},

		{"one star is one element", []Rule{argv(Allow, "git", "*")}, run("git", "log", "-1"), 0},
		{"a star has slashes", []Rule{argv(Allow, "cat", "/srv/*")}, run("cat", "/srv/a/b"), Allow},
		{"a question mark is none", []Rule{argv(Allow, "cat", "a?[b]\\")}, run("cat", "abb"), 0},
		{"a question mark is one", []Rule{argv(Allow, "cat", "a?[b]\\")}, run("cat", "a?[b]\\"), Allow},
		{"an empty argument", []Rule{argv(Allow, "cat", "")}, run("cat", ""), Allow},
		{"elements are not joined", []Rule{argv(Allow, "git", "log -1")}, run("git", "log", "-1"), 0},
		{"nor split", []Rule{argv(Allow, "git", "log", "-1")}, run("git", "log -1"), 0},
		{"number in the middle", []Rule{argv(Allow, "git", "**", "--dry-run")}, run("git", "a", "b", "--dry-run"), Allow},
		{"none in the middle", []Rule{argv(Allow, "git", "**", "--dry-run")}, run("git", "--dry-run"), Allow},
		{"numbers", []Rule{argv(Deny, "**", "-exec", "**", ";")}, run("find", "-exec", "rm", ";"), Deny},
		{"number for the program", []Rule{argv(Deny, "**", "git", "push")}, run("git", "push"), Deny},
		{"number before the program", []Rule{argv(Deny, "**", "git", "push")}, run("env", "git", "push"), Deny},
		{"case of arguments", []Rule{argv(Allow, "git", "log")}, run("git", "LOG"), 0},

		{"a link is denied by its name", []Rule{argv(Deny, "vi", "**")}, link, Deny},
		{"a link is denied by where it leads", []Rule{argv(Deny, "vim.*", "**")}, link, Deny},
		{"a link is denied by its path", []Rule{argv(Deny, "/usr/bin/vi", "**")}, link, Deny},
		{"a link is denied by that path", []Rule{argv(Deny, "/usr/bin/vim.basic", "**")}, link, Deny},
		{"a link is allowed by its name", []Rule{argv(Allow, "vi", "**")}, link, Allow},
		{"a link is not allowed by where it leads", []Rule{argv(Allow, "vim.basic", "**")}, link, 0},
		{"a link is allowed by its path", []Rule{argv(Allow, "/usr/bin/vi", "**")}, link, Allow},
		{"a link is not allowed by that path", []Rule{argv(Allow, "/usr/bin/vim.basic", "**")}, link, 0},
		{"a bare name allows no path", []Rule{allowGit}, at("/tmp/git", "status"), 0},
		{"a bare name allows no path of a system", []Rule{allowGit}, at("/usr/bin/git", "status"), 0},
		{"a star allows no path", []Rule{argv(Allow, "*", "**")}, at("/tmp/git"), 0},
		{"a bare name allows nothing of the pack", []Rule{argv(Allow, "t.py", "**")}, inPack, 0},
		{"a path allows", []Rule{argv(Allow, "/usr/bin/git", "**")}, at("/usr/bin/git", "status"), Allow},
		{"a path allows a bare name found there", []Rule{argv(Allow, "/usr/bin/git", "**")}, run("git", "status"), Allow},
		{"a path is not a beginning", []Rule{argv(Allow, "/usr/bin/git", "**")}, at("/usr/bin/git-evil", "status"), 0},
		{"a path that leads out of one", []Rule{argv(Allow, "/usr/bin/*", "**")}, at("/usr/bin/../../tmp/git"), 0},
		{"a pack's program", []Rule{argv(Allow, "./scripts/*", "1")}, inPack, Allow},
		{"another of the pack", []Rule{argv(Allow, "./bin/*", "1")}, inPack, 0},
		{"a way out of a pack's folder", []Rule{argv(Allow, "./bin/*")}, at("./bin/../../t.py"), 0},
		{"a way to a pack's other folder", []Rule{argv(Allow, "./bin/*")}, at("./bin/../x/t.py"), 0},
		{"a pack's program, denied", []Rule{argv(Deny, "./scripts/*", "1")}, inPack, Deny},
		{"a pack's program, denied by its name", []Rule{argv(Deny, "t.py", "**")}, inPack, Deny},
		{"a bare name denies paths", []Rule{denyPush}, at("/opt/git/bin/git", "push"), Deny},
		{"a bare name denies long ways", []Rule{denyPush}, at("/usr/bin/../bin/git", "push"), Deny},
		{"a path denies long ways", []Rule{argv(Deny, "/usr/bin/git", "push")}, at("/usr/bin/../bin//git", "push"), Deny},
		{"letter case of denied programs", []Rule{denyPush}, at("/usr/bin/GIT", "push"), Deny},
		{"letter case, not of English", []Rule{argv(Deny, "ssh", "**")}, run("ſSH", "x"), Deny},
		{"invisible characters", []Rule{denyPush}, run("g\u200cit", "push"), Deny},
		{"programs of Windows", []Rule{denyPush}, at(`C:\Git\GIT.exe`, "push"), Deny},
		{"letter case of allowed programs", []Rule{allowGit}, run("GIT", "status"), 0},
		{"any folder", []Rule{argv(Deny, "*/git", "**")}, at("/opt/x/git", "status"), Deny},
		{"no program to speak of, allowed", []Rule{argv(Allow, "**")}, Call{Kind: "run", Usual: true}, Allow},
		{"no program to speak of, a name", []Rule{argv(Allow, "*")}, Call{Kind: "run"}, 0},
		{"no program to speak of, denied", []Rule{argv(Deny, "git", "**")}, Call{Kind: "run"}, Deny},
		{"a name, but nothing found", []Rule{argv(Allow, "/usr/*")}, Call{Kind: "run", Program: []string{"/usr/git"}}, 0},

		{"a rule that is wrong allows nothing", []Rule{{Effect: Allow}}, open, 0},
		{"a rule that is wrong asks", []Rule{{Effect: Ask, Pack: "["}}, open, Ask},
		{"a rule that is wrong denies", []Rule{{Effect: Deny, Kinds: []string{"opn"}}}, open, Deny},
		{"a rule without effect denies", []Rule{{}}, open, Deny},
		{"a rule with another effect denies", []Rule{{Effect: 7}}, open, Deny},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := tc.want
			if want == near {
				want = Ask
			}
			// The order of the rules does not matter.
			backwards := slices.Clone(tc.rules)
			slices.Reverse(backwards)
			for _, all := range [][]Rule{tc.rules, backwards} {
				got := decide(all, tc.call, false)
				if got.Effect != want || got.Near != (tc.want == near) {
					t.Errorf("decide(%v, %+v) = %v, near %v, want %v, near %v", all, tc.call, got.Effect, got.Near, want, tc.want == near)
				}
				if (got.Effect != 0) != slices.ContainsFunc(all, func(r Rule) bool { return cmp.Equal(r, got.Rule) }) {
					t.Errorf("decide(%v, %+v).Rule = %v, want one of them", all, tc.call, got.Rule)
				}
			}
		})
	}
}

func TestDecideNearly(t *testing.T) {
	for _, tc := range []struct {
		deny, argv string // elements separated by blanks
		want       bool
	}{
		{"git push **", "git -C /x push origin", true},
		{"git push **", "git --exec-path=push status", true},
		{"git push **", "git -cpush", true},
		{"git push **", "git -c alias.x=push x", true},
		{"git push **", "git PUSH", true},
		{"git push **", "env git push", true},
		{"git push **", "env -i /usr/bin/git -c x push", true},
		{"git push **", "git log pushed", false},
		{"git push **", "git status", false},
		{"git push **", "push git", false},
		{"git push **", "svn push", false},
		{"git push **", "sh -c git\u00a0push", false}, // one argument: the rules do not parse shell
		{"/usr/bin/git push", "/opt/bin/git push", true},
		{"/usr/bin/* push", "/opt/bin/git push", false},
		{"git", "git status", true},
		{"git push --force", "git push origin main --force", true},
		{"git push --force origin", "git push origin --force", true},
		{"git push --force", "git push --forc", true},
		{"git push --force", "git push -f", true},
		{"git push -f", "git push --force", true},
		{"git push -f", "git push -nf", true},
		{"git push -f", "git push -n", false},
		{"git push --force", "git push --", false},
		{"rm -rf **", "rm -r -f x", true},
		{"rm -rf **", "rm -fr x", true},
		{"rm -rf **", "rm -vrf x", true},
		{"rm -rf **", "rm -r x", false},
		{"rm -rf **", "rm my-rf", false},
		{"curl -X POST **", "curl -XPOST x", true},
		{"curl -XPOST **", "curl -X POST x", true},
		{"curl --request POST **", "curl --request=POST x", true},
		{"curl --request=POST **", "curl --request POST x", true},
		{"curl --request=POST **", "curl --request GET x", false},
		{"find **  -exec **", "find --exec", true},
		{"dd of=/dev/sda", "dd if=x of=/dev/sda", true},
		{"tee /dev/sda", "tee x /dev/../dev/sda", true},
		{"cat /etc/passwd", "cat -- //etc/passwd", true},
		{"cat /etc/*", "cat x /etc/passwd", true},
		{"cat /etc/*", "cat x /srv/etc", false},
		{"dd *=/dev/* x", "dd if=/dev/zero of=/dev/sda x", true},
		{"* *", "git push x", false}, // only stars
		{"**  --force **", "git push --forc", true},
		{"** rm **", "busybox /bin/rm", true},
		{"git push **", "", false},
	} {
		deny := argv(Deny, strings.Fields(tc.deny)...)
		if err := deny.Check(); err != nil {
			t.Errorf("%v.Check() = %v, want no error", deny, err)
		}
		var call Call
		if f := strings.Split(tc.argv, " "); strings.Contains(f[0], "/") {
			call = at(f[0], f[1:]...)
		} else {
			call = run(f...)
		}
		got := decide([]Rule{deny}, call, false)
		if got.Effect == Deny || got.Near != tc.want {
			t.Errorf("decide(%v, %q) = %v, near %v, want near %v", deny, tc.argv, got.Effect, got.Near, tc.want)
		}
	}
}

func TestDecideOnWindows(t *testing.T) {
	exe := Call{Kind: "run", Program: []string{"git", `C:\Program Files\Git\git.exe`, `C:\Program Files\Git\git.exe`}, Bare: true, Usual: true, Args: []string{"push"}}
	for _, tc := range []struct {
		rule Rule
		want Effect
	}{
		{argv(Allow, "git", "push"), Allow},
		{argv(Allow, "GIT.EXE", "push"), Allow},
		{argv(Allow, "gitx", "push"), 0},
		{argv(Allow, "c:/program files/git/*", "push"), Allow},
		{argv(Allow, `C:\Program Files\Git\git`, "push"), Allow},
		{argv(Allow, `C:\Program Files\Git\bin\git`, "push"), 0},
		{argv(Deny, "git.exe", "push"), Deny},
		{argv(Deny, "Git", "push"), Deny},
		{argv(Deny, `C:/Program Files/Git/git`, "push"), Deny},
		{argv(Deny, `*\git`, "push"), Deny},
	} {
		if err := tc.rule.Check(); err != nil {
			t.Errorf("%v.Check() = %v, want no error", tc.rule, err)
		}
		if got := decide([]Rule{tc.rule}, exe, true); got.Effect != tc.want {
			t.Errorf("decide(%v, %+v) = %v, want %v", tc.rule, exe, got.Effect, tc.want)
		}
	}
	exe.Program[0] = "ſh" // looks like "sh", but is not
	if got := decide([]Rule{argv(Allow, "sh", "push")}, exe, true); got.Effect != 0 {
		t.Errorf("decide(%+v) = %v, want no rule", exe, got.Effect)
	}
}

// A call built to be slow to match is not slow: a backtracking matcher would not
// finish within the time of a test.
func TestDecideLongArguments(t *testing.T) {
	long := strings.Repeat("a", 128<<10)
	call := run("git")
	for range 16 {
		call.Args = append(call.Args, long, "-"+long, "--"+long+"="+long)
	}
	patterns := []string{"git"}
	for range maxElements/2 - 1 {
		patterns = append(patterns, "**", strings.Repeat("*a", 100)+"*b")
	}
	for _, e := range []Effect{Allow, Deny} {
		if got := decide([]Rule{argv(e, patterns...)}, call, false); got.Effect != 0 {
			t.Errorf("decide(…) = %v, want no rule", got.Effect)
		}
	}
}

func TestCheck(t *testing.T) {
	const path = "want a name without a slash, an absolute path, or one that begins with ./ for a program of the pack"
	const strictPath = "want a name without a slash, an absolute path, one that begins with */ for any folder, or with ./ for a program of the pack"
	const dots = `argv[0]: want a path without "..", "." and double slashes: programs' paths are compared without them`
	for _, tc := range []struct {
		rule Rule
		want string // empty: none
	}{
		{Rule{Effect: Deny}, ""},
		{Rule{Effect: Allow, Kinds: []string{"open"}}, ""},
		{Rule{Effect: Allow, Tool: "x"}, ""},
		{argv(Allow, "git", "**"), ""},
		{argv(Deny, "/opt/*/git"), ""},
		{argv(Deny, "*/git"), ""},
		{argv(Deny, "./x"), ""},
		{argv(Deny, `C:\Program Files\git.exe`), ""},
		{argv(Deny, `\\server\share\git.exe`), ""},
		{Rule{Effect: Allow, Tool: "x", Review: true}, ""},
		{Rule{Effect: Allow, Kinds: []string{"read", "exec"}, Review: true}, ""},
		{Rule{Effect: Allow, Kinds: []string{"open", "read"}, Review: true}, "review: is about what runs change, and the rule is about open and read; add run or exec to kind, or remove it"},
		{Rule{Effect: Ask, Tool: "x", Review: true}, "review: is for rules that allow; to see all changes of runs that you are asked about, write review: all in sandbox.grants"},
		{Rule{Effect: Deny, Review: true}, "review: is for rules that allow; to see all changes of runs that you are asked about, write review: all in sandbox.grants"},
		{Rule{}, "has no effect; want deny, ask or allow"},
		{Rule{Effect: 4}, "has no effect; want deny, ask or allow"},
		{Rule{Effect: Allow}, "allows every kind of call; say which: kind: open, read, enable, run, exec or attach, or a list of them"},
		{Rule{Effect: Allow, Pack: "x"}, "allows every kind of call; say which: kind: open, read, enable, run, exec or attach, or a list of them"},
		{Rule{Effect: Deny, Pack: "a["}, `pack: is "a["; want a pack's id or a pattern of ids`},
		{Rule{Effect: Deny, Pack: " "}, `pack: is " "; want a pack's id or a pattern of ids`},
		{Rule{Effect: Deny, Tool: "[]"}, `tool: is "[]"; want a tool's name, a pack and a name such as acme/deploy/open_ticket, or a pattern of these`},
		{Rule{Effect: Deny, Kinds: []string{"list"}}, `kind: is "list"; want open, read, enable, run, exec or attach`},
		{Rule{Effect: Deny, Kinds: []string{"run", "run"}}, `kind: name run once`},
		{Rule{Effect: Deny, Kinds: []string{"open"}, Argv: []string{"git"}}, `kind: is open; a rule with tool, argv, env, cwd or stdin is about runs: write run or exec, or make two rules`},
		{Rule{Effect: Deny, Kinds: []string{"run", "enable"}, Tool: "x"}, `kind: is run and enable; a rule with tool, argv, env, cwd or stdin is about runs: write run or exec, or make two rules`},
		{Rule{Effect: Deny, Argv: []string{}}, `argv: is empty; write the program and its arguments, such as [git, push, "**"]`},
		{argv(Deny, ""), "argv[0]: is empty; write the program's name"},
		{argv(Deny, "git push"), `argv[0]: has a blank; write each argument as an element of its own, such as [git, push, "**"]`},
		{argv(Deny, "git", "a\x00"), `argv[1]: an argument has no zero bytes`},
		{argv(Deny, "git", "***"), `argv[1]: write "*" for any one element, or "**" for any number of them`},
		{argv(Deny, "git", strings.Repeat("x", 4097)), `argv[1]: is longer than 4096 bytes`},
		{Rule{Effect: Deny, Argv: make([]string, 65)}, `argv: has 65 elements; at most 64 are compared`},
		{argv(Allow, "bin/git"), "argv[0]: " + path},
		{argv(Allow, "*/git"), "argv[0]: " + path},
		{argv(Allow, "~/git"), "argv[0]: " + path},
		{argv(Deny, "bin/git"), "argv[0]: " + strictPath},
		{argv(Deny, "/usr/../git"), dots},
		{argv(Deny, "/usr//git"), dots},
		{argv(Deny, "./../git"), dots},
		{argv(Deny, "/usr/./git"), dots},
		{argv(Deny, "/usr/git/"), dots},
	} {
		got := ""
		if err := tc.rule.Check(); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%v.Check() = %q, want %q", tc.rule, got, tc.want)
		}
	}
}

func TestTry(t *testing.T) {
	push := argv(Deny, "git", "push", "**")
	docs := Rule{Effect: Allow, Pack: "acme/*", Kinds: []string{"open", "read"}}
	tool := Rule{Effect: Ask, Tool: "ticket_*"}
	for _, tc := range []struct {
		rule    Rule
		example Example
		want    string // why not; empty: it matches
	}{
		{push, Example{Argv: []string{"git", "push", "-f"}}, ""},
		{push, Example{Argv: []string{"/usr/bin/git", "push"}}, ""},
		{push, Example{Pack: "acme/x", Kind: "run", Tool: "t", Argv: []string{"git", "push"}}, ""},
		{push, Example{Pack: "acme/x"}, ""},
		{push, Example{Argv: []string{"git", "-c", "x", "push"}}, `argv is [git, -c, x, push], not [git, push, "**"]; it only comes near, and is asked about`},
		{push, Example{Kind: "open"}, "kind is open, not run or exec"},
		{argv(Allow, "/usr/bin/git"), Example{Argv: []string{"git"}}, `argv is [git], not [/usr/bin/git]; the rule names a path, so name it here too`},
		{argv(Allow, "/usr/bin/git"), Example{Argv: []string{"/usr/bin/git"}}, ""},
		{argv(Allow, "git"), Example{Argv: []string{"/usr/bin/git"}}, `argv is [/usr/bin/git], not [git]`},
		{argv(Allow, "./x"), Example{Argv: []string{"./x"}}, ""},
		{docs, Example{Kind: "open"}, ""},
		{docs, Example{Pack: "acme/x"}, ""},
		{docs, Example{Pack: "x", Kind: "open"}, `pack is x, not "acme/*"`},
		{docs, Example{Kind: "run"}, "kind is run, not open or read"},
		{docs, Example{Argv: []string{"git"}}, "kind is run, not open or read"},
		{tool, Example{Tool: "ticket_a"}, ""},
		{tool, Example{Tool: "a"}, `tool is a, not "ticket_*"`},
		{tool, Example{Argv: []string{"git"}}, ""},
	} {
		got, why := tc.rule.try(tc.example, false)
		if got != (tc.want == "") || why != tc.want {
			t.Errorf("%v.Try(%+v) = %v, %s, want %s", tc.rule, tc.example, got, why, tc.want)
		}
	}
	for _, tc := range []struct {
		example Example
		want    string
	}{
		{Example{}, "says nothing; write an argv, such as [git, push], or a mapping of pack, kind, tool, argv, env, cwd and stdin"},
		{Example{Kind: "list"}, `kind: is "list"; want open, read, enable, run, exec or attach`},
		{Example{Kind: "open", Tool: "x"}, `kind: is open; only run and exec have an argv, and run a tool, variables and input`},
		{Example{Argv: []string{}}, "argv: has no program; write its name first"},
		{Example{Argv: []string{"", "x"}}, "argv: has no program; write its name first"},
	} {
		if err := tc.example.Check(); err == nil || err.Error() != tc.want {
			t.Errorf("%+v.Check() = %v, want %v", tc.example, err, tc.want)
		}
	}
}

func TestString(t *testing.T) {
	r := Rule{
		Effect: Deny, Pack: "acme/*", Kinds: []string{"open", "read"}, Tool: "a b", Argv: []string{"git", "**", "\u202e\n", ""},
		Env: []string{"CC", "X*"}, Cwd: "project", Stdin: true, Where: "config.yaml:1",
	}
	const want = `deny {pack: "acme/*", kind: [open, read], tool: "a b", argv: [git, "**", "\u202e\n", ""], env: [CC, "X*"], cwd: project, stdin: true}`
	if got := r.String(); got != want {
		t.Errorf("String() = %s, want %s", got, want)
	}
	const reviewed = `allow {tool: x}, review: all`
	if got := (Rule{Effect: Allow, Tool: "x", Review: true}).String(); got != reviewed {
		t.Errorf("String() = %s, want %s", got, reviewed)
	}
	if got := (Rule{}).String(); got != "no rule {}" {
		t.Errorf("String() = %s, want %s", got, "no rule {}")
	}
}

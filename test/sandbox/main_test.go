//go:build unix

package sandbox_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

const (
	// hideVar is set for the test binary. It names the kernel feature, "landlock" or
	// "userns", that the binary hides from itself first.
	hideVar = "SANDBOX_TEST_HIDE"

	// doVar says what the binary does then instead of testing: "level" prints the remaining
	// level, and "exec" executes the program in its arguments.
	doVar = "SANDBOX_TEST_DO"
)

// goCacheVar is set for a process of the test binary that shares another one's goCache.
const goCacheVar = "SANDBOX_TEST_GOCACHE"

var (
	// binDir is where programs are built; TestMain creates and removes it.
	binDir string

	// goCache is what Go compiled at one level, which the other levels reuse.
	goCache string
)

func TestMain(m *testing.M) {
	if what := os.Getenv(hideVar); what != "" {
		if err := hide(what); err != nil {
			fmt.Fprintf(os.Stderr, "hiding %s: %v\n", what, err)
			os.Exit(1)
		}
	}
	switch os.Getenv(doVar) {
	case "level":
		fmt.Print(runner.New(runner.Options{}).Probe(context.Background()).Level)
		os.Exit(0)
	case "exec":
		env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
			return strings.HasPrefix(kv, hideVar+"=") || strings.HasPrefix(kv, doVar+"=")
		})
		fmt.Fprintln(os.Stderr, syscall.Exec(os.Args[1], os.Args[1:], env))
		os.Exit(1)
	}
	var err error
	if binDir, err = os.MkdirTemp("", "packs-mcp-sandbox-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if goCache = os.Getenv(goCacheVar); goCache == "" {
		goCache = filepath.Join(binDir, "go-cache")
		err = os.Mkdir(goCache, 0o700)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(binDir)
	os.Exit(code)
}

// without returns a command that runs on a system without a feature; its environment has
// only the variables for that.
func without(t *testing.T, what, file string, args ...string) *exec.Cmd {
	t.Helper()
	if what == "" {
		return exec.Command(file, args...)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{file}, args...)...)
	cmd.Env = []string{hideVar + "=" + what, doVar + "=exec"}
	return cmd
}

// levelWithout returns the best level of a system without a feature.
func levelWithout(t *testing.T, what string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), hideVar+"="+what, doVar+"=level")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("asking for the level without %s: %v", what, err)
	}
	return string(out)
}

// required reports whether PACKS_MCP_REQUIRE has the name.
func required(name string) bool {
	return slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), name)
}

// skip skips the test, unless PACKS_MCP_REQUIRE names what is missing.
func skip(t testing.TB, name, format string, args ...any) {
	t.Helper()
	reason := fmt.Sprintf(format, args...)
	if required(name) {
		t.Fatalf("%s: required by PACKS_MCP_REQUIRE, but %s", name, reason)
	}
	t.Skipf("%s: %s", name, reason)
}

// need skips the test if a program is not on the PATH.
func need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			skip(t, p, "there is no %s on the PATH", p)
		}
	}
}

// A variant is one way of confining a run.
type variant struct {
	name  string
	level sandbox.Level
	skip  []sandbox.Level
	hide  string // the feature that the test binary hides first; see hideVar
	needs string // its name in PACKS_MCP_REQUIRE
}

// variants returns the levels, with both forms of partial on Linux, best first.
func variants() []variant {
	full, partial, none := sandbox.LevelFull, sandbox.LevelPartial, sandbox.LevelNone
	return []variant{
		{name: "full", level: full, needs: "userns"},
		{name: "partial", level: partial, skip: []sandbox.Level{full}, needs: "landlock"},
		{name: "partial-without-landlock", level: partial, hide: "landlock", needs: "userns"},
		{name: "none", level: none, skip: []sandbox.Level{full, partial}},
	}
}

// eachVariant runs a test in each variant that this machine has. A separate process finds the
// test by its function's name.
func eachVariant(t *testing.T, test func(*testing.T, variant)) {
	for _, v := range variants() {
		t.Run(v.name, func(t *testing.T) {
			hidden := os.Getenv(hideVar)
			switch {
			case hidden != "" && hidden != v.hide:
				t.Skip("this process is for another variant")
			case hidden == "" && v.hide != "":
				v.mustConfine(t)
				again(t, v.hide)
			default:
				test(t, v)
			}
		})
	}
}

// mustConfine skips the variant without confinement.
func (v variant) mustConfine(t *testing.T) {
	t.Helper()
	if v.hide == "landlock" && os.Getuid() == 0 {
		t.Skip("without Landlock, nothing keeps root's programs from what only root may read")
	}
}

var endLine = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+)`)

// again runs this test in a process that hides a feature from itself. Its output is shown if
// it fails, and with -v.
func again(t *testing.T, what string) {
	if !canHide {
		t.Skipf("%s: cannot be hidden on this system", what)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	args := []string{"-test.v", "-test.run=" + strings.Join(parts, "/"), fmt.Sprintf("-test.short=%v", testing.Short())}
	if skipped := flag.Lookup("test.skip").Value.String(); skipped != "" {
		args = append(args, "-test.skip="+skipped)
	}
	if deadline, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+time.Until(deadline).String())
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), hideVar+"="+what, goCacheVar+"="+goCache)
	out, err := cmd.CombinedOutput()
	ended := ""
	for _, m := range endLine.FindAllStringSubmatch(string(out), -1) {
		if m[2] == t.Name() {
			ended = m[1]
		}
	}
	switch {
	case err != nil || ended != "PASS" && ended != "SKIP":
		t.Errorf("the same in a process without %s: %v\n%s", what, err, out)
	case ended == "SKIP":
		t.Skipf("in a process without %s: %s", what, out)
	default:
		t.Logf("in a process without %s:\n%s", what, out)
	}
}

// runner returns a Runner that confines as v says, and skips the test if this machine cannot.
func (v variant) runner(t testing.TB, o runner.Options) *runner.Runner {
	t.Helper()
	o.Skip = v.skip
	r := runner.New(o)
	report := r.Probe(context.Background())
	if report.Level != v.level {
		skip(t, v.needs, "this machine has no level %s: %s", v.name, problems(report))
	}
	if v.hide != "" && strings.Contains(strings.ToLower(strings.Join(means(report), " ")), v.hide) {
		t.Fatalf("Probe() = %v, want a level that does not use %s", means(report), v.hide)
	}
	return r
}

func problems(report sandbox.Report) string {
	var all []string
	for _, trial := range report.Trials {
		if trial.Problem != "" {
			all = append(all, trial.Level.String()+": "+trial.Problem)
		}
	}
	if len(all) == 0 {
		return "nothing was tried"
	}
	return strings.Join(all, "; ")
}

// means returns what confines at the level of the report.
func means(report sandbox.Report) []string {
	for _, trial := range report.Trials {
		if trial.Level == report.Level && trial.Problem == "" {
			return trial.Means
		}
	}
	return nil
}

// A place is a pack and a workspace, used as the server would.
type place struct {
	pack, workspace string
	lookup          *program.Lookuper
}

func newPlace(t testing.TB) *place {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{filepath.Join(root, "pack"), filepath.Join(root, "workspace"), new(program.Lookuper)}
	for _, dir := range []string{p.pack, p.workspace} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// write writes files at slash-separated paths below dir; scripts become executable.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
}

// program looks up a name as the server does for a pack's tool.
func (p *place) program(t testing.TB, name string) program.Program {
	t.Helper()
	program, err := p.lookup.Lookup(name, program.LookupOptions{
		Path: os.Getenv("PATH"), Exclude: []string{p.pack, p.workspace}, PackDir: p.pack,
		Environ: os.Environ(), Dir: string(filepath.Separator),
	})
	if err != nil {
		t.Fatalf("Lookup(%q) = %v, want a program", name, err)
	}
	return program
}

// command returns a program with arguments in the workspace, with the environment that the
// server gives: of the user's own variables, only those about language.
func (p *place) command(t testing.TB, name string, args, env []string) sandbox.Command {
	t.Helper()
	found := p.program(t, name)
	base := sandbox.BaseEnv(os.Environ(), sandbox.EnvOptions{Home: p.workspace, Exclude: []string{p.pack, p.workspace}})
	ours := []string{"PACKS_PACK_ID=controls", "PACKS_PACK_DIR=" + p.pack, "PACKS_WORKSPACE=" + p.workspace}
	if dirs := found.PathDirs(); len(dirs) > 0 {
		path := program.FilterPath(os.Getenv("PATH"), []string{p.pack, p.workspace})
		ours = append(ours, "PATH="+strings.Join(append(dirs, path), string(filepath.ListSeparator)))
	}
	return sandbox.Command{
		Program: found, Args: args, Dir: p.workspace, Workspace: p.workspace, RunID: "r1",
		Env: sandbox.MergeEnv(base, ours, env),
	}
}

// policy returns the server's policy for a tool, with granted folders.
func (p *place) policy(granted ...string) sandbox.Policy {
	return sandbox.Policy{
		ReadOnly: []string{p.pack}, Writable: append([]string{p.workspace}, granted...), Private: []string{p.pack, p.workspace},
	}
}

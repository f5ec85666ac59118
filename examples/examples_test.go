package examples_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/examples"
)

// extract puts the packs into a new folder.
func extract(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "packs")
	if err := examples.Extract(dir); err != nil {
		t.Fatalf("Extract(%q) = %v, want nil", dir, err)
	}
	return dir
}

// need skips the test by name on a machine that lacks the program.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("skipped: no %s on this machine", program)
	}
	return path
}

func TestEveryPackHasAnEntryDocument(t *testing.T) {
	entries, err := fs.ReadDir(examples.Packs, "packs")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	nameLine := regexp.MustCompile(`(?m)^name: (.*)$`)
	descriptionLine := regexp.MustCompile(`(?m)^description: (.*)$`)
	for _, e := range entries {
		names = append(names, e.Name())
		data, err := fs.ReadFile(examples.Packs, "packs/"+e.Name()+"/SKILL.md")
		if err != nil {
			t.Errorf("pack %q: %v", e.Name(), err)
			continue
		}
		rest, ok := strings.CutPrefix(string(data), "---\n")
		front, _, closed := strings.Cut(rest, "\n---\n")
		if !ok || !closed {
			t.Errorf("pack %q: SKILL.md has no frontmatter", e.Name())
			continue
		}
		if m := nameLine.FindStringSubmatch(front); m == nil || m[1] != e.Name() {
			t.Errorf("pack %q: name line = %q, want the folder's name", e.Name(), m)
		}
		m := descriptionLine.FindStringSubmatch(front)
		if m == nil {
			t.Errorf("pack %q: no description", e.Name())
		} else if n := utf8.RuneCountInString(m[1]); n == 0 || n > 1024 || strings.Contains(m[1], ": ") {
			t.Errorf("pack %q: description of %d characters is empty, above 1024, or needs quotes: %q", e.Name(), n, m[1])
		}
	}
	if want := []string{"code-reviewer", "git-helper", "markdown-formatter"}; !slices.Equal(names, want) {
		t.Errorf("packs = %v, want %v", names, want)
	}
}

// A document that names a file of the pack is followed by a model: the file
// must be there.
func TestDocumentsNameFilesThatExist(t *testing.T) {
	named := regexp.MustCompile("`((?:docs|resources|scripts)/[^`]+)`")
	err := fs.WalkDir(examples.Packs, "packs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".md" {
			return err
		}
		data, err := fs.ReadFile(examples.Packs, name)
		if err != nil {
			return err
		}
		pack := strings.Join(strings.Split(name, "/")[:2], "/")
		for _, m := range named.FindAllStringSubmatch(string(data), -1) {
			if _, err := fs.Stat(examples.Packs, pack+"/"+m[1]); err != nil {
				t.Errorf("%s names %q: %v", name, m[1], err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestExtract(t *testing.T) {
	dir := extract(t)

	files := 0
	err := fs.WalkDir(examples.Packs, "packs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		want, err := fs.ReadFile(examples.Packs, name)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(name, "packs/")))
		got, err := os.ReadFile(path)
		if err != nil || string(got) != string(want) {
			t.Errorf("ReadFile(%q) = %d bytes, %v, want the %d embedded bytes", path, len(got), err, len(want))
			return nil
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if filepath.Ext(name) == ".sh" {
			mode = 0o755
		}
		if runtime.GOOS != "windows" && info.Mode().Perm() != mode {
			t.Errorf("mode of %q = %v, want %v", path, info.Mode().Perm(), mode)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	onDisk := 0
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			onDisk++
		}
		return err
	})
	if err != nil || onDisk != files {
		t.Errorf("files in %q = %d, %v, want %d", dir, onDisk, err, files)
	}
}

func TestExtractTwice(t *testing.T) {
	dir := extract(t)
	script := filepath.Join(dir, "git-helper", "scripts", "changelog.sh")
	if err := os.Chmod(script, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := examples.Extract(dir); err != nil {
		t.Fatalf("second Extract(%q) = %v, want nil", dir, err)
	}
	info, err := os.Stat(script)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o755 {
		t.Errorf("mode of %q = %v, want 0755", script, info.Mode().Perm())
	}
}

func TestExtractKeepsWhatIsThere(t *testing.T) {
	mine := []byte("mine")
	for _, tc := range []struct {
		name    string
		prepare func(t *testing.T, dir string) (kept string)
	}{
		{"a changed file", func(t *testing.T, dir string) string {
			kept := filepath.Join(dir, "git-helper", "SKILL.md")
			check(t, os.MkdirAll(filepath.Dir(kept), 0o755))
			check(t, os.WriteFile(kept, mine, 0o644))
			return kept
		}},
		{"a link to a file outside", func(t *testing.T, dir string) string {
			kept := filepath.Join(t.TempDir(), "outside")
			check(t, os.WriteFile(kept, mine, 0o644))
			check(t, os.MkdirAll(filepath.Join(dir, "git-helper"), 0o755))
			if err := os.Symlink(kept, filepath.Join(dir, "git-helper", "SKILL.md")); err != nil {
				t.Skipf("skipped: no symbolic links here: %v", err)
			}
			return kept
		}},
		{"a directory in the place of a file", func(t *testing.T, dir string) string {
			kept := filepath.Join(dir, "git-helper", "SKILL.md", "kept")
			check(t, os.MkdirAll(filepath.Dir(kept), 0o755))
			check(t, os.WriteFile(kept, mine, 0o644))
			return kept
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			kept := tc.prepare(t, dir)
			if err := examples.Extract(dir); !errors.Is(err, fs.ErrExist) {
				t.Errorf("Extract(%q) = %v, want %v", dir, err, fs.ErrExist)
			}
			if got, err := os.ReadFile(kept); err != nil || string(got) != "mine" {
				t.Errorf("ReadFile(%q) = %q, %v, want %q", kept, got, err, "mine")
			}
		})
	}
}

func TestExtractNeverLeavesTheFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "git-helper")); err != nil {
		t.Skipf("skipped: no symbolic links here: %v", err)
	}
	if err := examples.Extract(dir); err == nil {
		t.Errorf("Extract(%q) = nil, want an error: git-helper leads out of it", dir)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("ReadDir(%q) = %v, %v, want nothing written there", outside, left, err)
	}
}

func TestScripts(t *testing.T) {
	sh := need(t, "sh")
	scripts, err := filepath.Glob(filepath.Join(extract(t), "*", "scripts", "*.sh"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("scripts = %v, %v, want some", scripts, err)
	}
	for _, script := range scripts {
		if out, err := exec.CommandContext(t.Context(), sh, "-n", script).CombinedOutput(); err != nil {
			t.Errorf("sh -n %q = %v:\n%s", script, err, out)
		}
		t.Run("shellcheck "+filepath.Base(script), func(t *testing.T) {
			shellcheck := need(t, "shellcheck")
			if out, err := exec.CommandContext(t.Context(), shellcheck, "--shell=sh", script).CombinedOutput(); err != nil {
				t.Errorf("shellcheck %q = %v:\n%s", script, err, out)
			}
		})
	}
}

// manifest is as much of a tools.json as these tests need. Package
// packs/tools checks the whole of it.
type manifest struct {
	Tools []struct {
		Name, Description string
		InputSchema       struct {
			Properties map[string]struct {
				Default any
				Pattern string
			}
			Required             []string
			AdditionalProperties any
		}
		Command struct {
			Program, Cwd string
			Args         []string
			Env          map[string]string
		}
		Policy map[string]any
	}
}

func gitHelper(t *testing.T) manifest {
	t.Helper()
	data, err := fs.ReadFile(examples.Packs, "packs/git-helper/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatalf("git-helper/tools.json: %v", err)
	}
	return m
}

var placeholder = regexp.MustCompile(`\{\{([a-z_]+)(?::([^}]*))?\}\}`)

// A value of the model's must not become an option of git's.
func TestGitHelperKeepsValuesFromBecomingOptions(t *testing.T) {
	for _, tool := range gitHelper(t).Tools {
		if tool.Policy["read_only"] != true || tool.Command.Cwd != "project" || len(tool.Command.Env) != 0 {
			t.Errorf("%s: policy %v, cwd %q, env %v, want read-only, project, none", tool.Name, tool.Policy, tool.Command.Cwd, tool.Command.Env)
		}
		if tool.InputSchema.AdditionalProperties != false {
			t.Errorf("%s: additionalProperties = %v, want false", tool.Name, tool.InputSchema.AdditionalProperties)
		}
		used := map[string]bool{}
		dashes := false
		for _, arg := range tool.Command.Args {
			dashes = dashes || arg == "--"
			for _, m := range placeholder.FindAllStringSubmatch(arg, -1) {
				param, ok := tool.InputSchema.Properties[m[1]]
				if !ok {
					t.Errorf("%s: argument %q names a parameter that the schema does not have", tool.Name, arg)
				}
				used[m[1]] = true
				alone := m[0] == arg && m[2] == ""
				if alone && !dashes && !strings.HasPrefix(param.Pattern, "^[^-") {
					t.Errorf("%s: %q stands alone before --, and its pattern %q lets a dash begin it", tool.Name, arg, param.Pattern)
				}
			}
		}
		for name := range tool.InputSchema.Properties {
			if !used[name] {
				t.Errorf("%s: parameter %q is used nowhere", tool.Name, name)
			}
		}
	}
}

// argv fills the placeholders of a tool as the format says: a flag for a true
// boolean, nothing for a missing value.
func argv(t *testing.T, m manifest, tool string, values map[string]string) (program string, args []string) {
	t.Helper()
	for _, tl := range m.Tools {
		if tl.Name != tool {
			continue
		}
		value := func(name string) (string, bool) {
			if v, ok := values[name]; ok {
				return v, true
			}
			switch d := tl.InputSchema.Properties[name].Default.(type) {
			case string:
				return d, true
			case float64:
				b, err := json.Marshal(d)
				check(t, err)
				return string(b), true
			}
			return "", false
		}
		for _, arg := range tl.Command.Args {
			matches := placeholder.FindAllStringSubmatch(arg, -1)
			filled, any := arg, len(matches) == 0
			for _, m := range matches {
				v, ok := value(m[1])
				if m[2] != "" {
					v = m[2] // a flag, present when the boolean is true
				}
				any = any || ok
				filled = strings.ReplaceAll(filled, m[0], v)
			}
			if any {
				args = append(args, filled)
			}
		}
		return tl.Command.Program, args
	}
	t.Fatalf("no tool %q", tool)
	return "", nil
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// repository is a small one, with one tag, and a file that is not committed.
func repository(t *testing.T, git string) string {
	t.Helper()
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir = dir
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + dir,
			"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
			"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
			"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q = %v:\n%s", args, err, out)
		}
	}
	commit := func(file, content, message string) {
		t.Helper()
		check(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644))
		run("add", "--", file)
		run("commit", "-q", "-m", message)
	}
	run("init", "-q", "-b", "main")
	commit("a.txt", "one\n", "first <commit>")
	run("tag", "v1.0")
	commit("a.txt", "one\ntwo\n", "feat: count to two")
	commit("b c.txt", "b\n", "fix(core)!: a name with a space")
	run("branch", "side")
	commit("a.txt", "one\ntwo\nthree\n", "docs: three")
	check(t, os.WriteFile(filepath.Join(dir, "new.txt"), []byte("new\n"), 0o644))
	return dir
}

func TestGitHelperRuns(t *testing.T) {
	git := need(t, "git")
	need(t, "sh")
	pack := filepath.Join(extract(t), "git-helper")
	project := repository(t, git)
	m := gitHelper(t)

	for _, tc := range []struct {
		tool   string
		values map[string]string
		want   []string // parts of the output
		not    string   // absent from it
		fails  string   // part of the error's text, when the tool must fail
	}{
		{tool: "status", want: []string{"## main", "?? new.txt"}},
		{tool: "status", values: map[string]string{"path": "a.txt"}, want: []string{"## main"}, not: "new.txt"},
		{tool: "log", want: []string{"2026-01-02 Ada: docs: three", "first <commit>"}},
		{tool: "log", values: map[string]string{"count": "1"}, want: []string{"docs: three"}, not: "count to two"},
		{tool: "log", values: map[string]string{"path": "b c.txt"}, want: []string{"a name with a space"}, not: "three"},
		{tool: "log", values: map[string]string{"rev": "v1.0..side", "author": "Ada", "since": "2025-01-01"}, want: []string{"count to two"}, not: "first"},
		{tool: "log", values: map[string]string{"author": "nobody"}, not: "Ada"},
		{tool: "log", values: map[string]string{"rev": "--output=pwned"}, fails: "--output=pwned"},
		{tool: "log", values: map[string]string{"path": "--output=pwned"}, not: "Ada"},
		{tool: "show_commit", want: []string{"Author:     Ada <ada@example.com>", "docs: three", "a.txt | 1 +"}, not: "@@"},
		{tool: "show_commit", values: map[string]string{"commit": "v1.0", "patch": "true"}, want: []string{"+one"}},
		{tool: "show_commit", values: map[string]string{"commit": "--output=pwned"}, fails: "--output=pwned"},
		{tool: "show_commit", values: map[string]string{"commit": "nothing"}, fails: "bad revision"},
		{tool: "diff_stat", values: map[string]string{"from": "v1.0", "to": "HEAD"}, want: []string{"a.txt", "b c.txt", "2 files changed"}, not: "@@"},
		{tool: "diff_stat", values: map[string]string{"from": "--output=pwned"}, fails: "--output=pwned"},
		{tool: "diff", values: map[string]string{"from": "v1.0", "path": "a.txt"}, want: []string{"+three"}, not: "b c.txt"},
		{tool: "diff"},
		{tool: "blame", values: map[string]string{"path": "a.txt"}, want: []string{"Ada", "one", "three"}},
		{tool: "blame", values: map[string]string{"path": "a.txt", "first_line": "2", "last_line": "2"}, want: []string{"two"}, not: "three"},
		{tool: "blame", values: map[string]string{"path": "a.txt", "rev": "v1.0"}, want: []string{"one"}, not: "two"},
		{tool: "branches", want: []string{"* main", "  side", "2026-01-02"}},
		{tool: "branches", values: map[string]string{"all": "true"}, want: []string{"* main"}},
		{tool: "changelog", want: []string{
			"## Changes\n\n3 commits, v1.0..HEAD\n", "### Breaking changes\n\n- a name with a space (",
			"### New\n\n- count to two (", "### Documentation\n\n- three (",
		}, not: "first"},
		{tool: "changelog", values: map[string]string{"to": "v1.0", "title": `1.0 \n $(id)`}, want: []string{
			"## 1.0 \\n $(id)\n\n1 commit, everything up to v1.0\n", "### Other changes\n\n- first &lt;commit> (",
		}},
		{tool: "changelog", values: map[string]string{"from": "HEAD"}, want: []string{"0 commits"}, not: "###"},
		{tool: "changelog", values: map[string]string{"from": "nothing"}, fails: `no commit is called "nothing" here`},
		{tool: "changelog", values: map[string]string{"from": "--output=pwned"}, fails: "no commit is called"},
	} {
		t.Run(tc.tool, func(t *testing.T) {
			workspace := t.TempDir()
			program, args := argv(t, m, tc.tool, tc.values)
			if strings.HasPrefix(program, "./") {
				program = filepath.Join(pack, program)
			}
			cmd := exec.CommandContext(t.Context(), program, args...)
			cmd.Dir = project
			// Nothing but what every run gets: no configuration of the user's.
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + workspace, "LANG=C.UTF-8", "TERM=dumb", "PACKS_WORKSPACE=" + workspace}
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()

			if tc.fails != "" {
				if err == nil || !strings.Contains(stderr.String(), tc.fails) {
					t.Errorf("%s %q = %v, stderr %q, want a failure that says %q", program, args, err, stderr.String(), tc.fails)
				}
			} else if err != nil {
				t.Fatalf("%s %q = %v:\n%s", program, args, err, stderr.String())
			}
			for _, want := range tc.want {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("%s %q printed\n%s\nwant %q in it", program, args, stdout.String(), want)
				}
			}
			if tc.not != "" && strings.Contains(stdout.String(), tc.not) {
				t.Errorf("%s %q printed\n%s\nwant no %q in it", program, args, stdout.String(), tc.not)
			}
			if _, err := os.Lstat(filepath.Join(project, "pwned")); err == nil {
				t.Errorf("%s %q wrote into the project", program, args)
			}
			artifact, err := os.ReadFile(filepath.Join(workspace, "changelog.md"))
			if wrote := tc.tool == "changelog" && tc.fails == ""; wrote != (err == nil) || wrote && string(artifact) != stdout.String() {
				t.Errorf("changelog.md = %q, %v, want what was printed if the tool is changelog:\n%s", artifact, err, stdout.String())
			}
		})
	}
}

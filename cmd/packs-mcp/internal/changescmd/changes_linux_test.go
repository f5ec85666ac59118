package changescmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/auditcmd"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
)

// run runs a command line of changes or audit, as the program does, and returns its
// status.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	env := &cli.Env{Environ: environ, Stdin: stdin, Stdout: stdout, Stderr: stderr}
	return env.Run(ctx, env.Root(append(Commands(env), auditcmd.Commands(env)...)...), args)
}

// A person lists, views, applies, undoes and discards what a run left, and each
// decision is in the log.
func TestChanges(t *testing.T) {
	home, project, layer := t.TempDir(), t.TempDir(), t.TempDir()
	environ := []string{"HOME=" + home, "PACKS_MCP_HOME=" + home}
	command := func(args ...string) (int, string) {
		t.Helper()
		var out bytes.Buffer
		code := run(t.Context(), args, environ, strings.NewReader(""), &out, &out)
		return code, out.String()
	}
	want := func(code int, parts []string, args ...string) string {
		t.Helper()
		got, out := command(args...)
		if got != code {
			t.Errorf("packs-mcp %v = %d, want %d:\n%s", args, got, code, out)
		}
		for _, part := range parts {
			if !strings.Contains(out, part) {
				t.Errorf("packs-mcp %v does not say %q:\n%s", args, part, out)
			}
		}
		return out
	}
	want(0, []string{"No changes"}, "changes")
	want(1, []string{"no such change set", "packs-mcp changes lists"}, "changes", "undo", "x")
	var state string
	if found, err := filepath.Glob(filepath.Join(home, "*", "changes", "sets")); err == nil && len(found) == 1 {
		state = filepath.Dir(found[0])
	} else if state = filepath.Join(home, "changes"); !isFolder(state) {
		t.Fatalf("the store is nowhere in %q: %v, %v", home, found, err)
	}
	store, err := changes.Open(t.Context(), changes.Options{Dir: state})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := store.Begin(t.Context(), changes.Run{ID: "run-1", Pack: "acme", Tool: "fmt\x1b[2J"}, nil, changes.Folder{Path: project})
	if err != nil {
		t.Fatal(err)
	}
	to, err := os.Open(layer)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	c, err := turn.Copy(t.Context(), 0, to, changes.CopyLimits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"plain": "x\n", "CLAUDE.md": "obey\x1b[2J\n", "AGENTS.md": "y\n"} {
		if err := os.WriteFile(filepath.Join(layer, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sets, err := turn.Finish(t.Context(), changes.Ending{}, changes.Layer{Dir: to, Copy: c})
	if err != nil || len(sets) != 1 {
		t.Fatal(sets, err)
	}
	if err := turn.Close(); err != nil {
		t.Fatal(err)
	}
	id := sets[0].ID
	out := want(0, []string{id, "2 changes wait for you", `applied   create  "plain"`, "agents obey it"}, "changes", "list")
	out += want(0, []string{"+obey\\x1b[2J", "--shown"}, "changes", "show", id, "CLAUDE.md")
	if strings.Contains(out, "\x1b") {
		t.Errorf("an escape sequence reaches the terminal: %q", out)
	}
	out = want(0, []string{`applied   create  "CLAUDE.md"`}, "changes", "apply", id, "CLAUDE.md")
	applied := regexp.MustCompile(`^\S+`).FindString(out)
	if _, err := os.Stat(filepath.Join(project, "CLAUDE.md")); err != nil {
		t.Error(err)
	}
	want(0, []string{"you took " + applied + " back"}, "changes", "undo", applied)
	want(0, []string{`discarded create  "AGENTS.md"`}, "changes", "discard", id, "AGENTS.md")
	want(0, []string{`"sets": [`, `"state": "discarded"`}, "changes", "--json")
	want(0, []string{"changes.apply", "changes.undo", "changes.discard"}, "audit", "show", "--json")
	if left, _ := os.ReadDir(project); len(left) != 1 {
		t.Errorf("in the project: %v, want plain", left)
	}
}

// Each error says what happened, and its hint says what helps in this case.
func TestChangesErrors(t *testing.T) {
	home := t.TempDir()
	project := filepath.Join(home, "project")
	plantFiles(t, home, map[string]string{"project/AGENTS.md": "mine\n", "project/plain": "mine\n"})
	environ := []string{"HOME=" + home, "PACKS_MCP_HOME=" + home}
	open := &app{&cli.Env{Environ: environ, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}}
	_, store, err := open.changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	turn, err := store.Begin(t.Context(), changes.Run{ID: "run-1", Pack: "acme", Tool: "fmt"}, nil, changes.Folder{Path: project})
	if err != nil {
		t.Fatal(err)
	}
	to, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	c, err := turn.Copy(t.Context(), 0, to, changes.CopyLimits{})
	if err != nil {
		t.Fatal(err)
	}
	plantFiles(t, to.Name(), map[string]string{"AGENTS.md": "its own\n", "CLAUDE.md": "its own\n", "plain": "its own\n", "made": "its own\n"})
	sets, err := turn.Finish(t.Context(), changes.Ending{}, changes.Layer{Dir: to, Copy: c})
	if err != nil || len(sets) != 1 {
		t.Fatal(sets, err)
	}
	if err := turn.Close(); err != nil {
		t.Fatal(err)
	}
	id := sets[0].ID
	command := func(args ...string) (int, string) {
		var out bytes.Buffer
		code := run(t.Context(), append([]string{"changes"}, args...), environ, strings.NewReader(""), &out, &out)
		return code, out.String()
	}
	fails := func(problem, hint string, args ...string) {
		t.Helper()
		code, out := command(args...)
		want := "packs-mcp: error: " + problem + "\n"
		if hint != "" {
			want += "packs-mcp: hint: " + hint + "\n"
		}
		if code != 1 || !strings.HasSuffix(out, want) {
			t.Errorf("packs-mcp changes %q = %d, want 1:\n%s\nwant at its end\n%s", args, code, out, want)
		}
	}
	lists := "packs-mcp changes lists the change sets and their IDs"
	became := "packs-mcp changes says what became of each of its changes"
	for _, name := range []string{"show", "apply", "discard", "undo"} {
		fails(`no such change set: "nothing"`, lists, name, "nothing")
	}
	for _, name := range []string{"apply", "discard"} {
		fails("nothing of the change set "+id+" is held", became, name, id, "plain")
	}
	fails("nothing of the change set "+id+` waits for you at "plain", "a\x1b"`, became, "show", id, "plain", "a\x1b")

	// Only the part that was shown is applied, as the command says.
	_, text := command("show", id, "CLAUDE.md")
	shown := regexp.MustCompile(`with the same paths behind it: packs-mcp changes apply \S+ --shown (\S+)`).FindStringSubmatch(text)
	if shown == nil {
		t.Fatalf("packs-mcp changes show says nothing of the paths:\n%s", text)
	}
	fails("the folder is not as it was shown any more: look at the changes again", "packs-mcp changes show "+id+" prints what to give for --shown now",
		"apply", id, "--shown", shown[1])
	code, out := command("apply", id, "CLAUDE.md", "--shown", shown[1])
	if code != 0 {
		t.Errorf("what was shown was not applied: %d\n%s", code, out)
	}
	applied := regexp.MustCompile(`^\S+`).FindString(out)
	if code, out := command("undo", applied); code != 0 {
		t.Errorf("what was applied was not taken back: %d\n%s", code, out)
	}
	fails("nothing of the change set "+applied+" is applied", became, "undo", applied)

	// The user changed a file meanwhile.
	plantFiles(t, project, map[string]string{"AGENTS.md": "mine, later\n", "made": "mine, later\n"})
	fails("1 change was not applied, and waits still",
		"the reason follows each of them; to replace what you changed yourself, look at it: packs-mcp changes show "+id, "apply", id)
	fails("1 change was not undone", "the reason follows each of them", "undo", id)

	// The folder was replaced, and then removed.
	if err := os.Rename(project, project+"-moved"); err != nil {
		t.Fatal(err)
	}
	back := fmt.Sprintf("put the folder back at %q, or drop what waits: packs-mcp changes discard %s", project, id)
	for _, name := range []string{"show", "apply"} {
		code, out := command(name, id)
		if code != 1 || !strings.HasSuffix(out, "packs-mcp: hint: "+back+"\n") {
			t.Errorf("packs-mcp changes %s without the folder = %d\n%s", name, code, out)
		}
	}
	plantFiles(t, project, nil)
	if err := os.Mkdir(project, 0o755); err != nil {
		t.Fatal(err)
	}
	fails(fmt.Sprintf("%q: it is not the folder any more that the changes are of", project), back, "apply", id)
	if code, out := command("discard", id); code != 0 {
		t.Errorf("packs-mcp changes discard without the folder = %d\n%s", code, out)
	}
}

// The user's own protected names, the folders with packs and this program's files are
// protected in the store that servers and the command share.
func TestChangeStoreProtects(t *testing.T) {
	home := t.TempDir()
	project := filepath.Join(home, "project")
	plantFiles(t, home, map[string]string{
		"config.yaml":         "packs: [project/tools]\nsandbox: {protect: [deploy/**], unprotect: [CODEOWNERS]}\nlimits: {held: 1MiB, held_age: 2h}\naudit: {path: project/log/a.jsonl}\n",
		"project/tools/x":     "",
		"project/.git/HEAD":   "ref: refs/heads/main\n",
		".gitconfig":          "[core]\n\thooksPath = hk\n",
		"project/log/a.jsonl": "",
	})
	a := &app{&cli.Env{Environ: []string{"HOME=" + home, "PACKS_MCP_HOME=" + home}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}}
	_, store, err := a.changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	turn, err := store.Begin(t.Context(), changes.Run{ID: "run-1"}, nil, changes.Folder{Path: project})
	if err != nil {
		t.Fatal(err)
	}
	defer turn.Close()
	to, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	c, err := turn.Copy(t.Context(), 0, to, changes.CopyLimits{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]changes.State{
		"deploy": changes.Held, "deploy/x": changes.Held, "CODEOWNERS": changes.Applied, "CLAUDE.md": changes.Held, "tools/y": changes.Held,
		"log/a.jsonl": changes.Held, "plain": changes.Applied, "sub": changes.Applied, "sub/.git": changes.Held,
		"hk": changes.Held, "hk/pre-commit": changes.Held,
	}
	plantFiles(t, to.Name(), map[string]string{
		"deploy/x": "1", "CODEOWNERS": "2", "CLAUDE.md": "3", "tools/y": "4", "log/a.jsonl": "5", "plain": "6", "sub/.git": "7", "hk/pre-commit": "8",
	})
	sets, err := turn.Finish(t.Context(), changes.Ending{}, changes.Layer{Dir: to, Copy: c})
	if err != nil || len(sets) != 1 {
		t.Fatal(sets, err)
	}
	got := map[string]changes.State{}
	for _, c := range sets[0].Changes {
		if c.Kind != changes.KindMeta {
			got[c.Path] = c.State
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states differ (-want +got):\n%s", diff)
	}
	if age := sets[0].Expires.Sub(sets[0].Made); age != 2*time.Hour {
		t.Errorf("what waits is kept for %v, want 2h", age)
	}
}

func plantFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// A set that is too long to be shown in full has no token: what was not shown must
// not be applied as shown.
func TestChangesShowCut(t *testing.T) {
	home, project, layer := t.TempDir(), t.TempDir(), t.TempDir()
	environ := []string{"HOME=" + home, "PACKS_MCP_HOME=" + home}
	a := &app{&cli.Env{Environ: environ, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}}
	_, store, err := a.changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	turn, err := store.Begin(t.Context(), changes.Run{ID: "run-1"}, nil, changes.Folder{Path: project})
	if err != nil {
		t.Fatal(err)
	}
	defer turn.Close()
	to, err := os.Open(layer)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	c, err := turn.Copy(t.Context(), 0, to, changes.CopyLimits{})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"z/.envrc": "evil\n"}
	for i := range 6 {
		files[fmt.Sprintf("d%d/CLAUDE.md", i)] = strings.Repeat("words\n", 40_000)
	}
	plantFiles(t, layer, files)
	sets, err := turn.Finish(t.Context(), changes.Ending{}, changes.Layer{Dir: to, Copy: c})
	if err != nil || len(sets) != 1 {
		t.Fatal(sets, err)
	}
	if err := turn.Close(); err != nil {
		t.Fatal(err)
	}
	show := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if code := run(t.Context(), append([]string{"changes", "show", sets[0].ID}, args...), environ, strings.NewReader(""), &out, &out); code != 0 {
			t.Fatalf("packs-mcp changes show = %d:\n%s", code, &out)
		}
		return out.String()
	}
	if out := show(); strings.Contains(out, "--shown") || !strings.Contains(out, "Not all of it is shown") {
		t.Errorf("a view that is cut ends with %q", out[max(0, len(out)-200):])
	}
	if out := show("z/.envrc"); !strings.Contains(out, "+evil") || !strings.Contains(out, "--shown") {
		t.Errorf("what was cut, alone: %s", out)
	}
}

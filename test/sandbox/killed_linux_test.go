package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// killsVar, in the environment, is how often TestKilledServer kills a server at
// each level; "make soak-changes" sets it.
const killsVar = "SANDBOX_KILLS"

// patience is how long a test waits for something that must happen.
const patience = 30 * time.Second

// The initial project, and two scripts: one changes it in every way that a run can,
// the other restores it.
const (
	forwardScript = `
set -e; umask 022
for i in 0 1 2 3 4; do echo after $i >new-$i; echo after $i >old-$i; rm gone-$i; done
mkdir -p made/deep; echo x >made/deep/file
rm -r tree
mv name renamed
mv dir/inner dir/outer
chmod 755 mode
rm link; ln -s old-1 link
rm type; mkdir type; echo x >type/in
tr b a <big >big.tmp; mv big.tmp big
`
	backScript = `
set -e; umask 022
for i in 0 1 2 3 4; do rm new-$i; echo before $i >old-$i; echo before $i >gone-$i; done
rm -r made
mkdir -p tree/b; echo 1 >tree/a; echo 2 >tree/b/c
mv renamed name
mv dir/outer dir/inner
chmod 644 mode
rm link; ln -s old-0 link
rm -r type; echo type >type
tr a b <big >big.tmp; mv big.tmp big
`
	// hostileScript makes changes that must never take effect: the user's next git
	// command, or an agent, would obey them.
	hostileScript = `
mkdir -p .git/x .git/hooks
for f in objects refs; do ln -s ../$f .git/x/$f; done
printf '[core]\n\tfsmonitor = "/bin/false"\n' >.git/x/config
echo x >.git/commondir
echo evil >.git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit
echo evil >CLAUDE.md
`
)

func beforeFiles() map[string]string {
	files := map[string]string{
		"big": strings.Repeat("b", 300_000), "dir/inner/f": "inner\n", "dir/stays": "s\n", "mode": "m\n", "name": "n\n", "type": "type\n",
		"tree/a": "1\n", "tree/b/c": "2\n", ".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n", ".git/objects/info/x": "", ".git/refs/heads/x": "",
	}
	for i := range 5 {
		for _, name := range []string{"old", "gone"} {
			files[fmt.Sprintf("%s-%d", name, i)] = fmt.Sprintf("before %d\n", i)
		}
	}
	return files
}

// plantBefore makes the project.
func plantBefore(t *testing.T, dir string) {
	t.Helper()
	write(t, dir, beforeFiles())
	if err := os.Symlink("old-0", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
}

// protectedNames returns names that must never exist in the project.
func protectedNames() []string {
	return []string{".git/commondir", ".git/x", ".git/hooks", "CLAUDE.md"}
}

// A server is killed at random moments of a run and of applying its changes, and so is
// "changes undo". Whatever the moment, once the next server has started, the project is
// completely as before or completely as after, as the list of change sets says; nothing of
// ours is left in it, nothing protected was ever live, and the next run works.
func TestKilledServer(t *testing.T) {
	need(t, "sh", "tr")
	kills := 20
	if text := os.Getenv(killsVar); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil || kills < 1 {
			t.Fatalf("%s=%q, want a number", killsVar, text)
		}
	}
	for _, l := range []struct{ name, hide, level, needs string }{
		{"full", "", "full", "userns"},
		{"partial", "userns", "partial", "landlock"},
		{"partial-without-landlock", "landlock", "partial", "userns"},
	} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			variant{hide: l.hide}.mustConfine(t)
			if l.hide == "" {
				if got := runner.New(runner.Options{}).Probe(t.Context()).Level.String(); got != l.level {
					skip(t, l.needs, "this machine has no level %s", l.level)
				}
			} else if got := levelWithout(t, l.hide); got != l.level {
				skip(t, l.needs, "without %s, the level is %s", l.hide, got)
			}
			newKiller(t, l.hide, l.level).kill(kills)
		})
	}
}

// A killer has a project, and kills the programs that change it.
type killer struct {
	t             *testing.T
	w             *world
	level, file   string
	tmp           string
	before, after map[string]string
	runTakes      time.Duration
	undoTakes     time.Duration
	seen          map[string]int
}

func newKiller(t *testing.T, hide, level string) *killer {
	w := newWorld(t, hide)
	file, err := theProgram()
	if err != nil {
		t.Fatal(err)
	}
	k := &killer{t: t, w: w, level: level, file: file, tmp: filepath.Join(w.root, "tmp"), seen: map[string]int{}}
	w.env = append(w.env, "TMPDIR="+k.tmp)
	t.Cleanup(func() { // copies of packs are read-only, and could not be removed
		_ = filepath.WalkDir(w.state, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	if err := os.Mkdir(k.tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, w.packs, map[string]string{
		"sly/SKILL.md": "---\nname: sly\ndescription: Works on a project.\n---\nCall `do`.\n",
		"sly/tools.json": `{"tools": [{"name": "do", "description": "Do it.", "inputSchema": {"type": "object", "properties": {"script": {"type": "string"}}, "required": ["script"]},
			"policy": {"timeout_secs": 20}, "command": {"program": "./do.sh", "args": ["{{script}}"], "cwd": "project"}}]}`,
		"sly/do.sh": "#!/bin/sh\neval \"$1\"\n",
	})
	plantBefore(t, w.project)
	// The scripts must have the same effect with this program as without it.
	plain := filepath.Join(w.root, "plain")
	plantBefore(t, plain)
	w.run(t, plain, "sh", "-c", forwardScript)
	k.after = k.look(plain)
	w.run(t, plain, "sh", "-c", backScript)
	k.before = k.look(plain)
	if diff := cmp.Diff(k.before, k.look(w.project)); diff != "" {
		t.Fatalf("the scripts do not give the first back (-want +got):\n%s", diff)
	}
	return k
}

// look describes a folder, except for files from the run after a kill.
func (k *killer) look(dir string) map[string]string {
	k.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil || rel == "." || rel == "seen" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			text += " to " + target
		case info.Mode().IsRegular():
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d %.40q", len(data), data)
			if len(data) > 40 && strings.Trim(string(data), string(data[:1])) != "" {
				text += " mixed"
			}
		}
		all[rel] = text
		return nil
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return all
}

// A running is a server with a client.
type running struct {
	cmd     *exec.Cmd
	session *mcp.ClientSession
	stderr  *bytes.Buffer
}

func (k *killer) start() *running {
	k.t.Helper()
	s := &running{stderr: new(bytes.Buffer)}
	s.cmd = without(k.t, k.w.hide, k.file, "serve", "--packs", k.w.packs, "--project", k.w.project)
	s.cmd.Env = append(k.w.environ(), s.cmd.Env...)
	s.cmd.Dir, s.cmd.Stderr = k.w.project, s.stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "killer", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "once"}}, nil
		},
	})
	var err error
	s.session, err = client.Connect(k.t.Context(), &mcp.CommandTransport{Command: s.cmd}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err == nil {
		_, err = s.session.CallTool(k.t.Context(), &mcp.CallToolParams{Name: "capability_packs_enable_tools", Arguments: map[string]any{"pack_id": "sly", "tools": []string{"do"}}})
	}
	if err != nil {
		k.t.Fatalf("the server does not start: %v; it logged:\n%s", err, s.stderr)
	}
	return s
}

// do runs a script in the project. err says that the server ended.
func (s *running) do(ctx context.Context, script string) (*mcp.CallToolResult, error) {
	return s.session.CallTool(ctx, &mcp.CallToolParams{Name: "capability_packs_call_tool", Arguments: map[string]any{
		"pack_id": "sly", "tool": "do", "arguments": map[string]any{"script": script},
	}})
}

// must runs a script to its end.
func (k *killer) must(s *running, script string) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), patience)
	defer cancel()
	res, err := s.do(ctx, script)
	if err != nil {
		k.t.Fatalf("a run after a kill: %v; the server logged:\n%s", err, s.stderr)
	}
	out, _ := res.StructuredContent.(map[string]any)
	if res.IsError || out["sandbox"] != k.level || out["exit_code"] != float64(0) {
		k.t.Fatalf("a run after a kill: %v, want it to end with 0 at level %s; the server logged:\n%s", out, k.level, s.stderr)
	}
}

func (k *killer) sets() []*changes.Set {
	k.t.Helper()
	var list struct{ Sets []*changes.Set }
	if err := json.Unmarshal([]byte(k.w.run(k.t, k.w.root, k.file, "changes", "list", "--json")), &list); err != nil {
		k.t.Fatal(err)
	}
	return list.Sets
}

// open returns the files that represent unsettled change sets.
func (k *killer) open() []string {
	names, err := filepath.Glob(filepath.Join(k.w.state, "state", "changes", "open", "*"))
	if err != nil {
		k.t.Error(err)
	}
	return names
}

// committed reports whether a set is committed but not settled.
func (k *killer) committed() bool {
	for _, name := range k.open() {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(name)), "sets", filepath.Base(name), "set.json"))
		if err == nil && !bytes.Contains(data, []byte(`"phase":"staging"`)) {
			return true
		}
	}
	return false
}

func (k *killer) kill(kills int) {
	t := k.t
	begin := time.Now()
	// The lengths of a run and an undo are the ranges of the moments.
	s := k.start()
	k.must(s, forwardScript+hostileScript)
	if diff := cmp.Diff(k.after, k.look(k.w.project)); diff != "" {
		t.Fatalf("after a run (-want +got):\n%s", diff)
	}
	if len(k.sets()) != 1 {
		t.Fatalf("%d change sets after a run, want one", len(k.sets()))
	}
	mark := time.Now()
	k.must(s, backScript+hostileScript)
	k.runTakes = time.Since(mark)
	k.must(s, forwardScript+hostileScript)
	mark = time.Now()
	k.undo(k.sets()[0].ID, nil)
	k.undoTakes = time.Since(mark)
	if diff := cmp.Diff(k.before, k.look(k.w.project)); diff != "" {
		t.Fatalf("after undo (-want +got):\n%s", diff)
	}

	stop, watching := make(chan struct{}), sync.WaitGroup{}
	watching.Go(func() {
		for {
			for _, name := range protectedNames() {
				if _, err := os.Lstat(filepath.Join(k.w.project, name)); err == nil {
					t.Errorf("%s is live", name)
					return
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	isAfter := false
	for round := range kills {
		s, isAfter = k.round(s, round, isAfter)
		if t.Failed() {
			break
		}
	}
	close(stop)
	watching.Wait()
	if err := s.session.Close(); err != nil {
		t.Errorf("the server ends with %v; it logged:\n%s", err, s.stderr)
	}
	k.leavesNothing()
	t.Logf("%d kills in %v (a run takes %v, an undo %v): %v", kills, time.Since(begin).Round(time.Millisecond),
		k.runTakes.Round(time.Millisecond), k.undoTakes.Round(time.Millisecond), k.seen)
}

// undo starts "changes undo", and waits for it unless moment is there, after
// which it kills it.
func (k *killer) undo(id string, moment func()) {
	k.t.Helper()
	cmd := exec.Command(k.file, "changes", "undo", id)
	cmd.Dir, cmd.Env = k.w.root, k.w.environ()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	if moment != nil {
		moment()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return
	}
	if err := cmd.Wait(); err != nil {
		k.t.Fatalf("changes undo: %v\n%s", err, out.String())
	}
}

// round kills once, and returns the next server and the project's state.
func (k *killer) round(s *running, round int, isAfter bool) (*running, bool) {
	t := k.t
	sets := k.sets()
	what := []string{"run", "carry out", "stage", "undo", "carry out"}[round%5]
	if what == "undo" && !isAfter {
		what = "carry out"
	}
	k.seen[what]++
	during := func(takes time.Duration) { time.Sleep(time.Duration(rand.Int64N(int64(takes)))) }
	until := func(there func() bool) {
		for limit := time.Now().Add(patience); !there() && time.Now().Before(limit); {
			time.Sleep(50 * time.Microsecond)
		}
	}
	if what == "undo" {
		for _, set := range sets {
			if set.Undoes == "" && slices.ContainsFunc(set.Changes, func(c changes.Change) bool { return c.Path == "new-0" }) {
				k.undo(set.ID, func() {
					if round%2 == 0 {
						during(k.undoTakes)
						return
					}
					until(k.committed)
					during(10 * time.Millisecond)
				})
				break
			}
		}
	} else {
		script := forwardScript
		if isAfter {
			script = backScript
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = s.do(t.Context(), script+hostileScript)
		}()
		switch what {
		case "run":
			during(k.runTakes)
		case "stage": // content is being made durable
			until(func() bool { return len(k.open()) > 0 })
			during(max(k.runTakes/4, 20*time.Millisecond))
		case "carry out": // names are being given
			until(k.committed)
			during(10 * time.Millisecond)
		}
		_ = s.cmd.Process.Kill()
		<-ended
	}
	_ = s.session.Close() // the killed one, or the one beside the undo
	if len(k.open()) > 0 {
		k.seen["unfinished when killed"]++
	}

	s = k.start()
	for until := time.Now().Add(patience); len(k.open()) > 0; {
		if time.Now().After(until) {
			t.Fatalf("round %d, %s: %q is not finished", round, what, k.open())
		}
		time.Sleep(time.Millisecond)
	}
	got := k.look(k.w.project)
	was, now := k.before, k.after
	if isAfter {
		was, now = now, was
	}
	changed := maps.Equal(got, now)
	if !changed {
		if diff := cmp.Diff(was, got); diff != "" {
			t.Errorf("round %d, %s: the project is neither wholly before nor wholly after (-before +got):\n%s\n(-after +got):\n%s", round, what, diff, cmp.Diff(now, got))
			return s, isAfter
		}
	}
	if changed {
		k.seen["carried out"]++
		isAfter = !isAfter
	}
	k.check(round, what, sets, changed)
	word := fmt.Sprintf("round %d\n", round)
	k.must(s, "printf '"+strings.TrimSuffix(word, "\n")+"\\n' >seen")
	if text, err := os.ReadFile(filepath.Join(k.w.project, "seen")); string(text) != word {
		t.Errorf("round %d, %s: after the next run, seen = %q, %v", round, what, text, err)
	}
	return s, isAfter
}

// check compares the change sets with what became of the project.
func (k *killer) check(round int, what string, old []*changes.Set, changed bool) {
	k.t.Helper()
	list := k.sets()
	made := list[:len(list)-len(old)]
	if len(made) > 1 || (len(made) == 1) != changed {
		k.t.Errorf("round %d, %s: %d new change sets, and the project was changed: %v", round, what, len(made), changed)
	}
	for _, set := range made {
		for _, c := range set.Changes {
			guarded := c.Path == "CLAUDE.md" || strings.HasPrefix(c.Path, ".git/")
			if want := changes.Applied; !guarded && c.State != want || guarded && c.State == want {
				k.t.Errorf("round %d, %s: %s %q is %s (%s)", round, what, c.Kind, c.Path, c.State, c.Reason)
			}
		}
		if what != "undo" {
			if text := k.w.run(k.t, k.w.root, k.file, "changes", "show", set.ID, "CLAUDE.md"); !strings.Contains(text, "+evil") {
				k.t.Errorf("round %d, %s: what is held shows as %q", round, what, text)
			}
		}
	}
}

// leavesNothing looks for what should be gone when the last server has ended.
func (k *killer) leavesNothing() {
	k.t.Helper()
	for _, dir := range []string{k.tmp, filepath.Join(k.w.state, "layers")} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			k.t.Errorf("%v is left in %s (%v)", entries, dir, err)
		}
	}
	if text := k.w.run(k.t, k.w.root, k.file, "audit", "verify"); !strings.HasPrefix(text, "ok: ") {
		k.t.Errorf("audit verify printed %s", text)
	}
}

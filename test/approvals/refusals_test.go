//go:build unix

package approvals_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// With an invalid configuration nothing starts, and the error names the line.
func TestBadRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	for name, tt := range map[string]struct{ config, where, words string }{
		"an unknown key":             {"rules:\n  - allow: {kind: open}\n  - deny: {pakc: triage}\n", ":3:", "unknown key; did you mean pack?"},
		"an unknown effect":          {"rules:\n  - permit: {kind: open}\n", ":2:", "unknown key"},
		"a match that fails":         {"rules:\n  - deny: {argv: [git, push]}\n    match:\n      - [git, push]\n      - [git, push, -f]\n", ":5:", "does not match this call"},
		"a not_match that fails":     {"rules:\n  - allow: {argv: [git, \"**\"]}\n    not_match: [[git, push]]\n", ":3:", "matches this call"},
		"two effects":                {"rules:\n  - allow: {kind: open}\n    deny: {kind: run}\n", ":3:", "one too many"},
		"an allow of everything":     {"rules:\n  - allow: {}\n", ":2:", ""},
		"the old name of a command":  {"rules:\n  - allow: {kind: run, tool: exec_best_effort, argv: [python3, '**']}\n", ":2:30:", "write allow: {kind: exec, argv: [python3, \"**\"]}"},
		"a pattern of that name":     {"rules:\n  - deny: {tool: 'Exec-*'}\n", ":2:18:", "write deny: {kind: exec} for the commands, or tool: \"*/Exec-*\" for the tools"},
		"a grant for that name":      {"sandbox:\n  grants:\n    - {pack: '*', tool: exec_best_effort, env: [GH]}\n", ":3:25:", "write kind: exec instead of tool"},
		"a channel":                  {"approval: {channels: [carrier-pigeon]}\n", ":1:", "carrier-pigeon"},
		"a policy":                   {"approval: {policy: never}\n", ":1:", "every-call"},
		"a wait longer than pending": {"approval: {wait: 10m, pending: 1m}\n", ":1:", ""},
		"no YAML":                    {"rules: [\n", ":", ""},
	} {
		if err := os.WriteFile(filepath.Join(w.home, "config.yaml"), []byte(tt.config), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"serve", "--packs", w.packs}, {"approvals", "list"}} {
			stdout, stderr, status := w.command(args...)
			if status != 2 || stdout != "" || !strings.Contains(stderr, filepath.Join(w.home, "config.yaml")+tt.where) || !strings.Contains(stderr, tt.words) {
				t.Errorf("%s: packs-mcp %s = %d, %s%s, want 2, the place config.yaml%s and %q", name, args[0], status, stdout, stderr, tt.where, tt.words)
			}
		}
	}
	// It is not read from a place where others could have written it.
	if os.WriteFile(filepath.Join(w.home, "config.yaml"), []byte("rules:\n  - allow: {kind: open}\n"), 0o600) != nil || os.Chmod(filepath.Join(w.home, "config.yaml"), 0o666) != nil {
		t.Fatal("the configuration cannot be written")
	}
	if stdout, stderr, status := w.command("serve", "--packs", w.packs); status == 0 || !strings.Contains(stderr, "config.yaml") {
		t.Errorf("with a configuration that anybody can write, serve = %d, %s%s", status, stdout, stderr)
	}
}

// AP-10: a damaged file of grants. Every call is denied with the reason, the file stays as
// it is, and a person can start over.
func TestRefusedGrants(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, w *world, file string) error{
		"edited": func(_ *testing.T, w *world, file string) error {
			return os.WriteFile(file, []byte(strings.Replace(w.read("home/state/grants.json"), `"kind":"use"`, `"kind":"run"`, 1)), 0o600)
		},
		"a byte more": func(_ *testing.T, w *world, file string) error {
			return os.WriteFile(file, []byte(w.read("home/state/grants.json")+"\n"), 0o600)
		},
		"truncated": func(_ *testing.T, _ *world, file string) error { return os.Truncate(file, 40) },
		"empty":     func(_ *testing.T, _ *world, file string) error { return os.Truncate(file, 0) },
		"a symlink": func(_ *testing.T, _ *world, file string) error {
			if err := os.Rename(file, file+".real"); err != nil {
				return err
			}
			return os.Symlink(file+".real", file)
		},
		"a folder":       func(_ *testing.T, _ *world, file string) error { return first(os.Remove(file), os.Mkdir(file, 0o700)) },
		"world-writable": func(_ *testing.T, _ *world, file string) error { return os.Chmod(file, 0o602) },
		"group-writable": func(_ *testing.T, _ *world, file string) error { return os.Chmod(file, 0o660) },
		"without its key": func(_ *testing.T, _ *world, file string) error {
			return os.Remove(strings.TrimSuffix(file, "json") + "key")
		},
		"with another key": func(_ *testing.T, _ *world, file string) error {
			return os.WriteFile(strings.TrimSuffix(file, "json")+"key", []byte(strings.Repeat("ab", 32)+"\n"), 0o600)
		},
		"with a public key": func(_ *testing.T, _ *world, file string) error {
			return os.Chmod(strings.TrimSuffix(file, "json")+"key", 0o644)
		},
		"in a public folder": func(_ *testing.T, _ *world, file string) error { return os.Chmod(filepath.Dir(file), 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, triage)
			w.complains = true
			c := w.connect(choose("always"))
			docs := object{"pack_id": "triage"}
			c.tool(openDocs, docs).want("")
			c.tool(openDocs, docs).want("")
			c.questions()
			file := filepath.Join(w.home, "state", "grants.json")
			if err := spoil(t, w, file); err != nil {
				t.Fatal(err)
			}
			before := look(t, file)
			next := w.connect(choose("always"))
			for _, c := range []*client{c, next} { // the running one, and one that starts
				c.tool(openDocs, docs).want("denied", "cannot be trusted", "approvals grants")
				c.tool(readFile, object{"pack_id": "triage", "path": "SKILL.md"}).want("denied", "cannot be trusted")
				if got := c.questions(); len(got) > 0 {
					t.Errorf("the client was asked %q, want a denial at once", got)
				}
			}
			w.fails(1, "no grant counts, and every call is denied", "approvals", "grants")
			if diff := cmp.Diff(before, look(t, file)); diff != "" {
				t.Errorf("the file was touched (-before +after):\n%s", diff)
			}
			if name == "in a public folder" {
				w.fails(1, "", "approvals", "revoke", "--all")
				if err := os.Chmod(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				c.tool(openDocs, docs).want("", "# Triage")
				return
			}
			w.ok("approvals", "revoke", "--all")
			c.tool(openDocs, docs).want("", "# Triage")
			c.tool(openDocs, docs).want("", "# Triage")
			if got := len(c.questions()); got != 1 {
				t.Errorf("%d questions after starting over, want one", got)
			}
		})
	}
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// look returns what can be seen of a path.
func look(t *testing.T, path string) []string {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(path) // a folder has none
	return []string{info.Mode().String(), info.ModTime().String(), string(data)}
}

// If an "always" answer cannot be stored, it applies to its call only, and the log says so.
func TestStateIsReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	w.complains = true
	c := w.connect(choose("always"))
	state := filepath.Join(w.home, "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(state, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(state, 0o700) })
	if err := os.WriteFile(filepath.Join(state, "x"), nil, 0o600); err == nil {
		t.Skip("root: this user may write into a folder that is read-only")
	}
	docs := object{"pack_id": "triage"}
	for range 2 {
		c.tool(openDocs, docs).want("", "# Triage")
	}
	if got := len(c.questions()); got != 2 {
		t.Errorf("%d questions, want one for each call", got)
	}
	if got := w.decisions(); !slices.Equal(got, []string{"open once elicitation", "open once elicitation"}) {
		t.Errorf("the log has %q, want once", got)
	}
}

// Something else is in place of the folder of grants: nobody can tell what was allowed, so
// nothing is.
func TestFileInPlaceOfTheStateFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	w.complains = true
	if err := os.WriteFile(filepath.Join(w.home, "state"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := w.connect(choose("always"))
	c.tool(openDocs, object{"pack_id": "triage"}).want("denied", "cannot be trusted")
	if got := c.questions(); len(got) > 0 {
		t.Errorf("the client was asked %q, want a denial at once", got)
	}
	w.fails(1, "grants.json", "approvals", "grants")
}

// Without a folder that only the user may access, there is no page and no terminal. The
// server works, the client's own questions work, and the log says what is wrong.
func TestRunFolder(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(dir string) error
		heals bool
	}{
		"a symlink": {func(dir string) error { return first(os.Mkdir(dir+".real", 0o700), os.Symlink(dir+".real", dir)) }, false},
		"a file":    {func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, false},
		"for all":   {func(dir string) error { return first(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, triage, briefly)
			w.complains = true
			dir := filepath.Join(w.home, "run")
			if err := tt.spoil(dir); err != nil {
				t.Fatal(err)
			}
			c := w.connect(choose("once"))
			c.tool(openDocs, object{"pack_id": "triage"}).want("", "# Triage")
			c.close()
			c = w.connect(nil)
			o := c.tool(openDocs, object{"pack_id": "triage"}).want("approval_pending")
			if !tt.heals {
				if log := c.stderr.String(); !strings.Contains(log, "neither on a page nor in a terminal") || !strings.Contains(log, dir) {
					t.Errorf("the server logged\n%s, want that nobody can be asked, and why", log)
				}
				_, stderr, status := w.command("approvals", "approve", o.approvalCode())
				if status != 1 || !strings.Contains(stderr, dir) {
					t.Errorf("approvals approve = %d, %s, want that the folder is refused", status, stderr)
				}
				return
			}
			w.ok("approvals", "approve", o.approvalCode())
			c.tool(openDocs, object{"pack_id": "triage"}).want("", "# Triage")
			if info, err := os.Lstat(dir); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the folder is %v, %v, want it closed to others", info.Mode(), err)
			}
		})
	}
}

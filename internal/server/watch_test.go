package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/packs/copies"
	"github.com/packs-mcp/packs-mcp/internal/packs/watch"
	"github.com/packs-mcp/packs-mcp/internal/server/lists"
)

// A follower is a world whose folder is watched.
type follower struct {
	*world
	kind     string                        // of watcher
	followed chan struct{}                 // has a value if something changed since the last check
	told     atomic.Pointer[packs.Catalog] // the last Catalog that everybody was told about, once no notification is on its way
	aside    string                        // a folder in which files are written before they are moved into place
}

// watchers are the kinds of watchers that tests are run with.
var watchers = []string{"events", "polling"}

// newFollower watches a world's folder with a watcher of this kind.
func newFollower(t *testing.T, kind, tree string, options ...option) *follower {
	t.Helper()
	w := newWorld(t, tree, options...)
	f := &follower{world: w, kind: kind, followed: make(chan struct{}, 1), aside: t.TempDir()}
	watcher := watch.Start(w.lib, watch.Options{
		Poll: kind == "polling", Every: 20 * time.Millisecond, Recheck: time.Hour, // so that changes are only noticed by events
		Changed: func(ctx context.Context) {
			now := w.lib.Catalog(ctx)
			w.srv.Refresh(ctx)
			f.told.Store(now)
			select {
			case f.followed <- struct{}{}:
			default:
			}
		},
	})
	t.Cleanup(watcher.Close)
	return f
}

// eachWatcher runs a test with the system's events, and again without.
func eachWatcher(t *testing.T, tree string, test func(*testing.T, *follower), options ...option) {
	for _, kind := range watchers {
		t.Run(kind, func(t *testing.T) { test(t, newFollower(t, kind, tree, options...)) })
	}
}

// replace is swap, but fails the test on an error.
func (f *follower) replace(path, data string, mode os.FileMode) {
	f.t.Helper()
	if err := f.swap(path, data, mode); err != nil {
		f.t.Fatal(err)
	}
}

// hears waits for exactly these notifications: any others would come with the next.
func (f *follower) hears(want ...string) {
	f.t.Helper()
	for _, method := range want {
		if m := f.await(); m["method"] != method {
			f.t.Errorf("%v came, want %s", m, method)
		}
	}
	if got := f.heard(); len(got) != 0 {
		f.t.Errorf("the client also heard %q", got)
	}
}

// invalid waits until no pack is valid.
func (f *follower) invalid(ctx context.Context) error {
	late := time.After(20 * time.Second)
	for len(f.lib.Catalog(ctx).Attached()) > 0 {
		select {
		case <-f.followed:
		case <-late:
			return errors.New("nobody saw that the pack is not valid any more")
		}
	}
	return nil
}

// swap replaces a file as a whole, as editors do.
func (f *follower) swap(path, data string, mode os.FileMode) error {
	aside := filepath.Join(f.aside, "file")
	if err := os.WriteFile(aside, []byte(data), 0o644); err != nil {
		return err
	}
	if err := os.Chmod(aside, mode); err != nil {
		return err
	}
	to := filepath.Join(f.root, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(aside, to)
}

const (
	triageDocument = "---\nname: triage\ndescription: Triage incidents.\ntags: [ops]\n---\n# Triage\n\nRead docs/steps.md.\n"
	triageTools    = `{"tools": [{"name": "greet", "description": "Say hello.",
  "inputSchema": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"], "additionalProperties": false},
  "command": {"program": "./scripts/greet.sh", "args": ["{{who}}"]}}]}
`
)

// An attached pack that becomes invalid loses its tools at once, and a list says why.
// Once it is repaired, it has them again.
func TestFollowInvalid(t *testing.T) {
	eachWatcher(t, triage, func(t *testing.T, f *follower) {
		f.answer = decide("chat")
		f.initialize()
		f.enable("triage")
		f.listed()
		f.heard()
		problems := func() []string {
			t.Helper()
			rooms := f.srv.ChatViews(t.Context())
			if len(rooms) != 1 || len(rooms[0].Packs) != 1 {
				t.Fatalf("Rooms() = %+v, want one pack", rooms)
			}
			return rooms[0].Packs[0].Problems
		}
		has := func(want bool) {
			t.Helper()
			if got := slices.Contains(f.listed(), "triage__greet"); got != want {
				t.Errorf("the tool is listed: %v, want %v", got, want)
			}
		}
		page := f.srv.Changes()
		f.replace("triage/SKILL.md", "---\nname: triage\n---\n", 0o644)
		f.hears(everyList...)
		has(false)
		e := f.fails("not_attached", "triage__greet", map[string]any{"who": "Ada"})
		if len(objects(e["problems"])) == 0 {
			t.Errorf("the call fails with %v, want what is wrong with the pack", e)
		}
		select {
		case <-page:
		case <-time.After(20 * time.Second):
			t.Error("the page does not hear that a pack is not valid any more")
		}
		if got := problems(); len(got) == 0 || !strings.Contains(got[0], "SKILL.md") {
			t.Errorf("the page has the problems %q, want that of the document", got)
		}
		for _, query := range []string{"", "triage"} {
			listed := f.ok("capability_packs_list", map[string]any{"query": query})
			wrong := objects(listed["not_valid"])
			if len(ids(listed)) != 0 || len(wrong) != 1 || wrong[0]["pack_id"] != "triage" || !slices.ContainsFunc(texts(wrong[0]["problems"]), func(text string) bool { return strings.Contains(text, "SKILL.md") }) {
				t.Errorf("list %q = %v, want no pack, and what is wrong with the one", query, listed)
			}
		}

		f.replace("triage/SKILL.md", triageDocument, 0o644)
		f.hears(everyList...)
		has(true)
		if got := problems(); len(got) != 0 {
			t.Errorf("the page has the problems %q of a pack that was mended", got)
		}
		if listed := f.ok("capability_packs_list", nil); len(ids(listed)) != 1 || listed["not_valid"] != nil {
			t.Errorf("list = %v, want the pack that was mended", listed)
		}

		page = f.srv.Changes()

		f.replace("triage/tools.json", `{"tools": [{"name": 5}]}`, 0o644)
		f.hears(lists.ToolsChanged)
		has(false)
		f.fails("invalid_tools", "triage__greet", map[string]any{"who": "Ada"})
		select {
		case <-page:
		case <-time.After(20 * time.Second):
			t.Error("the page does not hear that a file with tools is not valid any more")
		}
		if got := problems(); len(got) == 0 || !strings.Contains(got[0], "tools.json") {
			t.Errorf("the page has the problems %q, want that of the file with tools", got)
		}
		listed := objects(f.ok("capability_packs_list", nil)["packs"])
		if len(listed) != 1 || len(texts(listed[0]["problems"])) == 0 || listed[0]["has_tools_json"] != false {
			t.Errorf("list = %v, want the pack, without tools and with what is wrong", listed)
		}
		f.replace("triage/tools.json", triageTools, 0o644)
		f.hears(lists.ToolsChanged)
		has(true)
		// This is in no list, so nobody is told.
		f.replace("triage/tools.json", triageTools+"\n", 0o644)
		f.replace("triage/SKILL.md", triageDocument+"\nOne more line.\n", 0o644)
		f.replace("triage/more.md", "More.\n", 0o644)
		f.replace("last/SKILL.md", "---\nname: last\ndescription: Comes last.\n---\n", 0o644)
		f.hears(everyList...)
	})
}

// No answer holds after the bytes that it was given for have changed: neither one for
// the chat nor one for always. A pack that was invalid for a while, and is as before
// again, needs no new answer.
func TestFollowVoidsGrants(t *testing.T) {
	needShell(t)
	for _, answer := range []string{"chat", "always"} {
		kept := func(s *setup) { s.gate.Grants = new(kept) }
		t.Run(answer, func(t *testing.T) {
			eachWatcher(t, triage, func(t *testing.T, f *follower) {
				f.answer = decide(answer)
				f.initialize()
				f.enable("triage")
				greet := func(questions int) {
					t.Helper()
					before := len(f.asked)
					f.ok("triage__greet", map[string]any{"who": "Ada"})
					if got := len(f.asked) - before; got != questions {
						t.Errorf("%d questions were asked, want %d", got, questions)
					}
				}
				greet(1)
				greet(0)
				f.replace("triage/SKILL.md", triageDocument+"\nOne more line.\n", 0o644)
				greet(1)
				greet(0)
				// That does not depend on a new Catalog: this file is not one from
				// which a Catalog is made.
				f.replace("triage/scripts/greet.sh", "#!/bin/sh\necho other\n", 0o755)
				greet(1)
				greet(0)
				f.listed()
				f.heard()
				f.replace("triage/SKILL.md", "---\nname: triage\n---\n", 0o644)
				f.hears(everyList...)
				f.fails("not_attached", "triage__greet", map[string]any{"who": "Ada"})
				f.replace("triage/SKILL.md", triageDocument+"\nOne more line.\n", 0o644)
				f.hears(everyList...)
				greet(0)
			}, kept)
		})
	}
}

// A running program continues with what was approved, whatever happens to its pack.
func TestFollowInFlight(t *testing.T) {
	needShell(t)
	const tree = `
-- hold/SKILL.md --
---
name: hold
description: Runs until it is let go.
---
-- hold/word.txt --
approved
-- hold/hold.sh --
#!/bin/sh
echo here > pid.new && mv pid.new pid
while ! [ -e go ]; do sleep 0.02; done
cat "${0%/*}/word.txt"
`
	kept := func(s *setup) { s.gate.Copies = copies.Open(filepath.Join(t.TempDir(), "copies"), copies.Options{}) }
	eachWatcher(t, tree, func(t *testing.T, f *follower) {
		f.answer = decide("once")
		f.initialize()
		work := f.srv.chats.All()[0].Workspaces.First().Dir
		ctx, let := t.Context(), make(chan error, 1)
		go func() {
			for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
				if _, err := os.Stat(filepath.Join(work, "pid")); err == nil {
					break
				}
			}
			err := f.swap("hold/word.txt", "changed\n", 0o644)
			if err == nil {
				err = f.swap("hold/SKILL.md", "---\nname: hold\n---\n", 0o644)
			}
			if err == nil {
				err = f.invalid(ctx)
			}
			let <- err
			_ = os.WriteFile(filepath.Join(work, "go"), nil, 0o644)
		}()
		out := f.ok("capability_packs_exec_best_effort", map[string]any{"pack_id": "hold", "command": "./hold.sh"})
		if err := <-let; err != nil {
			t.Fatal(err)
		}
		if text, _ := out["stdout"].(string); text != "approved\n" {
			t.Errorf("the program had %q, want what was approved: %v", text, out)
		}
		f.fails("not_attached", "capability_packs_exec_best_effort", map[string]any{"pack_id": "hold", "command": "./hold.sh"})
		ends := slices.DeleteFunc(f.entries(), func(e audit.Entry) bool { return e.Event != audit.EventRunEnd })
		if len(ends) != 1 {
			t.Errorf("the log has %d ends of runs, want that of the one that was approved", len(ends))
		}
	}, kept)
}

// If a command attaches or detaches a pack while the server runs, a client is told
// without asking, and is told nothing else.
func TestFollowAttached(t *testing.T) {
	kept := func(s *setup) { s.store = attach.Open(filepath.Join(t.TempDir(), "attached.json")) }
	eachWatcher(t, triage+shelf, func(t *testing.T, f *follower) {
		f.initialize()
		f.listed()
		change(t, f.store, func(set *attach.Set) { set.Detach("triage", time.Now()) })
		f.hears(everyList...)
	}, kept)
}

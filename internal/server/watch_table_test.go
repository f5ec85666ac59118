package server

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/lists"
)

// A seen is what one client has of the server's lists. It requests a list again when
// it is told that the list changed.
type seen map[string]string // :: notification → the whole list, as JSON

// listed maps each notification to its list.
var listed = map[string]struct{ method, key string }{
	lists.ToolsChanged: {"tools/list", "tools"}, lists.PromptsChanged: {"prompts/list", "prompts"}, lists.ResourcesChanged: {"resources/list", "resources"},
}

// list requests all pages of the list that a notification is about.
func (w *world) list(note string) string {
	w.t.Helper()
	var all []any
	params := map[string]any{}
	for {
		page := result(w.t, w.request(listed[note].method, params))
		items, _ := page[listed[note].key].([]any)
		all = append(all, items...)
		next, more := page["nextCursor"].(string)
		if !more {
			break
		}
		params = map[string]any{"cursor": next}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(raw)
}

func (w *world) everything() seen {
	w.t.Helper()
	all := make(seen)
	for _, note := range everyList {
		all[note] = w.list(note)
	}
	return all
}

// path returns the path of a file or folder of packs.
func (f *follower) path(name string) string { return filepath.Join(f.root, filepath.FromSlash(name)) }

func (f *follower) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// moveIn moves a folder that was made elsewhere into place, with everything in it.
func (f *follower) moveIn(tree, from, to string) {
	f.t.Helper()
	plant(f.t, f.aside, tree)
	f.must(os.Rename(filepath.Join(f.aside, from), to))
}

// step writes a file in place, in several parts.
func (f *follower) step(path string, parts ...string) {
	f.t.Helper()
	file, err := os.Create(f.path(path))
	f.must(err)
	for _, part := range parts {
		_, err := file.WriteString(part)
		f.must(err)
		f.must(file.Sync())
	}
	f.must(file.Close())
}

// triageSays returns triage's document with other words: a description, lines of the
// frontmatter, a body.
func triageSays(description, more, body string) string {
	return "---\nname: triage\ndescription: " + description + "\ntags: [ops]\n" + more + "---\n# Triage\n\n" + body + "\n"
}

const (
	newPack   = "-- new/SKILL.md --\n---\nname: new\ndescription: A new pack.\n---\nNew.\n"
	otherTool = `{"tools": [{"name": "greet", "description": "Say goodbye.", "inputSchema": {"type": "object"}, "command": {"program": "./scripts/greet.sh"}}]}` + "\n"
)

// followed lists what people, editors and git do to an attached pack whose tools are
// enabled, and which lists a client is told about.
var followed = []struct {
	name   string
	before func(*follower) // prepares the folder before the client has its lists; nil: it holds the pack
	do     func(*follower)
	want   []string // the lists that then differ; each is told once
	// steps says that the states between the beginning and the end can be seen, so
	// they may be told too.
	steps bool
	// folder says that the pack's folder disappears as a whole. Tool files are read
	// when tools are listed, so they can be gone before the pack is: then the client
	// is told twice.
	folder bool
}{
	{name: "a new pack", do: func(f *follower) { f.moveIn(newPack, "new", f.path("new")) }, want: everyList},
	{name: "a new pack, written file by file", do: func(f *follower) { plant(f.t, f.root, newPack) }, want: everyList},
	{name: "a new pack deep in a new folder", do: func(f *follower) {
		f.moveIn("-- x/y/new/SKILL.md --\n---\nname: new\ndescription: New.\n---\n", "x", f.path("x"))
	}, want: everyList},
	{name: "a description", do: func(f *follower) { f.replace("triage/SKILL.md", triageSays("Other.", "", "Read."), 0o644) }, want: everyList},
	{name: "a body", do: func(f *follower) { f.replace("triage/SKILL.md", triageSays("Triage incidents.", "", "Other."), 0o644) }},
	{name: "a hint", do: func(f *follower) {
		f.replace("triage/SKILL.md", triageSays("Triage incidents.", "argument-hint: topic\n", "Read."), 0o644)
	}, want: []string{lists.PromptsChanged}},
	{name: "for people only", do: func(f *follower) {
		f.replace("triage/SKILL.md", triageSays("Triage incidents.", "disable-model-invocation: true\n", "Read."), 0o644)
	}, want: []string{lists.ToolsChanged, lists.ResourcesChanged}},
	{name: "for models only", do: func(f *follower) {
		f.replace("triage/SKILL.md", triageSays("Triage incidents.", "user-invocable: false\n", "Read."), 0o644)
	}, want: []string{lists.PromptsChanged}},
	{name: "not valid any more", do: func(f *follower) { f.replace("triage/SKILL.md", "---\nname: triage\n---\n", 0o644) }, want: everyList},
	{name: "mended", before: func(f *follower) { f.replace("triage/SKILL.md", "---\nname: triage\n---\n", 0o644) },
		do: func(f *follower) { f.replace("triage/SKILL.md", triageDocument, 0o644) }, want: everyList},
	{name: "touched", do: func(f *follower) {
		f.must(os.Chtimes(f.path("triage/SKILL.md"), time.Now(), time.Now()))
		f.must(os.Chtimes(f.path("triage/tools.json"), time.Now(), time.Now()))
		f.must(os.Chmod(f.path("triage/SKILL.md"), 0o600))
	}},
	{name: "a document that is no entry document", do: func(f *follower) {
		f.replace("triage/README.md", "---\nname: other\ndescription: Other.\n---\n", 0o644)
		f.replace("triage/docs/steps.md", "Step two.\n", 0o644)
		f.replace("triage/docs/new.md", "New.\n", 0o644)
	}},
	{name: "a script", do: func(f *follower) { f.replace("triage/scripts/greet.sh", "#!/bin/sh\n", 0o755) }},
	{name: "another entry document", before: func(f *follower) { f.must(os.Rename(f.path("triage/SKILL.md"), f.path("triage/README.md"))) },
		do: func(f *follower) { f.replace("triage/SKILL.md", triageSays("Another.", "", "Read."), 0o644) }, want: everyList},
	{name: "no entry document", do: func(f *follower) { f.must(os.Remove(f.path("triage/SKILL.md"))) }, want: everyList},
	{name: "a pack removed", do: func(f *follower) { f.must(os.RemoveAll(f.path("triage"))) }, want: everyList, steps: true},
	{name: "a pack moved out", do: func(f *follower) { f.must(os.Rename(f.path("triage"), filepath.Join(f.aside, "triage"))) }, want: everyList, folder: true},
	{name: "a folder renamed", do: func(f *follower) { f.must(os.Rename(f.path("triage"), f.path("other"))) }, steps: true},
	{name: "a pack renamed", do: func(f *follower) {
		f.must(os.Rename(f.path("triage"), f.path("other")))
		f.replace("other/SKILL.md", "---\nname: other\ndescription: Triage incidents.\n---\n", 0o644)
	}, want: everyList, steps: true},
	{name: "a file with tools", do: func(f *follower) { f.replace("triage/tools.json", otherTool, 0o644) }, want: []string{lists.ToolsChanged}},
	{name: "a file with tools that says the same", do: func(f *follower) { f.replace("triage/tools.json", triageTools+"\n", 0o644) }},
	{name: "a file with tools that is not valid", do: func(f *follower) { f.replace("triage/tools.json", `{"tools": [{"name": 5}]}`, 0o644) }, want: []string{lists.ToolsChanged}},
	{name: "no file with tools", do: func(f *follower) { f.must(os.Remove(f.path("triage/tools.json"))) }, want: []string{lists.ToolsChanged}},
	{name: "a file with tools that is back", before: func(f *follower) { f.must(os.Rename(f.path("triage/tools.json"), f.path("triage/tools.bak"))) },
		do: func(f *follower) { f.must(os.Rename(f.path("triage/tools.bak"), f.path("triage/tools.json"))) }, want: []string{lists.ToolsChanged}},
	{name: "a new folder of tools", do: func(f *follower) {
		f.moveIn("-- tools/more.tool.json --\n"+`{"name": "more", "description": "More.", "parameters": {}, "command": {"program": "echo"}}`, "tools", f.path("triage/tools"))
	}}, // none of these tools was enabled
	{name: "saved by vim", do: func(f *follower) {
		f.must(os.WriteFile(f.path("triage/4913"), nil, 0o644))
		f.must(os.Remove(f.path("triage/4913")))
		f.must(os.Rename(f.path("triage/SKILL.md"), f.path("triage/SKILL.md~")))
		f.step("triage/SKILL.md", triageSays("Saved.", "", "Read."))
		f.must(os.Remove(f.path("triage/SKILL.md~")))
	}, want: everyList, steps: true},
	{name: "a body saved by vim", do: func(f *follower) {
		f.must(os.Rename(f.path("triage/SKILL.md"), f.path("triage/SKILL.md~")))
		f.step("triage/SKILL.md", triageSays("Triage incidents.", "", "Saved."))
		f.must(os.Remove(f.path("triage/SKILL.md~")))
	}, steps: true},
	{name: "saved by VS Code", do: func(f *follower) { f.step("triage/SKILL.md", triageSays("Saved.", "", "Read.")) }, want: everyList, steps: true},
	{name: "saved by Emacs", do: func(f *follower) {
		f.must(os.Symlink("ada@example.4711:1700000000", f.path("triage/.#SKILL.md")))
		f.replace("triage/#SKILL.md#", triageSays("Half of", "", ""), 0o644)
		f.must(os.Link(f.path("triage/SKILL.md"), f.path("triage/SKILL.md~")))
		f.replace("triage/SKILL.md", triageSays("Saved.", "", "Read."), 0o644)
		f.must(os.Remove(f.path("triage/.#SKILL.md")))
		f.must(os.Remove(f.path("triage/#SKILL.md#")))
	}, want: everyList},
	{name: "opened in Emacs", do: func(f *follower) {
		f.must(os.Symlink("ada@example.4711:1700000000", f.path("triage/.#SKILL.md")))
		f.replace("triage/#SKILL.md#", triageSays("Half of", "", ""), 0o644)
	}},
	{name: "written half, then whole", do: func(f *follower) {
		text := triageSays("Whole.", "", "Read.")
		f.step("triage/SKILL.md", text[:5], text[5:30], text[30:])
	}, want: everyList, steps: true},
	{name: "replaced again and again", do: func(f *follower) {
		for i := range 100 {
			f.replace("triage/SKILL.md", triageSays(fmt.Sprintf("Number %d.", i), "", "Read."), 0o644)
		}
	}, want: everyList, steps: true},
	{name: "equal size and time", do: func(f *follower) {
		info, err := os.Stat(f.path("triage/SKILL.md"))
		f.must(err)
		f.must(os.WriteFile(filepath.Join(f.aside, "same"), []byte(strings.Replace(triageDocument, "incidents", "accidents", 1)), 0o644))
		f.must(os.Chtimes(filepath.Join(f.aside, "same"), info.ModTime(), info.ModTime()))
		f.must(os.Rename(filepath.Join(f.aside, "same"), f.path("triage/SKILL.md")))
	}, want: everyList},
	{name: "from the past", do: func(f *follower) { f.dated(time.Unix(1, 0)) }, want: everyList},
	{name: "from the future", do: func(f *follower) { f.dated(time.Now().Add(24 * time.Hour)) }, want: everyList},
	{name: "a symlink swapped", before: func(f *follower) {
		plant(f.t, f.root, "-- .store/v1/it/SKILL.md --\n---\nname: it\ndescription: One.\n---\n-- .store/v2/it/SKILL.md --\n---\nname: it\ndescription: Two.\n---\n")
		f.must(os.Symlink(filepath.FromSlash(".store/v1"), f.path("now")))
	}, do: func(f *follower) {
		next := filepath.Join(f.aside, "next") // inside the root, it would be another path to the pack
		f.must(os.Symlink(filepath.FromSlash(".store/v2"), next))
		f.must(os.Rename(next, f.path("now")))
	}, want: everyList},
	{name: "a root that appears", do: func(f *follower) { f.moveIn(strings.ReplaceAll(newPack, "-- new", "-- far/packs/new"), "far", f.far()) }, want: everyList},
	{name: "a root that goes", do: func(f *follower) { f.must(os.Rename(f.root, filepath.Join(f.aside, "gone"))) }, want: everyList, folder: true},
	{name: "a root that comes back", before: func(f *follower) { f.must(os.Rename(f.root, filepath.Join(f.aside, "gone"))) },
		do: func(f *follower) { f.must(os.Rename(filepath.Join(f.aside, "gone"), f.root)) }, want: everyList},
	{name: "a root that goes and comes back", do: func(f *follower) {
		f.must(os.Rename(f.root, filepath.Join(f.aside, "gone")))
		f.must(os.Rename(filepath.Join(f.aside, "gone"), f.root))
	}, steps: true},
	{name: "a checkout of 2,000 files", before: func(f *follower) { f.repository() }, do: func(f *follower) { f.checkout("two") }, want: everyList, steps: true},
}

// far returns where a root is created later, together with the folder above it.
func (f *follower) far() string { return f.root + "-far" }

// dated puts a document with another modification time in place.
func (f *follower) dated(at time.Time) {
	f.t.Helper()
	file := filepath.Join(f.aside, "dated")
	f.must(os.WriteFile(file, []byte(triageSays("Dated.", "", "Read.")), 0o644))
	f.must(os.Chtimes(file, at, at))
	f.must(os.Rename(file, f.path("triage/SKILL.md")))
}

// repository makes a repository of packs with 100 files each, and a branch in which
// every file differs. When polling, it has a tenth of them: package watch tests all.
func (f *follower) repository() {
	f.t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		f.files("one")
		return
	}
	f.git("", "init", "-q", "-b", "one")
	var stream strings.Builder
	for _, branch := range []string{"one", "two"} {
		fmt.Fprintf(&stream, "commit refs/heads/%s\ncommitter a <a@example.com> 1700000000 +0000\ndata 0\n", branch)
		for path, data := range f.branch(branch) {
			fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", path, len(data), data)
		}
	}
	f.git(stream.String(), "fast-import", "--quiet")
	f.git("", "reset", "-q", "--hard", "one")
}

// branch yields the files of a branch.
func (f *follower) branch(branch string) iter.Seq2[string, string] {
	const n = 20 // few enough that listed have their descriptions
	docs := 99
	if f.kind == "polling" {
		docs = 9
	}
	return func(yield func(path, data string) bool) {
		for i := range n {
			dir := fmt.Sprintf("g%d/p%03d/", i%10, i)
			if !yield(dir+"SKILL.md", fmt.Sprintf("---\nname: p%03d\ndescription: Of branch %s.\n---\n", i, branch)) {
				return
			}
			for j := range docs {
				if !yield(fmt.Sprintf("%sdocs/%d.md", dir, j), branch) {
					return
				}
			}
		}
	}
}

func (f *follower) files(branch string) {
	f.t.Helper()
	for path, data := range f.branch(branch) {
		f.replace(path, data, 0o644)
	}
}

// checkout runs git; if git is not installed, it writes the files itself.
func (f *follower) checkout(branch string) {
	f.t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		f.files(branch)
		return
	}
	f.git("", "checkout", "-q", branch)
}

func (f *follower) git(input string, args ...string) {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), "git", args...)
	cmd.Dir, cmd.Stdin = f.root, strings.NewReader(input)
	none := filepath.Join(f.aside, "none")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+none, "GIT_CONFIG_SYSTEM="+none, "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// shows returns what can be seen of a Catalog.
func shows(c *packs.Catalog) []string {
	var all []string
	for _, p := range c.All() {
		all = append(all, fmt.Sprintf("%s in %s, %s with %v, valid %v: %q", p.ID, p.Dir, p.Entry, p.ToolFiles, p.Valid, p.Frontmatter.Text()))
	}
	return all
}

// TestFollowed does each of these things, and checks that the client is told about
// exactly the listed that differ. At the end it makes a mark in another root: what the
// client was told before that was caused by the step.
func TestFollowed(t *testing.T) {
	for _, kind := range watchers {
		for _, row := range followed {
			t.Run(kind+"/"+strings.ReplaceAll(row.name, " ", "_"), func(t *testing.T) {
				t.Parallel()
				mark := t.TempDir()
				plant(t, mark, "-- mark/SKILL.md --\n---\nname: mark\ndescription: M.\n---\n")
				var opts packs.Options
				f := newFollower(t, kind, triage, func(s *setup) {
					root := s.packs.Roots[0]
					root.Dir = mark
					later := root
					later.Dir, later.Optional = filepath.Join(s.packs.Roots[0].Dir+"-far", "packs"), true
					s.packs.Roots = append(s.packs.Roots, root, later)
					opts = s.packs
				})
				f.answer = decide("chat")
				f.initialize()
				f.enable("triage")
				fresh := func() []string {
					t.Helper()
					c, err := packs.Scan(t.Context(), opts)
					f.must(err)
					return shows(c)
				}
				// final waits until the client was told about the final state.
				final := func(what string) {
					t.Helper()
					late := time.After(20 * time.Second)
					for {
						diff := "nothing was told of"
						if told := f.told.Load(); told != nil {
							diff = cmp.Diff(fresh(), shows(told))
						}
						if diff == "" {
							return
						}
						select {
						case <-f.followed:
						case <-late:
							t.Fatalf("%s: the Catalog is not that of a new scan (-new +there):\n%s", what, diff)
						}
					}
				}
				marked := func(hint string) {
					t.Helper()
					f.must(os.WriteFile(filepath.Join(f.aside, "mark"), []byte("---\nname: mark\ndescription: M.\nargument-hint: "+hint+"\n---\n"), 0o644))
					f.must(os.Rename(filepath.Join(f.aside, "mark"), filepath.Join(mark, "mark", "SKILL.md")))
					final(hint)
				}
				if row.before != nil {
					row.before(f)
				}
				marked("begun")
				f.listed()
				f.heard()
				before, known := f.everything(), f.everything()

				row.do(f)
				final("after")
				marked("done")
				var told []string
				for notes := f.heard(); len(notes) > 0; notes = f.heard() {
					told = append(told, notes...)
					for _, note := range notes {
						known[note] = f.list(note)
					}
				}
				now := f.everything()
				if late := f.heard(); len(late) > 0 {
					t.Errorf("the client also heard %q", late)
				}
				var differ []string
				for _, note := range everyList {
					if now[note] != known[note] {
						t.Errorf("the client was not told of the last %s", listed[note].method)
					}
					if note == lists.PromptsChanged {
						now[note] = strings.Replace(now[note], "done", "begun", 1)
					}
					if now[note] != before[note] {
						differ = append(differ, note)
					}
				}
				if !slices.Equal(differ, row.want) {
					t.Errorf("what differs is %q, want %q", differ, row.want)
				}
				if !row.steps {
					once := told
					if row.folder {
						once = slices.Compact(slices.Clone(told))
					}
					if want := append(slices.Clone(row.want), lists.PromptsChanged); !slices.Equal(once, want) && !slices.Equal(once, joined(row.want)) {
						t.Errorf("the client was told of %q, want %q", told, want)
					}
				}
				for _, note := range row.want {
					if !slices.Contains(told, note) {
						t.Errorf("the client was told of %q, want %q too", told, note)
					}
				}
			})
		}
	}
}

// joined returns these listed and that of prompts, in the order in which they are told
// if they change at once.
func joined(want []string) []string {
	return slices.DeleteFunc(slices.Clone(everyList), func(note string) bool { return note != lists.PromptsChanged && !slices.Contains(want, note) })
}

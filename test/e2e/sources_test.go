package e2e_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/test/upstream"
)

// pack returns a version of a pack with one tool, whose program prints the version.
func pack(version string) upstream.Files {
	network := ""
	if version != "one" {
		network = `, "policy": {"network": "full"}`
	}
	return upstream.Files{
		"SKILL.md":   "---\nname: triage\ndescription: Sorts issues, " + version + ".\n---\n# Triage " + version + "\n",
		"tell.sh":    "#!/bin/sh\necho version " + version + "\n",
		"tools.json": `{"tools": [{"name": "tell", "description": "Tells.", "inputSchema": {"type": "object", "properties": {}}, "command": {"program": "./tell.sh"}` + network + `}]}`,
	}
}

// in puts files below a folder.
func in(dir string, files upstream.Files) upstream.Files {
	out := upstream.Files{}
	for name, text := range files {
		out[dir+"/"+name] = text
	}
	return out
}

// A source is a place where a pack comes from.
type source struct {
	args []string // arguments of add: the address, and the names of packs
	id   string
	set  func(version string) // changes what the place offers
}

// kinds returns constructors for all kinds of places, each with its own server if needed.
func kinds() map[string]func(t *testing.T, w *world) source {
	repository := func(at func(*upstream.Repo) string) func(t *testing.T, w *world) source {
		return func(t *testing.T, w *world) source {
			r := upstream.NewRepo(t, nil)
			return source{[]string{at(r)}, "acme/triage", func(v string) { r.Commit(in("skills/triage", pack(v))) }}
		}
	}
	return map[string]func(t *testing.T, w *world) source{
		"folder": func(t *testing.T, w *world) source {
			dir := filepath.Join(w.home(), "work", "triage")
			return source{[]string{dir, "--as", "acme"}, "acme/triage", func(v string) {
				if err := upstream.Write(dir, pack(v)); err != nil {
					t.Fatal(err)
				}
			}}
		},
		"archive": func(t *testing.T, w *world) source {
			file := filepath.Join(w.home(), "triage.tar.gz")
			return source{[]string{file, "--as", "acme"}, "acme/triage", func(v string) {
				if err := os.WriteFile(file, upstream.TarGz(t, pack(v)), 0o600); err != nil {
					t.Fatal(err)
				}
			}}
		},
		"git over http": repository(func(r *upstream.Repo) string { return r.URL + "@main#skills" }),
		"git, a file":   repository(func(r *upstream.Repo) string { return "file://" + filepath.ToSlash(r.Dir) + "@main" }),
		"git over ssh": func(t *testing.T, w *world) source {
			s := upstream.NewSSHD(t)
			if err := os.Rename(s.File(), filepath.Join(w.home(), ".ssh")); err != nil {
				t.Fatal(err)
			}
			return repository(func(r *upstream.Repo) string { return s.URL(r) })(t, w)
		},
		"a marketplace": func(t *testing.T, _ *world) source {
			r := upstream.NewRepo(t, nil)
			return source{[]string{r.URL, "triage"}, "acme/triage", func(v string) {
				files := in("plugins/sort/skills/triage", pack(v))
				files["plugins/other/SKILL.md"] = "---\nname: other\ndescription: Another.\n---\n"
				files[".claude-plugin/marketplace.json"] = `{"name": "acme", "owner": {"name": "a"}, "plugins": [{"name": "sort", "source": "./plugins/sort"}, {"name": "other", "source": "./plugins/other"}]}`
				r.Commit(files)
			}}
		},
		"a registry": func(t *testing.T, _ *world) source {
			p := upstream.NewPages(t)
			return source{[]string{"oci://" + p.Host() + "/acme/triage:1"}, "acme/triage", func(v string) { p.Artifact("acme/triage", "1", pack(v)) }}
		},
		"a site": func(t *testing.T, _ *world) source {
			p := upstream.NewPages(t)
			return source{[]string{p.URL, "--as", "acme"}, "acme/triage", func(v string) { p.Skill("triage", pack(v)) }}
		},
		"a rulebook": func(t *testing.T, w *world) source {
			p := upstream.NewPages(t)
			w.env = append(w.env, "PACKS_MCP_SOURCES_RULEBOOKS="+p.URL)
			return source{[]string{"stakpak:stakpak://acme.org/triage.md"}, "stakpak/triage", func(v string) {
				p.Rulebook("stakpak://acme.org/triage.md", "Sorts issues, "+v+".", "# Triage "+v+"\n")
			}}
		},
	}
}

// home is the user's home folder.
func (w *world) home() string { return filepath.Dir(w.packs) }

// run runs a command, which must exit with a status, and returns its output.
func (w *world) run(status int, args ...string) string {
	w.t.Helper()
	out, err := w.command(args...).CombinedOutput()
	got := 0
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		got = ended.ExitCode()
	} else if err != nil {
		w.t.Fatal(err)
	}
	if got != status {
		w.t.Fatalf("packs-mcp %q ended with %d, want %d:\n%s", args, got, status, out)
	}
	return string(out)
}

// A pack comes from elsewhere, is attached, and runs after an "always" answer. When it changes
// there, it changes here only by an update that shows the change; that ends the answer, and
// the next question says what changed. The server runs all the time.
func TestSources(t *testing.T) {
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, "PACKS_MCP_SOURCES_PRIVATE=127.0.0.1", "SSH_AUTH_SOCK=")
			lifeOf(t, w, kind(t, w))
		})
	}
}

func lifeOf(t *testing.T, w *world, s source) {
	tools := s.id != "stakpak/triage"
	says := func(text string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in:\n%s", want, text)
			}
		}
	}
	s.set("one")
	c := w.connect(v20251125, choose("always"))
	c.list()
	says(w.run(4, append([]string{"add", "--yes"}, s.args...)...), "nobody signed")
	says(w.run(0, append([]string{"add", "--yes", "--allow-unsigned"}, s.args...)...), s.id+" (new)", "scan     nothing found")
	says(w.run(0, "attach", s.id, "--trust", "user"), s.id) // if a pack is not trusted, no answer lasts
	c.changed()
	if tools {
		c.ok("capability_packs_enable_tools", map[string]any{"pack_id": s.id})
		c.changed()
		c.questions()
	}
	c.list()

	use := func() string {
		t.Helper()
		if tools {
			out := c.ok("capability_packs_call_tool", map[string]any{"pack_id": s.id, "tool": "tell", "arguments": map[string]any{}})
			text, _ := out["stdout"].(string)
			return text
		}
		out := c.ok("capability_packs_open_docs", map[string]any{"pack_id": s.id})
		doc, _ := out["entry_doc"].(map[string]any)
		text, _ := doc["content"].(string)
		return text
	}
	says(use(), " one")
	if asked := c.questions(); len(asked) != 1 || !strings.Contains(asked[0].Message, "from") {
		t.Errorf("%d questions, want one that says where the pack is from: %v", len(asked), asked)
	}
	says(use(), " one")
	if asked := c.questions(); len(asked) != 0 {
		t.Errorf("the lasting answer did not hold: %q", asked[0].Message)
	}
	w.run(0, "outdated")
	w.run(0, "diff", s.id)

	s.set("two")
	says(use(), " one")
	says(w.run(2, "outdated"), s.id)
	wants := []string{"~ SKILL.md", "1 lasting answer to this pack ends"}
	if tools {
		wants = append(wants[:1], "2 lasting answers to this pack end", "~ tell.sh", "network: none → full", "description: Sorts issues, one. → Sorts issues, two.")
	}
	says(w.run(2, "diff", s.id), wants...)
	says(w.run(2, "update", "--preview"), wants...)
	says(use(), " one")
	says(w.run(0, "update", "--yes"), wants...)
	c.changed()
	if asked := c.questions(); len(asked) != 0 {
		t.Errorf("before the update, it was asked %q", asked[0].Message)
	}

	c.answers(choose("once")) // no answer lasts for a tool with unrestricted network access
	says(use(), " two")
	asked := c.questions()
	if len(asked) != 1 {
		t.Fatalf("%d questions after the update, want one", len(asked))
	}
	if tools {
		says(asked[0].Message, "the file tell.sh changed", "network was none, is now full",
			"last update: description: Sorts issues, one. → Sorts issues, two.", "last update: tool tell, changed: network: none → full", "last update: file tell.sh: changed")
	} else {
		says(asked[0].Message, "the file SKILL.md changed")
	}
	w.run(0, "verify")
	w.run(0, "update", "--undo", s.id, "--yes")
	c.changed()
	says(use(), " one")
	c.close()
	w.entries()
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
)

// versioned writes successive versions of a pack to a folder.
func versioned(t *testing.T) (dir string, write func(keys, body string)) {
	dir = filepath.Join(t.TempDir(), "triage")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir, func(keys, body string) {
		t.Helper()
		text := fmt.Sprintf("---\nname: triage\ndescription: Sorts issues.\n%s---\n%s\n", keys, body)
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (d *person) lockFile() []byte {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(strings.TrimPrefix(d.environ[0], "HOME="), lock.Name))
	if err != nil {
		d.t.Fatal(err)
	}
	return data
}

// refuses fails unless a command changes nothing, exits with status 4, and shows both
// states.
func (d *person) refuses(before, now string, args ...string) {
	d.t.Helper()
	was := d.lockFile()
	e := d.does(4, nil, args...)
	for _, want := range []string{"--allow-older takes it", "  before " + before + "\n", "  now    " + now + "\n"} {
		if !strings.Contains(e.err, want) {
			d.t.Errorf("%q does not say %q:\n%s", args, want, e.err)
		}
	}
	if !bytes.Equal(d.lockFile(), was) {
		d.t.Errorf("%q changed the lock file", args)
	}
	d.does(0, nil, "verify")
}

// saysOlder fails unless outdated says how what the source of the only pack has is older;
// "": it has another version, and nothing says that it is older.
func (d *person) saysOlder(how string) {
	d.t.Helper()
	var got struct{ Outdated []struct{ ID, Older string } }
	d.does(2, &got, "outdated", "--json")
	if len(got.Outdated) != 1 || got.Outdated[0].Older != how {
		d.t.Errorf("outdated --json says %+v, want older: %q", got.Outdated, how)
		return
	}
	e := d.does(2, nil, "outdated")
	if end := "  older: " + how + "\n"; strings.Contains(e.out, "older") != (how != "") || how != "" && !strings.HasSuffix(e.out, end) {
		d.t.Errorf("outdated says %q, want older: %q", e.out, how)
	}
}

// If a registry serves an old artifact again, it is refused.
func TestRegistryServesOlder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files here have no mode")
	}
	author, reader, shelf := newPerson(t), newPerson(t), newShelf(t)
	dir, write := versioned(t)
	to := "oci://" + strings.TrimPrefix(shelf.URL, "http://") + "/acme/triage"
	publish := func(keys, body string) []byte {
		t.Helper()
		write(keys, body)
		author.does(0, nil, "publish", dir, to, "--yes")
		return shelf.things["latest"]
	}
	serve := func(manifest []byte) {
		shelf.mu.Lock()
		defer shelf.mu.Unlock()
		shelf.things["latest"] = manifest
	}
	none := publish("", "Zero.")
	one := publish("version: 1.9.0\n", "One, with a hole.")
	two := publish("metadata:\n  version: \"1.10.0\"\n", "Two.")
	add := []string{"add", to, "--yes", "--allow-unsigned"}
	reader.does(0, nil, add...)
	reader.does(0, nil, "outdated")

	serve(one)
	reader.saysOlder("version 1.9.0, here version 1.10.0")
	for _, args := range [][]string{{"update", "--yes"}, {"update", "--yes", "--allow-signer-change", "--allow-source-change"}, {"update", "--preview"}, {"diff", "acme/triage"}, add} {
		reader.refuses("version 1.10.0", "version 1.9.0", args...)
	}
	serve(none)
	reader.refuses("version 1.10.0", "no version", "update", "--yes")
	reader.refuses("version 1.10.0", "no version", add...)

	// A person may accept it, and sees what it is.
	serve(one)
	reader.does(2, nil, "update", "--preview", "--allow-older")
	e := reader.does(0, nil, "update", "--yes", "--allow-older")
	if want := "  older    than what is here: version 1.9.0, before: version 1.10.0\n"; !strings.Contains(e.err, want) {
		t.Errorf("the plan has no %q:\n%s", want, e.err)
	}
	if e := reader.does(0, nil, "audit", "show", "--event", "source", "--json"); strings.Count(e.out, ", older than before") != 1 {
		t.Errorf("the log does not have the older version once: %s", e.out)
	}
	// After that, everything newer is accepted again.
	serve(two)
	reader.saysOlder("")
	reader.does(0, nil, "update", "--yes")

	// An undo is the person's own choice, and an update may follow it.
	reader.does(0, nil, "update", "--undo", "--yes", "acme/triage")
	reader.does(0, nil, "verify")
	e = reader.does(0, nil, "update", "--yes")
	if strings.Contains(e.err, "older") || !bytes.Contains(reader.lockFile(), []byte(`"version": "1.10.0"`)) {
		t.Errorf("an update after an undo: %s\n%s", e.err, reader.lockFile())
	}
	serve(one)
	reader.refuses("version 1.10.0", "version 1.9.0", "update", "--yes")
	reader.does(0, nil, append(add, "--allow-older")...)

	// sync fetches what the lock file says, whatever is newest.
	serve(two)
	if err := os.RemoveAll(filepath.Join(strings.TrimPrefix(reader.environ[0], "HOME="), "sources")); err != nil {
		t.Fatal(err)
	}
	reader.does(0, nil, "sync")
	if !bytes.Contains(reader.lockFile(), []byte(`"version": "1.9.0"`)) {
		t.Errorf("sync changed the version: %s", reader.lockFile())
	}
}

// The annotations of an artifact count if the pack has no version.
func TestRegistryServesOlderAnnotations(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files here have no mode")
	}
	author, shelf := newPerson(t), newShelf(t)
	dir, write := versioned(t)
	to := "oci://" + strings.TrimPrefix(shelf.URL, "http://") + "/acme/triage"
	// note serves another artifact with these annotations.
	n := 0
	note := func(annotations map[string]any) {
		t.Helper()
		n++
		write("", fmt.Sprint("Number ", n))
		author.does(0, nil, "publish", dir, to, "--yes")
		var m map[string]any
		if err := json.Unmarshal(shelf.things["latest"], &m); err != nil {
			t.Fatal(err)
		}
		maps.Copy(m["annotations"].(map[string]any), annotations)
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		shelf.mu.Lock()
		defer shelf.mu.Unlock()
		shelf.things["latest"], shelf.things[sources.Digest(data)] = data, data
	}
	for _, tt := range []struct {
		key, low, high, before, now string
	}{
		{"org.opencontainers.image.version", "1.0.0-rc.2", "1.0.0", "version 1.0.0", "version 1.0.0-rc.2"},
		{"dev.toolhive.skills.version", "1.9", "1.10", "version 1.10", "version 1.9"},
		{"org.opencontainers.image.created", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "date 2026-01-01T00:00:01Z", "date 2026-01-01T00:00:00Z"},
	} {
		t.Run(tt.key, func(t *testing.T) {
			reader := newPerson(t)
			note(map[string]any{tt.key: tt.low})
			reader.does(0, nil, "add", to, "--yes", "--allow-unsigned")
			note(map[string]any{tt.key: tt.high})
			reader.does(0, nil, "update", "--yes")
			note(map[string]any{tt.key: tt.low})
			reader.refuses(tt.before, tt.now, "update", "--yes")
			note(map[string]any{tt.key: tt.high})
			reader.does(0, nil, "update", "--yes") // nothing says that it is older
			note(nil)
			kind, _, _ := strings.Cut(tt.before, " ")
			reader.refuses(tt.before, "no "+kind, "update", "--yes")
		})
	}
}

// If a site lists an old pack again, it is refused. If nothing shows which is newer, this
// cannot be detected.
func TestSiteServesOlder(t *testing.T) {
	author, reader := newPerson(t), newPerson(t)
	dir, write := versioned(t)
	// site returns a site with one version of the pack.
	site := func(keys, body string) http.Handler {
		t.Helper()
		write(keys, body)
		out := filepath.Join(t.TempDir(), "public")
		author.does(0, nil, "index", dir, "--out", out, "--yes")
		return http.FileServer(http.Dir(out))
	}
	one, two, older := site("version: 1.9\n", "One."), site("version: 2.0\n", "Two."), site("", "Three.")
	var now http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.ServeHTTP(w, r) }))
	defer server.Close()
	add := []string{"add", server.URL, "triage", "--yes", "--allow-unsigned"}

	now = older
	reader.does(0, nil, add...)
	now = one
	reader.does(0, nil, "update", "--yes")
	now = two
	reader.does(0, nil, "update", "--yes")
	now = one
	reader.saysOlder("version 1.9, here version 2.0")
	reader.refuses("version 2.0", "version 1.9", "update", "--yes")
	reader.refuses("version 2.0", "version 1.9", add...)
	now = older
	reader.saysOlder("no version, here version 2.0")
	reader.refuses("version 2.0", "no version", "update", "--yes")
	reader.does(0, nil, "update", "--yes", "--allow-older")
	now = site("", "Four.")
	reader.does(0, nil, "update", "--yes") // its age is unknown
}

// A rulebook has a date.
func TestRulebookServesOlder(t *testing.T) {
	reader, updated, content := newPerson(t), "", ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"id":"1","uri":"stakpak://acme.org/base-line.md","description":"What everybody keeps to.","visibility":"PUBLIC","tags":[],"updated_at":%q,"content":%q}`, updated, content)
	}))
	defer server.Close()
	reader.environ = append(reader.environ, "PACKS_MCP_SOURCES_RULEBOOKS="+server.URL)
	const jan, feb = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"

	updated, content = feb, "# Two\n"
	reader.does(0, nil, "add", "stakpak://acme.org/base-line.md", "--yes", "--allow-unsigned")
	updated, content = jan, "# One\n"
	reader.refuses("date "+feb, "date "+jan, "update", "--yes")
	updated = "yesterday"
	reader.refuses("date "+feb, "no date", "update", "--yes")
	updated, content = "2026-02-01T01:00:01+01:00", "# Three\n"
	reader.does(0, nil, "update", "--yes")
}

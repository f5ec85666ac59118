package site

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/sourcestest"
	"github.com/packs-mcp/packs-mcp/test/upstream"
)

// site serves these addresses, and returns its own.
func site(t *testing.T, pages map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := pages[r.URL.Path]
		if to, is := strings.CutPrefix(text, "to "); is {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func index2(entries ...string) string {
	return `{"$schema":"` + schema + `","skills":[` + strings.Join(entries, ",") + `]}`
}

func entry2(name, kind, url, data string) string {
	return fmt.Sprintf(`{"name":%q,"type":%q,"description":"Sorts.","url":%q,"digest":%q}`, name, kind, url, sources.Digest([]byte(data)))
}

func TestSite(t *testing.T) {
	packed := string(upstream.TarGz(t, upstream.Files{"SKILL.md": sourcestest.Document, "scripts/run.sh": "x"}))
	const now, before = "/.well-known/agent-skills/", "/.well-known/skills/"
	for name, tt := range map[string]struct {
		pages map[string]string
		path  string // of the address
		found []string
		pick  string // the path of the pack that is taken
		files []string
		pin   string // of that pack
	}{
		"0.2, an archive": {
			pages: map[string]string{now + "index.json": index2(entry2("triage", "archive", "triage.tar.gz", packed)), now + "triage.tar.gz": packed},
			found: []string{"triage"}, pick: "triage", files: []string{"SKILL.md", "scripts/run.sh*"}, pin: sources.Digest([]byte(packed)),
		},
		"0.2, a sourcestest.Document": {
			pages: map[string]string{now + "index.json": index2(entry2("triage", "skill-md", "/x/SKILL.md", sourcestest.Document)), "/x/SKILL.md": sourcestest.Document},
			found: []string{"triage"}, pick: "triage", files: []string{"SKILL.md"}, pin: sources.Digest([]byte(sourcestest.Document)),
		},
		"bad entries of 0.2 are not valid": {
			pages: map[string]string{now + "index.json": index2(entry2("triage", "skill-md", "SKILL.md", sourcestest.Document), entry2("Bad", "skill-md", "x", ""), entry2("what", "plugin", "x", ""),
				`{"name":"no-digest","type":"skill-md","url":"x"}`, entry2("twice", "skill-md", "x", ""), entry2("twice", "archive", "x", ""), entry2("user", "archive", "https://a:b@example.org/x", "")), now + "SKILL.md": sourcestest.Document},
			found: []string{"triage", "!Bad", "!what", "!no-digest", "!twice", "!twice", "!user"}, pick: "triage", files: []string{"SKILL.md"}, pin: sources.Digest([]byte(sourcestest.Document)),
		},
		"0.1": {
			pages: map[string]string{before + "index.json": `{"skills":[{"name":"triage","description":"Sorts.","files":["SKILL.md","a b/é.md"]}]}`, before + "triage/SKILL.md": sourcestest.Document, before + "triage/a b/é.md": "x"},
			found: []string{"triage"}, pick: "triage", files: []string{"SKILL.md", "a b/é.md"},
			pin: sources.Digest([]byte("SKILL.md\x00" + sources.Digest([]byte(sourcestest.Document)) + "\na b/é.md\x00" + sources.Digest([]byte("x")) + "\n")),
		},
		"the address comes before the root": {
			pages: map[string]string{"/docs" + before + "index.json": `{"skills":[{"name":"triage","files":["SKILL.md"]}]}`, "/docs" + before + "triage/SKILL.md": sourcestest.Document, now + "index.json": index2(entry2("other", "skill-md", "x", ""))},
			path:  "/docs/", found: []string{"triage"}, pick: "triage", files: []string{"SKILL.md"}, pin: sources.Digest([]byte("SKILL.md\x00" + sources.Digest([]byte(sourcestest.Document)) + "\n")),
		},
		"the root, behind pages for every address": {
			pages: map[string]string{"/docs" + now + "index.json": "<html>", "/docs" + before + "index.json": "", now + "index.json": index2(entry2("triage", "skill-md", "x", sourcestest.Document)), now + "x": sourcestest.Document},
			path:  "/docs", found: []string{"triage"}, pick: "triage", files: []string{"SKILL.md"}, pin: sources.Digest([]byte(sourcestest.Document)),
		},
		"an index by its address": {
			pages: map[string]string{"/some/index.json": index2(entry2("triage", "skill-md", "x.md", sourcestest.Document)), "/some/x.md": sourcestest.Document},
			path:  "/some/index.json", found: []string{"triage"}, pick: "triage", files: []string{"SKILL.md"}, pin: sources.Digest([]byte(sourcestest.Document)),
		},
		"a moved index": {
			pages: map[string]string{now + "index.json": "to /elsewhere/index.json", "/elsewhere/index.json": index2(entry2("triage", "skill-md", "x.md", sourcestest.Document)), "/elsewhere/x.md": sourcestest.Document},
			found: []string{"triage"}, pick: "triage", files: []string{"SKILL.md"}, pin: sources.Digest([]byte(sourcestest.Document)),
		},
		"an archive":                   {pages: map[string]string{"/x.tgz": packed}, path: "/x.tgz", found: []string{"triage"}, files: []string{"SKILL.md", "scripts/run.sh*"}, pin: sources.Digest([]byte(packed))},
		"an archive with its digest":   {pages: map[string]string{"/get": packed}, path: "/get#sha256=" + sources.Digest([]byte(packed))[7:], found: []string{"triage"}, files: []string{"SKILL.md", "scripts/run.sh*"}, pin: sources.Digest([]byte(packed))},
		"an archive without an ending": {pages: map[string]string{"/get": packed}, path: "/get", found: []string{"triage"}, files: []string{"SKILL.md", "scripts/run.sh*"}, pin: sources.Digest([]byte(packed))},
		"a sourcestest.Document":       {pages: map[string]string{"/triage/SKILL.md": sourcestest.Document}, path: "/triage/SKILL.md", found: []string{"triage"}, files: []string{"SKILL.md"}, pin: sources.Digest([]byte(sourcestest.Document))},
	} {
		t.Run(name, func(t *testing.T) {
			at := site(t, tt.pages)
			s, err := Open(t.Context(), sourcestest.Here(), sourcestest.Parse(t, at+tt.path))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			found, err := sources.Survey(t.Context(), s, "")
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, p := range found {
				if !p.Valid {
					p.Name = "!" + p.Name
				}
				names = append(names, p.Name)
			}
			if !slices.Equal(names, tt.found) {
				t.Errorf("packs = %q, want %q", names, tt.found)
			}
			tree, _, err := sourcestest.Fill(t, s, tt.pick)
			if err != nil {
				t.Fatal(err)
			}
			if got := sourcestest.Paths(tree); !slices.Equal(got, tt.files) {
				t.Errorf("files = %q, want %q", got, tt.files)
			}
			if pin, err := sources.PinOf(t.Context(), s, tt.pick); err != nil || pin != tt.pin {
				t.Errorf("pin = %s, %v, want %s", pin, err, tt.pin)
			}
			// The address in a lock file leads to the same pack.
			again, err := Open(t.Context(), sourcestest.Here(), sourcestest.Parse(t, s.Resolved()))
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if pin, err := sources.PinOf(t.Context(), again, tt.pick); err != nil || pin != tt.pin {
				t.Errorf("%s has the pin %s, %v, want %s", s.Resolved(), pin, err, tt.pin)
			}
		})
	}
}

func TestHostileSite(t *testing.T) {
	packed := string(upstream.TarGz(t, upstream.Files{"SKILL.md": sourcestest.Document}))
	const now, before = "/.well-known/agent-skills/", "/.well-known/skills/"
	for name, tt := range map[string]struct {
		pages map[string]string
		path  string
		pin   bool
		want  string
	}{
		"another archive":               {pin: true, pages: map[string]string{now + "index.json": index2(entry2("triage", "archive", "x", packed)), now + "x": packed + "x"}},
		"another sourcestest.Document":  {pin: true, pages: map[string]string{now + "index.json": index2(entry2("triage", "skill-md", "x", sourcestest.Document)), now + "x": sourcestest.Document + "x"}},
		"another digest in the address": {pin: true, path: "/x.tgz#sha256=" + strings.Repeat("0", 64), pages: map[string]string{"/x.tgz": packed}},
		"another name":                  {want: "says that its name is", pages: map[string]string{now + "index.json": index2(entry2("other", "skill-md", "x", sourcestest.Document)), now + "x": sourcestest.Document}},
		"no pack":                       {want: "problems", pages: map[string]string{now + "index.json": index2(entry2("triage", "skill-md", "x", "text")), now + "x": "text"}},
		"another version":               {want: "version that is not known", pages: map[string]string{now + "index.json": `{"$schema":"https://schemas.agentskills.io/discovery/9/schema.json","skills":[]}`}},
		"broken JSON":                   {want: "the index at", pages: map[string]string{now + "index.json": `{"skills":[`}},
		"skills twice":                  {want: "twice", pages: map[string]string{now + "index.json": `{"skills":[],"Skills":[]}`}},
		"0.1, a path that leads out":    {want: "not the path of a file", pages: map[string]string{before + "index.json": `{"skills":[{"name":"triage","files":["SKILL.md","../x"]}]}`}},
		"0.1, an absolute path":         {want: "not the path of a file", pages: map[string]string{before + "index.json": `{"skills":[{"name":"triage","files":["SKILL.md","/etc/passwd"]}]}`}},
		"0.1, an escaped path":          {want: "not the path of a file", pages: map[string]string{before + "index.json": `{"skills":[{"name":"triage","files":["SKILL.md","%2e%2e/x"]}]}`}},
		"0.1, a query":                  {want: "not the path of a file", pages: map[string]string{before + "index.json": `{"skills":[{"name":"triage","files":["SKILL.md","x?y"]}]}`}},
		"0.1, no SKILL.md":              {want: "no SKILL.md", pages: map[string]string{before + "index.json": `{"skills":[{"name":"triage","files":["README.md"]}]}`}},
		"0.1, a name that leads out":    {want: "not the name of a skill", pages: map[string]string{before + "index.json": `{"skills":[{"name":"..","files":["SKILL.md"]}]}`}},
		"0.1, twins":                    {want: "take its name", pages: map[string]string{before + "index.json": `{"skills":[{"name":"triage","files":["SKILL.md","a","A"]}]}`, before + "triage/SKILL.md": sourcestest.Document, before + "triage/a": "", before + "triage/A": ""}},
		"0.1, a missing file":           {want: "404", pages: map[string]string{before + "index.json": `{"skills":[{"name":"triage","files":["SKILL.md","x"]}]}`, before + "triage/SKILL.md": sourcestest.Document}},
		"to http":                       {want: "packs come over https", pages: map[string]string{now + "index.json": "to http://example.org/"}},
		"to a file":                     {want: "packs come over https", pages: map[string]string{now + "index.json": "to file:///etc/passwd"}},
		"to a private address":          {want: "its address is private", pages: map[string]string{now + "index.json": "to https://10.0.0.1/"}},
		"to a private name":             {want: "its address is private", pages: map[string]string{now + "index.json": "to https://localhost/"}},
		"a skill at a private address":  {want: "its address is private", pages: map[string]string{now + "index.json": index2(entry2("triage", "archive", "https://[::1]/x", packed))}},
		"a skill behind file":           {want: "packs come over https", pages: map[string]string{now + "index.json": index2(entry2("triage", "archive", "file:///etc/passwd", packed))}},
		"a ring":                        {want: "redirects", pages: map[string]string{now + "index.json": "to /a", "/a": "to /b", "/b": "to /a"}},
		"nothing":                       {want: "404", pages: nil},
		"a page":                        {want: "neither an archive nor a SKILL.md", pages: map[string]string{"/": "<html>"}},
		"a large sourcestest.Document":  {want: "more than", pages: map[string]string{now + "index.json": index2(entry2("triage", "skill-md", "x", "")), now + "x": strings.Repeat("x", maxDocument+1)}},
		"a large index":                 {want: "more than", pages: map[string]string{now + "index.json": strings.Repeat(" ", maxIndex+1)}},
	} {
		t.Run(name, func(t *testing.T) {
			at := site(t, tt.pages)
			if tt.path == "" {
				tt.path = "/"
			}
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			s, err := Open(t.Context(), sourcestest.Here(), sourcestest.Parse(t, at+tt.path))
			if err == nil {
				var found []sources.Pack
				if found, err = sources.Survey(t.Context(), s, ""); err == nil {
					_, _, err = sourcestest.FillIn(t.Context(), filepath.Join(t.TempDir(), "x"), s, found[0].Path)
				}
				_ = s.Close()
			}
			if err == nil || tt.pin && !errors.As(err, new(*sources.PinError)) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q (pin %v)", err, tt.want, tt.pin)
			}
			if left, _ := os.ReadDir(temp); len(left) > 0 {
				t.Errorf("%s is left", left[0].Name())
			}
		})
	}
}

// A server that disconnects or stalls leaves nothing behind.
func TestSlowSite(t *testing.T) {
	packed := upstream.TarGz(t, upstream.Files{"SKILL.md": sourcestest.Document})
	arrived := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(packed)))
		_, _ = w.Write(packed[:len(packed)-10])
		if r.URL.Path == "/cut.tgz" {
			panic(http.ErrAbortHandler)
		}
		_ = http.NewResponseController(w).Flush()
		close(arrived)
		<-r.Context().Done()
	}))
	defer server.Close()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	if _, err := Open(t.Context(), sourcestest.Here(), sourcestest.Parse(t, server.URL+"/cut.tgz")); err == nil {
		t.Error("a cut archive was taken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := Open(ctx, sourcestest.Here(), sourcestest.Parse(t, server.URL+"/slow.tgz")); !errors.Is(err, context.Canceled) {
		t.Errorf("a server that does not go on: %v, want context.Canceled", err)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("%s is left", left[0].Name())
	}
}

// writeIndex writes a site for all packs of a source, as the command does.
func writeIndex(t *testing.T, s sources.Snapshot, out string) ([]Entry, error) {
	found, err := sources.Survey(t.Context(), s, "")
	if err != nil {
		return nil, err
	}
	var all []*sources.Bundle
	for _, p := range found {
		b, err := sources.NewBundle(t.Context(), s, p.Path)
		if err != nil {
			return nil, err
		}
		defer b.Close()
		all = append(all, b)
	}
	return Write(s, all, nil, out)
}

// A written site can be read, is identical when written again, and does not replace
// others' files.
func TestWrite(t *testing.T) {
	dir := filepath.Dir(sourcestest.Pack(t))
	if err := os.MkdirAll(filepath.Join(dir, "group", "one"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "group", "one", "SKILL.md"), []byte(strings.ReplaceAll(sourcestest.Document, "triage", "one")), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "site")
	var first map[string]string
	for range 2 {
		if _, err := writeIndex(t, sourcestest.Open(t, dir), out); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		err := filepath.WalkDir(out, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(p)
			files[strings.TrimPrefix(p, out)] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = files
			continue
		}
		for name, data := range first {
			if files[name] != data {
				t.Errorf("%s differs the second time", name)
			}
		}
		if len(files) != 4 || len(first) != 4 { // the index, the mark, an archive and a sourcestest.Document
			t.Errorf("%d and %d files", len(first), len(files))
		}
	}
	server := httptest.NewServer(http.FileServer(http.Dir(out)))
	defer server.Close()
	s, err := Open(t.Context(), sourcestest.Here(), sourcestest.Parse(t, server.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, from := range map[string]string{"triage": "triage", "one": "group/one"} {
		got, _, err := sourcestest.Fill(t, s, name)
		if err != nil {
			t.Fatal(err)
		}
		want, _, err := sourcestest.Fill(t, sourcestest.Open(t, dir), from)
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest() != want.Digest() {
			t.Errorf("%s: %q came back, want %q", name, sourcestest.Paths(got), sourcestest.Paths(want))
		}
	}

	if _, err := writeIndex(t, sourcestest.Open(t, dir), filepath.Join(dir, "triage", "site")); err == nil {
		t.Error("a site was written into a pack")
	}
	other := t.TempDir()
	mine := filepath.Join(other, wellKnown, "mine")
	if err := errors.Join(os.MkdirAll(filepath.Dir(mine), 0o700), os.WriteFile(mine, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := writeIndex(t, sourcestest.Open(t, dir), other); err == nil {
		t.Error("somebody's folder was replaced")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "again"), os.DirFS(filepath.Join(dir, "triage"))); err != nil {
		t.Fatal(err)
	}
	if _, err := writeIndex(t, sourcestest.Open(t, dir), out); err == nil || !strings.Contains(err.Error(), "same name") {
		t.Errorf("two packs of one name: %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(out, wellKnown, "index.json")); err != nil || string(data) != first["/"+wellKnown+"/index.json"] {
		t.Errorf("the site changed: %v", err)
	}
}

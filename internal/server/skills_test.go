package server

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/pages"
	"github.com/packs-mcp/packs-mcp/internal/server/resources"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// The limits of a skill, by the extension.
const (
	skillFiles = 512
	skillBytes = 16 << 20
)

func sumOf(data string) string {
	sum := sha256.Sum256([]byte(data))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Declared in both eras, with the methods it commits to and resources.
func TestSkillsDeclared(t *testing.T) {
	w := newWorld(t, shelf)
	for era, caps := range map[string]any{
		"modern": result(t, w.modern("server/discover", nil))["capabilities"],
		"legacy": w.initialize()["capabilities"],
	} {
		c := caps.(map[string]any)
		want := map[string]any{
			resources.ExtensionSkills:    map[string]any{"directoryRead": true},
			"io.modelcontextprotocol/ui": map[string]any{"mimeTypes": []any{"text/html;profile=mcp-app"}, "elicitation": map[string]any{}},
		}
		if diff := cmp.Diff(want, c["extensions"]); diff != "" {
			t.Errorf("%s: extensions (-want +got):\n%s", era, diff)
		}
		if diff := cmp.Diff(map[string]any{"listChanged": true, "subscribe": true}, c["resources"]); diff != "" {
			t.Errorf("%s: resources (-want +got):\n%s", era, diff)
		}
	}
}

// An entry has every key of the frontmatter, and every file with the digest of its
// current bytes. Nothing else is a skill.
func TestSkillsList(t *testing.T) {
	w := newWorld(t, shelf)
	w.put("acme/refunds/more/crlf.txt", "\ufeffone\r\n", 0o644)
	w.put("acme/refunds/scripts/run.sh", "#!/bin/sh\n", 0o755)
	w.put("acme/refunds/inner/SKILL.md", "---\nname: inner-one\ndescription: Nested.\n---\n", 0o644)
	w.initialize()
	entries, _ := w.all("skills/list", "skills", nil)
	if got, want := field(entries, "uri"), []string{"skill://acme/refunds/SKILL.md", "skill://notes/inner/SKILL.md"}; !slices.Equal(got, want) {
		t.Fatalf("skills = %q, want %q", got, want)
	}
	e := entries[0]
	if diff := cmp.Diff(map[string]any{
		"name": "refunds", "description": "Refunds customers.", "license": "MIT", "metadata": map[string]any{"version": "1.0"},
	}, e["frontmatter"]); diff != "" {
		t.Errorf("frontmatter (-want +got):\n%s", diff)
	}
	var want []map[string]any
	root := filepath.Join(w.root, "acme", "refunds")
	for _, name := range []string{
		"SKILL.md", "docs/deep/er.txt", "docs/policy.md", "inner/SKILL.md", "more/crlf.txt", "odd name%20#1.txt", "scripts/run.sh",
	} {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, map[string]any{
			"uri": address.URI{Scheme: address.SchemeSkill, Path: "acme/refunds/" + name}.String(), "digest": sumOf(string(data)), "size": float64(len(data)),
		})
	}
	if diff := cmp.Diff(want, objects(e["resources"])); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	// skills/get returns the same for this skill, and nothing for others.
	got := result(t, w.request("skills/get", map[string]any{"uri": "skill://acme/refunds/SKILL.md"}))
	if diff := cmp.Diff(map[string]any{"skill": e}, got); diff != "" {
		t.Errorf("skills/get (-want +got):\n%s", diff)
	}
	modern := result(t, w.modern("skills/get", map[string]any{"uri": "skill://acme/refunds/SKILL.md"}))
	delete(modern, "_meta")
	if diff := cmp.Diff(map[string]any{"skill": e, "resultType": "complete", "ttlMs": 0.0, "cacheScope": "private"}, modern); diff != "" {
		t.Errorf("skills/get of 2026-07-28 (-want +got):\n%s", diff)
	}
	for _, uri := range []string{"skill://acme/refunds", "skill://acme/refunds/docs/policy.md", "skill://acme/refunds/inner/SKILL.md", "pack://notes/README.md", "pack://slips/SKILL.md", "skill://slips/SKILL.md", offer.IndexURI} {
		if code, _ := w.refused(false, "skills/get", map[string]any{"uri": uri}); code != -32602 {
			t.Errorf("skills/get %s: %d, want -32602", uri, code)
		}
	}
	// A list is metadata: it is recorded, and nobody is asked.
	if len(w.asked) != 0 {
		t.Errorf("skills/list asked %q", w.asked)
	}
	for _, e := range w.entries() {
		if e.Event == audit.EventRefusal && e.Tool == "skills/get" && e.Code == toolerr.CodeNotFound {
			continue // of files that do not exist
		}
		if e.Kind != "list" || e.Tool != "skills/list" && e.Tool != "skills/get" {
			t.Errorf("the log has %+v, want metadata only", e)
		}
	}
	// The next answer shows an edit.
	w.put("acme/refunds/SKILL.md", "---\nname: refunds\ndescription: Otherwise.\nnew: [1]\n---\n", 0o644)
	entries, _ = w.all("skills/list", "skills", nil)
	if diff := cmp.Diff(map[string]any{"name": "refunds", "description": "Otherwise.", "new": []any{1.0}}, entries[0]["frontmatter"]); diff != "" {
		t.Errorf("frontmatter after an edit (-want +got):\n%s", diff)
	}
	w.put("acme/refunds/SKILL.md", "---\nname: other\ndescription: Otherwise.\n---\n", 0o644)
	if entries, _ = w.all("skills/list", "skills", nil); len(entries) != 1 {
		t.Errorf("a skill whose name is no longer that of its folder is listed: %v", field(entries, "uri"))
	}
}

// Skills that break a rule of the extension are left out, which is logged once. The
// rest is served.
func TestSkillsLeftOut(t *testing.T) {
	skill := func(name, more string) string {
		return fmt.Sprintf("---\nname: %s\ndescription: About %s.\n%s---\n", name, name, more)
	}
	w := newWorld(t, "-- fine/SKILL.md --\n"+skill("fine", ""))
	for i := range skillFiles - 1 {
		w.put(fmt.Sprintf("fine/d%d/f", i), "", 0o644) // as many files as are allowed
	}
	w.put("many/SKILL.md", skill("many", ""), 0o644)
	for i := range skillFiles {
		w.put(fmt.Sprintf("many/f%d", i), "", 0o644)
	}
	w.put("heavy/SKILL.md", skill("heavy", ""), 0o644)
	w.put("heavy/big.bin", strings.Repeat("x", skillBytes), 0o644)
	w.put("exact/SKILL.md", skill("exact", ""), 0o644)
	w.put("exact/big.bin", strings.Repeat("x", skillBytes-len(skill("exact", ""))), 0o644)
	w.put("wordy/SKILL.md", "---\nname: wordy\ndescription: "+strings.Repeat("ä", 1025)+"\n---\n", 0o644)
	w.put("terse/SKILL.md", "---\nname: terse\ndescription: "+strings.Repeat("ä", 1024)+"\n---\n", 0o644)
	w.put("twice/SKILL.md", skill("twice", "a: 1\na: 2\n"), 0o644)
	w.put("number/SKILL.md", "---\nname: 7\ndescription: A number.\n---\n", 0o644)
	w.put("lower/skill.md", skill("lower", ""), 0o644)
	w.put("readme/README.md", skill("readme", ""), 0o644)
	w.put("folder/SKILL.md", skill("Another-Name", ""), 0o644)
	if err := w.lib.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.initialize()
	for range 2 {
		entries, _ := w.all("skills/list", "skills", nil)
		want := []string{"skill://exact/SKILL.md", "skill://fine/SKILL.md", "skill://terse/SKILL.md"}
		if got := field(entries, "uri"); !slices.Equal(got, want) {
			t.Errorf("skills = %q, want %q", got, want)
		}
	}
	for _, id := range []string{"many", "heavy", "wordy"} {
		if n := strings.Count(w.log.String(), "pack="+id); n != 1 {
			t.Errorf("the log says %d times why %s is left out, want once", n, id)
		}
	}
	// A skill that is not listed can be requested, if it is within the limits.
	result(t, w.request("skills/get", map[string]any{"uri": "skill://wordy/SKILL.md"}))
	for _, uri := range []string{"skill://many/SKILL.md", "skill://heavy/SKILL.md"} {
		if code, _ := w.refused(false, "skills/get", map[string]any{"uri": uri}); code != -32602 {
			t.Errorf("skills/get %s: %d, want -32602", uri, code)
		}
	}
	resources, _ := w.all("resources/list", "resources", nil)
	if got := field(resources, "uri"); len(got) != 12 || !slices.Contains(got, "pack://lower/skill.md") || !slices.Contains(got, "skill://many/SKILL.md") {
		t.Errorf("resources = %q, want every pack's document", got)
	}
}

// If a document grew after the packs were found, its frontmatter has the same bound
// as then: lists never ask, and parsed YAML takes much more memory than its file.
func TestSkillThatGrew(t *testing.T) {
	const limit = 1000
	grown := func(more int) string {
		block := "name: triage\ndescription: Triage incidents.\nx: "
		return "---\n" + block + strings.Repeat("y", limit+more-len(block)-1) + "\n---\n"
	}
	w := newWorld(t, triage, limited(Limits{Frontmatter: limit}))
	w.initialize()
	w.put("triage/SKILL.md", grown(0), 0o644)
	if entries, _ := w.all("skills/list", "skills", nil); len(entries) != 1 {
		t.Errorf("with a frontmatter of %d bytes there are %d skills, want one", limit, len(entries))
	}
	w.put("triage/SKILL.md", grown(1), 0o644)
	if entries, _ := w.all("skills/list", "skills", nil); len(entries) != 0 {
		t.Errorf("with a byte more there are %d skills, want none", len(entries))
	}
	if code, _ := w.refused(false, "skills/get", map[string]any{"uri": "skill://triage/SKILL.md"}); code != wire.CodeInvalidParams {
		t.Errorf("skills/get: %d, want %d", code, wire.CodeInvalidParams)
	}
}

// A page ends after so many bytes, between two entries.
func TestSkillsPageBytes(t *testing.T) {
	w := newWorld(t, "")
	const packs = 6
	for p := range packs {
		w.put(fmt.Sprintf("p%d/SKILL.md", p), fmt.Sprintf("---\nname: p%d\ndescription: Many files.\n---\n", p), 0o644)
		for i := range skillFiles - 1 {
			w.put(fmt.Sprintf("p%d/f%03d", p, i), "", 0o644)
		}
	}
	if err := w.lib.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.initialize()
	entries, pages := w.all("skills/list", "skills", nil)
	if len(entries) != packs || pages < 2 || pages >= packs {
		t.Errorf("%d skills on %d pages, want %d on a few", len(entries), pages, packs)
	}
	for _, e := range entries {
		if n := len(objects(e["resources"])); n != skillFiles {
			t.Errorf("%v has %d files, want all %d", e["uri"], n, skillFiles)
		}
	}
}

// Only direct children, folders marked as such, and the entry document under its
// pack's name.
func TestDirectoryRead(t *testing.T) {
	w := newWorld(t, shelf)
	w.answer = decide("chat")
	w.initialize()
	children := func(uri string) []string {
		all, _ := w.all("resources/directory/read", "resources", map[string]any{"uri": uri})
		var got []string
		for _, r := range all {
			size := "-"
			if n, ok := r["size"].(float64); ok {
				size = fmt.Sprint(n)
			}
			got = append(got, strings.TrimSpace(fmt.Sprintf("%v %v %v %s", r["uri"], r["name"], r["mimeType"], size)))
		}
		return got
	}
	for uri, want := range map[string][]string{
		"skill://acme/refunds": {
			"skill://acme/refunds/SKILL.md refunds text/markdown 125",
			"skill://acme/refunds/docs docs inode/directory -",
			"skill://acme/refunds/odd%20name%2520%231.txt odd name%20#1.txt text/plain 4",
		},
		"skill://acme/refunds/docs": {
			"skill://acme/refunds/docs/deep deep inode/directory -",
			"skill://acme/refunds/docs/policy.md policy.md text/markdown 13",
		},
		"skill://acme/refunds/docs/deep": {"skill://acme/refunds/docs/deep/er.txt er.txt text/plain 8"},
		"pack://notes": {
			"pack://notes/README.md notes text/markdown 67",
			"pack://notes/data.csv data.csv text/csv 4",
			"pack://notes/inner inner inode/directory -",
		},
		"pack://lone": {"pack://lone/lone.tool.json lone application/json 151"},
	} {
		if diff := cmp.Diff(want, children(uri)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", uri, diff)
		}
	}
	for _, uri := range []string{"skill://acme/refunds/SKILL.md", "skill://acme/refunds/nothing", "skill://acme", offer.IndexURI, "skill://acme/refunds/_manifest", "skill://acme/refunds/"} {
		if code, _ := w.refused(false, "resources/directory/read", map[string]any{"uri": uri}); code != -32602 {
			t.Errorf("%s: %d, want -32602", uri, code)
		}
	}
	// By pages.
	for i := range pages.Size + 5 {
		w.put(fmt.Sprintf("acme/refunds/docs/n%03d.txt", i), "", 0o644)
	}
	all, n := w.all("resources/directory/read", "resources", map[string]any{"uri": "skill://acme/refunds/docs"})
	if len(all) != pages.Size+7 || n != 2 {
		t.Errorf("%d children on %d pages, want %d on 2", len(all), n, pages.Size+7)
	}
	cursor := result(t, w.request("resources/directory/read", map[string]any{"uri": "skill://acme/refunds/docs"}))["nextCursor"]
	if code, _ := w.refused(false, "resources/directory/read", map[string]any{"uri": "skill://acme/refunds", "cursor": cursor}); code != -32602 {
		t.Errorf("the cursor of another folder: %d, want -32602", code)
	}
	// It is a read: an older client shows a question in its form.
	if !says(w.asked[0], "List the files of pack") && !says(w.asked[0], "from pack") {
		t.Errorf("the first question is %q, want one about a pack's files", w.asked[0])
	}
}

// The older forms, which need no question either.
func TestSkillIndexAndManifest(t *testing.T) {
	w := newWorld(t, shelf)
	w.initialize()
	decode := func(uri string) map[string]any {
		t.Helper()
		got := w.read(uri)
		if got["mimeType"] != "application/json" {
			t.Errorf("%s is %v", uri, got["mimeType"])
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(got["text"].(string)), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	document := func(name string) string {
		data, err := os.ReadFile(filepath.Join(w.root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if diff := cmp.Diff(map[string]any{
		"$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json",
		"skills": []any{
			map[string]any{"name": "refunds", "type": "skill-md", "description": "Refunds customers.", "url": "skill://acme/refunds/SKILL.md", "digest": sumOf(document("acme/refunds/SKILL.md"))},
			map[string]any{"name": "inner", "type": "skill-md", "description": "A skill inside a pack.", "url": "skill://notes/inner/SKILL.md", "digest": sumOf(document("notes/inner/SKILL.md"))},
		},
	}, decode(offer.IndexURI)); diff != "" {
		t.Errorf("the index (-want +got):\n%s", diff)
	}
	inner := document("notes/inner/SKILL.md")
	if diff := cmp.Diff(map[string]any{
		"skill": "inner", "files": []any{map[string]any{"path": "SKILL.md", "size": float64(len(inner)), "hash": sumOf(inner)}},
	}, decode("skill://notes/inner/_manifest")); diff != "" {
		t.Errorf("the manifest (-want +got):\n%s", diff)
	}
	if len(w.asked) != 0 {
		t.Errorf("metadata asked %q", w.asked)
	}
	// A file of that name takes precedence, and is a file like any other.
	w.put("notes/inner/_manifest", "mine", 0o644)
	if code, _ := w.refused(false, "resources/read", map[string]any{"uri": "skill://notes/inner/_manifest"}); code != toolerr.RPCNotGiven {
		t.Errorf("a file called _manifest: %d, want that it is not given unasked", code)
	}
}

// allowed opens reading and opening packs, as a user's rules can.
func allowed(s *setup) {
	s.gate.Rules = []rules.Rule{{Effect: rules.Allow, Kinds: []string{"read", "open"}, Where: "config.yaml:1"}}
}

// Over real packs: every skill's manifest is complete, and every file has the bytes
// whose digest the manifest has.
func TestSkillsOfTheCorpus(t *testing.T) {
	archive := filepath.Join("..", "..", "..", "shared", "corpora", "packs.tar.gz")
	f, err := os.Open(archive)
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "corpora") {
			t.Fatalf("corpora: required by PACKS_MCP_REQUIRE: %v", err)
		}
		t.Skip("corpora: the archive of real packs is not there")
	}
	defer f.Close()
	w := newWorld(t, "", allowed)
	unpack(t, f, w.root)
	if err := w.lib.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.initialize()
	entries, _ := w.all("skills/list", "skills", nil)
	files := 0
	for _, e := range entries {
		uri := e["uri"].(string)
		root := strings.TrimSuffix(uri, address.SkillFile)
		name := e["frontmatter"].(map[string]any)["name"]
		if !strings.HasSuffix(root, "/"+fmt.Sprint(name)+"/") {
			t.Errorf("%s: the frontmatter has the name %v", uri, name)
		}
		for _, r := range objects(e["resources"]) {
			files++
			at := r["uri"].(string)
			got := w.read(at)
			text, ok := got["text"].(string)
			if !ok {
				raw, err := base64.StdEncoding.DecodeString(got["blob"].(string))
				if err != nil {
					t.Fatal(err)
				}
				text = string(raw)
			}
			if r["digest"] != sumOf(text) || r["size"] != float64(len(text)) || !strings.HasPrefix(at, root) {
				t.Errorf("%s does not read as its manifest says", at)
			}
		}
	}
	if len(entries) < 200 || files < 1000 {
		t.Errorf("%d skills with %d files, want those of the corpus", len(entries), files)
	}
}

// unpack writes the regular files of an archive below dir.
func unpack(t *testing.T, r io.Reader, dir string) {
	t.Helper()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	for a := tar.NewReader(z); ; {
		h, err := a.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || !filepath.IsLocal(filepath.FromSlash(h.Name)) {
			continue
		}
		_, name, _ := strings.Cut(h.Name, "/") // without the archive's own folder
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(a)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

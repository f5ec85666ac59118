package rulebook

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/sourcestest"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
)

// serve serves rulebooks as Stakpak's API does.
func serve(t *testing.T, all ...sources.Rulebook) *web.Access {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var list struct {
			Results []sources.ListedRulebook `json:"results"`
		}
		for _, b := range all {
			if b.Visibility == "PRIVATE" && r.Header.Get("Authorization") != "Bearer key" {
				continue
			}
			list.Results = append(list.Results, b.ListedRulebook)
			if r.URL.EscapedPath() == "/base/v1/rules/"+escaped(b.URI) {
				_ = json.NewEncoder(w).Encode(b)
				return
			}
		}
		if r.URL.Path != "/base/v1/rules" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(server.Close)
	w := sourcestest.Here()
	w.Rulebooks = server.URL + "/base"
	return w
}

func rulebook(uri, description, content string, tags ...string) sources.Rulebook {
	return sources.Rulebook{ListedRulebook: sources.ListedRulebook{ID: "id-" + uri, URI: uri, Description: description, Visibility: "PUBLIC", Tags: tags, CreatedAt: "2026-01-01T00:00:00Z"}, Content: content}
}

func TestRulebooks(t *testing.T) {
	private := rulebook("stakpak://acme.org/secret.md", "Hidden.", "x")
	private.Visibility = "PRIVATE"
	w := serve(t,
		rulebook("stakpak://acme.org/security/Base Line.md", "Says: \"no\"\n# é \u2028\x07", "# Rules\n\n---\nname: evil\n---\n\n", "a", "b: c"),
		rulebook("stakpak://acme.org/x/same", "One.", "1"), rulebook("stakpak://acme.org/y/same.md", "Two.", "2"), private, rulebook("..", "Dots.", "d"))
	snap, err := Open(t.Context(), w, sourcestest.Parse(t, "stakpak:"))
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	found, err := sources.Survey(t.Context(), snap, "")
	if err != nil || len(found) != 4 || found[0].Name != "base-line" || !found[0].Valid || found[1].Valid || found[2].Valid {
		t.Fatalf("packs = %+v, %v, want base-line and two with the same name", found, err)
	}
	for _, address := range []string{"stakpak://acme.org/security/Base Line.md", "stakpak:stakpak://acme.org/security/Base Line.md"} {
		s, err := Open(t.Context(), w, sourcestest.Parse(t, address))
		if err != nil {
			t.Fatal(err)
		}
		if again := sourcestest.Parse(t, s.Resolved()); again.At != "stakpak://acme.org/security/Base Line.md" {
			t.Errorf("%s is resolved as %s", address, s.Resolved())
		}
		one, err := sources.Survey(t.Context(), s, "")
		if err != nil || len(one) != 1 || one[0].Name != "base-line" || !one[0].Valid || !strings.HasPrefix(one[0].Description, `Says: "no"`) {
			t.Fatalf("packs = %+v, %v", one, err)
		}
		tree, _, err := sourcestest.Fill(t, s, "")
		if err != nil {
			t.Fatal(err)
		}
		all, _, err := sourcestest.Fill(t, snap, "base-line")
		if err != nil || all.Digest() != tree.Digest() {
			t.Errorf("by the list, it has another digest: %v", err)
		}
		if pin, err := sources.PinOf(t.Context(), snap, "base-line"); err != nil || pin != s.Pin() {
			t.Errorf("by the list, its pin is %s, %v, want %s", pin, err, s.Pin())
		}
	}
	if _, err := Open(t.Context(), w, sourcestest.Parse(t, "stakpak://acme.org/secret.md")); err == nil || !strings.Contains(err.Error(), "there is no rulebook") {
		t.Errorf("a private rulebook: %v", err)
	}
	w.Credentials = func(string) (string, string) { return "", "key" }
	if s, err := Open(t.Context(), w, sourcestest.Parse(t, "stakpak://acme.org/secret.md")); err != nil {
		t.Errorf("a private rulebook, with the key: %v", err)
	} else if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := load(t.Context(), w, ".."); err != nil {
		t.Errorf("a rulebook whose URI is two dots: %v", err)
	}
	listed, _, err := list(t.Context(), w)
	if err != nil || len(listed) != 5 || listed[0].Skill().Content != nil || listed[0].Skill().Label() != "[rulebook]" {
		t.Errorf("listed = %+v, %v", listed, err)
	}
	if _, err := Open(t.Context(), &web.Access{}, sourcestest.Parse(t, "stakpak:x")); err == nil {
		t.Error("rulebooks came from nowhere")
	}
}

func TestHostileRulebooks(t *testing.T) {
	for name, tt := range map[string]struct{ answer, want string }{
		"another rulebook": {`{"uri":"other","content":"x"}`, "answers with"},
		"no JSON":          {`<html>`, "the rulebook"},
		"content twice":    {`{"uri":"x","content":"x","Content":"y"}`, "twice"},
		"large":            {strings.Repeat(" ", maxRulebook+1), "more than"},
		"nothing":          {``, "the rulebook"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(tt.answer)) }))
		w := sourcestest.Here()
		w.Rulebooks = server.URL
		if _, err := Open(t.Context(), w, sourcestest.Parse(t, "stakpak:x")); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		server.Close()
	}
}

// The four conversions are those of one another.
func TestSkillConversions(t *testing.T) {
	b := rulebook("stakpak://acme.org/x", "One.", "content", "a")
	s := b.Skill()
	if back, err := s.Rulebook(); err != nil || !reflect.DeepEqual(back, b) {
		t.Errorf("Rulebook() = %+v, %v, want %+v", back, err, b)
	}
	if back, err := s.Listed(); err != nil || !reflect.DeepEqual(back, b.ListedRulebook) {
		t.Errorf("Listed() = %+v, %v, want %+v", back, err, b.ListedRulebook)
	}
	listed := b.ListedRulebook.Skill()
	if listed.Content != nil || !listed.IsRulebook() || listed.IsLocal() || listed.IsPak() {
		t.Errorf("skill = %+v", listed)
	}
	if _, err := listed.Rulebook(); !errors.Is(err, sources.ErrNoContent) {
		t.Errorf("a rulebook without content: %v", err)
	}
	for _, other := range []sources.Skill{{ID: "here"}, {ID: "pak", Source: sources.SkillSource{Provider: sources.PakProvider}}} {
		if _, err := other.Listed(); err == nil {
			t.Errorf("%s is a rulebook", other.Label())
		}
		if _, err := other.Rulebook(); err == nil {
			t.Errorf("%s is a rulebook", other.Label())
		}
	}
}

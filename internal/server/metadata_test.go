package server

import (
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What clients show: the server has a title, a page and a small icon; tools, prompts,
// resources and templates have titles. Only the server has an icon: icons for all
// would show the same picture many times, and a pack's own icon could be anything.
func TestTitlesAndIcons(t *testing.T) {
	w := newWorld(t, triage+shelf)
	w.answer = decide("once")
	old := w.initialize()["serverInfo"].(map[string]any)
	w.enable("triage")
	newer := result(t, w.modern("server/discover", nil))["_meta"].(map[string]any)["io.modelcontextprotocol/serverInfo"].(map[string]any)
	if diff := cmp.Diff(old, newer); diff != "" {
		t.Errorf("the server says two things of itself (-older +newer):\n%s", diff)
	}
	if old["title"] == "" || !strings.HasPrefix(fmt.Sprint(old["websiteUrl"]), "https://") {
		t.Errorf("serverInfo = %v, want a title and a page", old)
	}
	pictures := objects(old["icons"])
	if len(pictures) != 1 || pictures[0]["mimeType"] != "image/svg+xml" {
		t.Fatalf("the icons are %v, want one", pictures)
	}
	data, ok := strings.CutPrefix(pictures[0]["src"].(string), "data:image/svg+xml;base64,")
	svg, err := base64.StdEncoding.DecodeString(data)
	if !ok || err != nil || len(svg) > 1024 {
		t.Errorf("the icon %q has %d bytes, %v, want a data: URI with at most 1,024", pictures[0]["src"], len(svg), err)
	}
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the icon is no XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local != "svg" && e.Name.Local != "path" {
			t.Errorf("the icon has <%s>, want nothing but paths", e.Name.Local)
		}
	}
	for method, key := range map[string]string{"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"} {
		for _, modern := range []bool{false, true} {
			ask := w.request
			if modern {
				ask = w.modern
			}
			r := result(t, ask(method, nil))
			if modern {
				info := r["_meta"].(map[string]any)["io.modelcontextprotocol/serverInfo"].(map[string]any)
				if info["icons"] != nil {
					t.Errorf("%s: the icon is said again: %v", method, info)
				}
			}
			for _, entry := range objects(r[key]) {
				if title, _ := entry["title"].(string); title == "" || entry["icons"] != nil {
					t.Errorf("%s: %v has the title %q and the icons %v, want a title and no icons", method, entry["name"], title, entry["icons"])
				}
				if hints, ok := entry["annotations"].(map[string]any); key == "tools" && (!ok || hints["title"] != entry["title"]) {
					t.Errorf("%s: %v has two titles: %v and %v", method, entry["name"], entry["title"], hints["title"])
				}
			}
		}
	}
}

// Nothing that a chat sees may be cached: every result says so, also one that follows
// a question.
func TestNothingIsCached(t *testing.T) {
	w := newWorld(t, triage+shelf)
	for method, params := range map[string]map[string]any{
		"server/discover": nil, "tools/list": nil, "prompts/list": nil, "resources/list": nil, "resources/templates/list": nil, "skills/list": nil,
		"resources/read": {"uri": "skill://index.json"},
	} {
		r := result(t, w.modern(method, params))
		if r["ttlMs"] != 0.0 || r["cacheScope"] != "private" {
			t.Errorf("%s: ttlMs %v, cacheScope %v, want 0 and private", method, r["ttlMs"], r["cacheScope"])
		}
	}
	w.initialize()
	for _, method := range []string{"tools/list", "prompts/list", "resources/list", "skills/list"} {
		if r := result(t, w.request(method, nil)); r["ttlMs"] != nil || r["cacheScope"] != nil {
			t.Errorf("%s of the older era has %v and %v, which that era does not know", method, r["ttlMs"], r["cacheScope"])
		}
	}
}

// The list is the same whatever was enabled first, and each time it is requested.
func TestOrderOfTools(t *testing.T) {
	var lists [][]string
	ids := []string{"b", "a", "triage"}
	for range 2 {
		w := newWorld(t, triage+toolPack("a", "y", "x")+toolPack("b", "z", "q"))
		w.answer = decide("once")
		w.initialize()
		for _, id := range ids {
			w.enable(id)
		}
		for range 3 {
			lists = append(lists, w.listed())
		}
		slices.Reverse(ids)
	}
	for _, list := range lists[1:] {
		if diff := cmp.Diff(lists[0], list); diff != "" {
			t.Errorf("the lists differ (-first +another):\n%s", diff)
		}
	}
	if own := lists[0][6:]; !slices.IsSorted(own) || !slices.IsSorted(lists[0][:6]) {
		t.Errorf("the tools are %q, want them by name", lists[0])
	}
}

// A client that asks for an unknown version gets one that we support; if it wants
// another, it disconnects.
func TestInitializeVersions(t *testing.T) {
	for asked, want := range map[string]string{
		`"2024-11-05"`: "2024-11-05", `"2025-03-26"`: "2025-03-26", `"2025-06-18"`: "2025-06-18", `"2025-11-25"`: "2025-11-25",
		`"2099-01-01"`: "2025-11-25", `"1999-01-01"`: "2025-11-25", `"latest"`: "2025-11-25", `"2026-07-28"`: "2025-11-25",
		`""`: "2025-03-26", // the protocol's default
	} {
		onEveryLane(t, "", func(t *testing.T, l *lane) {
			if l.modern {
				return // this era has no initialize
			}
			l.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":` + asked + `,"capabilities":{},"clientInfo":{"name":"lane","version":"1"}}}`)
			r, _ := l.receive()["result"].(map[string]any)
			if r["protocolVersion"] != want {
				t.Errorf("initialize with %s = %v, want %s", asked, r["protocolVersion"], want)
			}
			l.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)()
			l.serves("initialize")
		})
	}
}

package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/server/httpd"
	"github.com/packs-mcp/packs-mcp/internal/server/lists"
	"github.com/packs-mcp/packs-mcp/internal/server/servertest"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// Fifty chats at once share nothing, in both eras and all transports, even if some
// have the same credential: no tools, grants, workspaces, resources or notifications.
func TestHTTPFiftyChats(t *testing.T) {
	needShell(t)
	const n = 50
	w := newWorld(t, triage, lookOften)
	people := make([]httpd.Credential, n)
	for i := range people {
		people[i] = httpd.Credential{Token: fmt.Sprintf("token-of-person-%04d", i), Person: fmt.Sprintf("person-%d", i)}
	}
	s := newSite(t, w, func(o *httpd.Options) { o.Credentials = people })
	var mu sync.Mutex
	var workspaces []string
	news := make([][]*servertest.Stream, n)
	kept := make([][]map[string]any, n) // what came on them
	want := make([]map[string]bool, n)  // :: method and URI → whether it should come
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			who := people[i]
			var c *servertest.Client
			switch i % 3 {
			case 0:
				c = s.Newer(who.Token, decide("chat"))
			case 1:
				c = s.Older(who.Token, decide("chat"))
			default: // a session of its own with another chat's token
				who = people[i-1]
				c = s.Older(who.Token, decide("chat"))
			}
			if got := len(c.Listed()); got != 6 {
				t.Errorf("chat %d begins with %d tools, want 6", i, got)
			}
			want[i] = make(map[string]bool)
			if c.Modern {
				all := c.Open("POST", "/mcp", map[string]any{"id": "news", "method": "subscriptions/listen", "params": withMeta(map[string]any{
					"notifications": map[string]any{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true},
				}, false)})
				all.Next()
				news[i] = append(news[i], all)
			} else {
				news[i] = append(news[i], c.Open("GET", "/mcp", nil))
			}
			// Half of them enable the tools; the others must not see that.
			c.OK("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
			enables := i%2 == 0
			if enables {
				c.OK("capability_packs_enable_tools", map[string]any{"pack_id": "triage"})
				ran := c.OK("triage__greet", map[string]any{"who": who.Person})
				if ran["stdout"] != "hello "+who.Person+"\n" {
					t.Errorf("chat %d ran %v", i, ran)
				}
				mu.Lock()
				mine := ran["workspace"].(string)
				workspaces = append(workspaces, mine)
				others := slices.DeleteFunc(slices.Clone(workspaces), func(h string) bool { return h == mine })
				mu.Unlock()
				run := map[string]any{"pack_id": "triage", "tool": "greet", "arguments": map[string]any{"who": "x"}, "workspace": "new"}
				second := c.OK("capability_packs_call_tool", run)["workspace"].(string)
				mu.Lock()
				workspaces = append(workspaces, second)
				mu.Unlock()
				handles := []string{mine, second}
				slices.Sort(handles)
				if got := handlesOf(c); !slices.Equal(got, handles) {
					t.Errorf("chat %d knows of the workspaces %q, want its own %q", i, got, handles)
				}
				for _, other := range others[:min(2, len(others))] {
					c.Fails("not_found", "capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": "made.txt", "workspace": other})
					run["workspace"] = other
					c.Fails("not_found", "capability_packs_call_tool", run)
					uri := "workspace://" + other + "/made.txt"
					for _, method := range []string{"resources/read", "resources/directory/read"} {
						if e, _ := c.Ask(method, map[string]any{"uri": strings.TrimSuffix(uri, map[bool]string{true: "", false: "/made.txt"}[method == "resources/read"])})["error"].(map[string]any); e == nil || e["code"] == float64(toolerr.RPCNotGiven) {
							t.Errorf("chat %d: %s of another's file = %v", i, method, e)
						}
					}
				}
				// News about its own file is its own.
				uri := "workspace://" + mine + "/made.txt"
				if got := contentsOf(t, c.Ask("resources/read", map[string]any{"uri": uri})); got["text"] != "made\n" {
					t.Errorf("chat %d has %v in its own workspace", i, got)
				}
				if c.Modern {
					l, got := listen(c, append([]string{uri}, uris(others)...)...)
					if !slices.Equal(got, []string{uri}) {
						t.Errorf("chat %d subscribed to %q, want its own file", i, got)
					}
					news[i] = append(news[i], l)
				} else {
					result(t, c.Ask("resources/subscribe", map[string]any{"uri": uri}))
					for _, other := range uris(others) {
						if c.Ask("resources/subscribe", map[string]any{"uri": other})["error"] == nil {
							t.Errorf("chat %d subscribed to another's file", i)
						}
					}
				}
				c.OK("triage__greet", map[string]any{"who": "again"})
				want[i]["notifications/resources/updated "+uri] = true
				want[i][lists.ToolsChanged] = true
			} else {
				c.Fails("not_enabled", "capability_packs_call_tool", map[string]any{"pack_id": "triage", "tool": "greet", "arguments": map[string]any{"who": "x"}})
				c.Fails("not_found", "capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": "made.txt"})
			}
			if got := slices.Contains(c.Listed(), "triage__greet"); got != enables {
				t.Errorf("chat %d lists the tool: %v, want %v", i, got, enables)
			}
			// A grant of this chat holds here, and only here was the question asked.
			asked := len(c.Asked)
			c.OK("capability_packs_open_docs", map[string]any{"pack_id": "triage"})
			if len(c.Asked) != asked {
				t.Errorf("chat %d is asked again", i)
			}
			for _, q := range c.Asked {
				if !says(q, `for: "`+who.Person+`", according`) {
					t.Errorf("chat %d is asked %q, want %s in it", i, q, who.Person)
				}
			}
			// What one chat attaches, and the lists that this changes, are its own.
			prompts := func() bool {
				return slices.Contains(field(objects(result(t, c.Ask("prompts/list", nil))["prompts"]), "name"), "triage")
			}
			documents := func() bool {
				return slices.Contains(field(objects(result(t, c.Ask("resources/list", nil))["resources"]), "uri"), "skill://triage/SKILL.md")
			}
			if !prompts() || !documents() {
				t.Errorf("chat %d has lost its pack", i)
			}
			if i%5 == 0 {
				message(t, c.Ask("prompts/get", map[string]any{"name": "detach", "arguments": map[string]any{"pack_id": "triage"}}))
				if prompts() || documents() {
					t.Errorf("chat %d has a pack that it detached", i)
				}
				for _, method := range everyList {
					want[i][method] = true
				}
			}
			if enables { // news about the file takes a while
				l := news[i][len(news[i])-1]
				for !slices.ContainsFunc(kept[i], func(m map[string]any) bool { return m["method"] == "notifications/resources/updated" }) {
					m := l.Next()
					if m == nil {
						t.Errorf("chat %d: the stream has ended", i)
						return
					}
					kept[i] = append(kept[i], m)
				}
			}
		})
	}
	wg.Wait()
	s.Close() // this ends each stream, after everything due was sent on it
	for i := range n {
		got := make(map[string]bool)
		for _, l := range news[i] {
			for m := l.Next(); m != nil; m = l.Next() {
				kept[i] = append(kept[i], m)
			}
		}
		for _, m := range kept[i] {
			if method, _ := m["method"].(string); method != "" {
				params, _ := m["params"].(map[string]any)
				uri, _ := params["uri"].(string)
				got[strings.TrimSpace(method+" "+uri)] = true
			}
		}
		if !maps.Equal(got, want[i]) {
			t.Errorf("chat %d heard %v, want %v", i, got, want[i])
		}
	}
	slices.Sort(workspaces)
	if got := len(slices.Compact(workspaces)); got != n {
		t.Errorf("%d workspaces, want %d", got, n)
	}
	for _, e := range w.entries() {
		if e.Caller == "" || e.Chat == "" {
			t.Fatalf("the log has a line without a person: %+v", e)
		}
	}
	for i, person := range people {
		if i%3 == 2 {
			continue
		}
		opened := 0
		for _, e := range w.entries() {
			if e.Kind == "open" && e.Caller == person.Person && e.Channel != "grant" {
				opened++
			}
		}
		if want := 1 + i%3; opened != want && i+1 < n {
			t.Errorf("%s was asked %d times to open, want %d: once in each session", person.Person, opened, want)
		}
	}
}

// handlesOf returns the handles of workspaces that a client can complete.
func handlesOf(c *servertest.Client) []string {
	c.T.Helper()
	r := result(c.T, c.Ask("completion/complete", map[string]any{
		"ref": map[string]any{"type": "ref/resource", "uri": templateWorkspace}, "argument": map[string]any{"name": "workspace", "value": ""},
	}))
	return texts(r["completion"].(map[string]any)["values"])
}

// uris returns the URIs of the file that programs make, in several workspaces.
func uris(handles []string) []string {
	var all []string
	for _, h := range handles[:min(2, len(handles))] {
		all = append(all, "workspace://"+h+"/made.txt")
	}
	return all
}

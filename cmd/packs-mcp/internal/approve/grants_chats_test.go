package approve

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
)

// announce announces a server of the same user, which answers with handler.
func (h *granted) announce(name string, handler http.HandlerFunc) {
	h.t.Helper()
	s := httptest.NewServer(handler)
	h.t.Cleanup(s.Close)
	data, err := json.Marshal(control.Announcement{
		Version: 2, PID: os.Getpid(), Server: name, Address: s.Listener.Addr().String(), Key: strings.Repeat("k", 43), Started: time.Now(), Project: "/home/ann/src/" + name,
	})
	if err == nil {
		err = os.MkdirAll(filepath.Join(h.home, "run"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(h.home, "run", "1-"+name+".json"), data, 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// chatServer answers with grants of chats, and records which are taken back.
func chatServer(revoked *[]string, grants ...control.ChatGrant) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/control/pending":
			_, _ = io.WriteString(w, `{"pending":[]}`)
		case "/control/grants":
			_ = json.NewEncoder(w).Encode(map[string]any{"grants": grants})
		case "/control/revoke":
			var in struct{ ID string }
			_ = json.NewDecoder(r.Body).Decode(&in)
			*revoked = append(*revoked, in.ID)
			_, _ = io.WriteString(w, `{}`)
		}
	}
}

func TestGrantsOfChats(t *testing.T) {
	some := newGranted(t, someGrants()...)
	at := time.Date(2025, 1, 3, 3, 4, 5, 0, time.UTC)
	use := control.ChatGrant{ID: "bbzz4444", Digest: "d", Since: at, Kind: "use", Pack: "triage", Dir: "/packs/triage", Covers: "using this pack", Chat: "chat-1", Client: "raw\x1b 1"}
	run := control.ChatGrant{ID: "zzzz5555", Digest: "e", Since: at, Kind: "run", Pack: "other", Tool: "go", Covers: "the tool", Chat: "chat-2"}
	world := func() (h *granted, revoked *[]string) {
		h, revoked = some.again(), new([]string)
		h.announce("shop", chatServer(revoked, use, run))
		return h, revoked
	}

	h, _ := world()
	status, out, problems := h.run("grants")
	for _, want := range []string{
		"bbzz4444  since " + grantTime(at) + "  use triage\n", `    in       the chat chat-1 of a client that calls itself "raw\\x1b 1" (pid `, ", shop)\n",
		"zzzz5555", "    in       the chat chat-2 of a client without a name (pid ", "AAAA1111",
	} {
		if !strings.Contains(out, want) || status != 0 || problems != "" {
			t.Errorf("grants = %d, %q, %s\nwant %q", status, problems, out, want)
		}
	}
	_, out, _ = h.run("grants", "--json", "--pack", "other")
	var listed struct{ Grants []listedGrant }
	if err := json.Unmarshal([]byte(out), &listed); err != nil || len(listed.Grants) != 1 || listed.Grants[0].Chat == nil || listed.Grants[0].Chat.ID != "chat-2" ||
		listed.Grants[0].Chat.Server != "shop" || listed.Grants[0].Chat.PID != os.Getpid() || listed.Grants[0].Chat.Project != "/home/ann/src/shop" {
		t.Errorf("grants --json = %v, %s", err, out)
	}

	for _, c := range []struct {
		args   []string
		status int
		out    string // in standard output and error
		gone   []string
		left   string
	}{
		{[]string{"zz"}, 0, "revoked zzzz5555 (run go of other, in a chat)\n", []string{"zzzz5555"}, "AAAA1111 BBBB2222 BBCC3333"},
		{[]string{"zz", "AAAA"}, 0, "revoked AAAA1111 (open triage)\nrevoked zzzz5555 (run go of other, in a chat)\n", []string{"zzzz5555"}, "BBBB2222 BBCC3333"},
		{[]string{"--pack", "other"}, 0, "revoked zzzz5555 ", []string{"zzzz5555"}, "AAAA1111 BBBB2222 BBCC3333"},
		{[]string{"--pack", "Triage"}, 0, "revoked bbzz4444 ", []string{"bbzz4444"}, "BBCC3333"},
		{[]string{"--all"}, 0, "revoked zzzz5555 ", []string{"bbzz4444", "zzzz5555"}, ""},
		{[]string{"BB"}, 1, `"BB" means 3 grants`, nil, "AAAA1111 BBBB2222 BBCC3333"},
		{[]string{"zz", "none"}, 1, `no grant "none"`, nil, "AAAA1111 BBBB2222 BBCC3333"},
	} {
		h, revoked := world()
		status, out, problems := h.run(append([]string{"revoke"}, c.args...)...)
		if status != c.status || !strings.Contains(out+problems, c.out) || !slices.Equal(*revoked, c.gone) || strings.Join(h.ids(), " ") != c.left {
			t.Errorf("revoke %q = %d, %q, %q, takes %q back in chats and leaves %q", c.args, status, out, problems, *revoked, h.ids())
		}
	}
}

// A server that does not answer is reported, and keeps nothing else from being listed
// or revoked.
func TestGrantsOfSilentServers(t *testing.T) {
	const holds = "error: one server of yours does not answer, so grants of its chats may hold\n"
	some := newGranted(t, someGrants()...)
	for says, handler := range map[string]http.HandlerFunc{
		"nothing": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"no grants": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/control/pending" {
				w.WriteHeader(http.StatusNotFound) // a server of an earlier version
			}
			_, _ = io.WriteString(w, `{"pending":[]}`)
		},
	} {
		world := func() *granted {
			h := some.again()
			h.announce("shop", handler)
			return h
		}
		h := world()
		if status, out, problems := h.run("grants", "--json"); status != 1 || strings.Count(out, `"id"`) != 3 || !strings.Contains(problems, holds) || !strings.Contains(problems, "warning: ") {
			t.Errorf("%s: grants = %d, %s, %s", says, status, out, problems)
		}
		if status, out, problems := h.run("revoke", "AAAA"); status != 0 || !strings.Contains(out, "revoked AAAA1111") || strings.Contains(problems, holds) {
			t.Errorf("%s: revoke of an id = %d, %s, %s", says, status, out, problems)
		}
		if status, _, problems := h.run("revoke", "zz"); status != 1 || !strings.Contains(problems, `no grant "zz"`) || !strings.Contains(problems, holds) {
			t.Errorf("%s: revoke of an id that is not known = %d, %s", says, status, problems)
		}
		if status, _, problems := h.run("revoke", "--all"); status != 1 || len(h.ids()) != 0 || !strings.Contains(problems, holds) {
			t.Errorf("%s: revoke --all = %d, %s, and leaves %q", says, status, problems, h.ids())
		}
	}

	// It is an error if a server does not take a grant back.
	h := some.again()
	list := chatServer(nil, control.ChatGrant{ID: "zzzz5555", Kind: "use", Pack: "other"})
	h.announce("shop", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/control/revoke" {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"error":{"problem":"internal","message":"it still holds"}}`)
			return
		}
		list(w, r)
	})
	if status, out, problems := h.run("revoke", "zz"); status != 1 || out != "" || !strings.Contains(problems, "error: revoking zzzz5555 of the server with pid ") || !strings.Contains(problems, "it still holds") {
		t.Errorf("revoke that a server refuses = %d, %q, %q", status, out, problems)
	}
}

// A grant of a chat that several servers have in common is listed, and revoked, once.
func TestChatOfSeveralServers(t *testing.T) {
	h, revoked := newGranted(t), new([]string)
	use := control.ChatGrant{ID: "bbzz4444", Digest: "d", Since: time.Date(2025, 1, 3, 3, 4, 5, 0, time.UTC), Kind: "use", Pack: "triage", Covers: "using this pack", Chat: "http-1"}
	h.announce("shop", chatServer(revoked, use))
	h.announce("mill", chatServer(revoked, use))
	if status, out, problems := h.run("grants"); status != 0 || problems != "" || strings.Count(out, "bbzz4444  since") != 1 {
		t.Errorf("grants = %d, %q, %s", status, problems, out)
	}
	if status, out, problems := h.run("revoke", "bbzz4444"); status != 0 || len(*revoked) != 1 {
		t.Errorf("revoke = %d, %q, %s, which revoked %q", status, problems, out, *revoked)
	}
}

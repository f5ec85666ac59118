//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
	"github.com/packs-mcp/packs-mcp/test/idp"
)

// A browser's session is good at every server that shares the store: for each step of
// logging in, for reading and answering, after its server was killed, and until it is ended
// at any of them.
func TestReplicasShareThePage(t *testing.T) {
	t.Cleanup(storetest.End)
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		packs := t.TempDir()
		plantPack(t, packs, "notes", "true\n")
		p, proxy := idp.Start(t), e.Proxy(t)
		address, lead := public(t)
		p.Redirect(address + "/approvals/callback")
		more := fmt.Sprintf("  public_url: %q\n  oidc: {issuer: %q, audience: %s, client: %s}\napprovers: [{who: [\"group:sre\"], not_self: true}]\n", address, p.Issuer, idp.Audience, idp.Audience)
		all := startReplicas(t, proxy.URL(), packs, more, 3)
		s := &publicServer{teamServer: &teamServer{t: t}, public: address, p: p}
		at := func(i int) { t.Helper(); lead(strings.TrimSuffix(all[i].url, "/mcp")) }

		ada := s.window()
		// Each step of logging in is at another server.
		login := func(b *window, person string) {
			t.Helper()
			at(0)
			answer := p.Login(person, b.leads()).String()
			at(1)
			if res, body := b.open(answer); res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/approvals/" {
				t.Fatalf("the callback is %s to %q: %s\n%s", res.Status, res.Header.Get("Location"), body, all[1].said())
			}
			if res, _ := s.window().open(answer); res.StatusCode != 400 {
				t.Errorf("the answer in another browser: %s", res.Status)
			}
			at(2)
			b.show()
		}
		login(ada, idp.Ada)
		called := make(chan string, 1)
		go func() {
			text, _ := all[0].call(adasToken, "capability_packs_open_docs", map[string]any{"pack_id": "notes"})
			called <- text
		}()
		at(1)
		lines := ada.events()
		code := waitFor(t, lines, `"code":"([^"]+)"`)[1]
		decision := `{"code":"` + code + `","decision":"once","values":{},"client_gone":false}`
		at(2)
		for name, header := range map[string][]string{
			"no second secret": {"X-Packs-Key", ""},
			"another secret":   {"X-Packs-Key", strings.Repeat("A", 52)},
			"a foreign page":   {"Origin", "https://evil.example"},
		} {
			if res, _ := ada.script("POST", "/approvals/decide", decision, header...); res.StatusCode != 403 {
				t.Errorf("%s: %s", name, res.Status)
			}
		}
		if res, body := ada.script("POST", "/approvals/decide", decision); res.StatusCode != 200 {
			t.Fatalf("answering at a third server: %s %s", res.Status, body)
		}
		if text := <-called; !strings.Contains(text, `"result"`) || strings.Contains(text, `"isError":true`) {
			t.Errorf("the call that was allowed: %s", text)
		}

		// Logging out at one ends the session, its streams and copies of its cookie at all.
		stolen := ada.session()
		at(0)
		if res, body := ada.script("POST", "/approvals/logout", "{}"); res.StatusCode != 200 {
			t.Fatalf("logging out: %s %s", res.Status, body)
		}
		for lines.Scan() { // the stream at another server ends
		}
		for i := range all {
			at(i)
			if res, _ := s.window().script("GET", "/approvals/events", "", "Cookie", stolen.Name+"="+stolen.Value, "X-Packs-Key", ada.key); res.StatusCode != 401 {
				t.Errorf("a stolen cookie after logging out, at server %d: %s", i, res.Status)
			}
		}
		ada.leads()
		// A cookie that a stranger planted does not become a session.
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		planted := strings.Repeat("planted-", 6)
		ada.client.Jar.SetCookies(u, []*http.Cookie{{Name: stolen.Name, Value: planted, Path: "/"}})
		login(ada, idp.Ada)
		if ada.session().Value == planted {
			t.Error("a planted cookie became a session")
		}

		// Taking back what a person answered ends the person's sessions, and nobody else's.
		grace := s.window()
		login(grace, idp.Grace)
		name := waitFor(t, grace.events(), `"person":"(grace@example\.com [0-9a-f]+)"`)[1]
		at(1)
		lines = ada.events()
		if out, err := all[2].command("approvals", "revoke", "--person", "ada@example.com"); err != nil {
			t.Fatalf("approvals revoke --person = %s, %v", out, err)
		}
		for lines.Scan() {
		}
		for i := range all {
			at(i)
			if res, _ := ada.script("GET", "/approvals/page.css", ""); res.StatusCode != 401 {
				t.Errorf("the session of a person whose answers were revoked, at server %d: %s", i, res.Status)
			}
			grace.show()
		}
		if res, body := ada.open(p.Login(idp.Ada, ada.leads()).String()); res.StatusCode != 403 || !strings.Contains(body, "Your access was revoked a moment ago") {
			t.Errorf("logging in at once: %s: %s", res.Status, body)
		}

		// A server that is killed takes no session with it. Without the store, nobody knows.
		if err := all[1].cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		at(2)
		grace.show()
		proxy.Cut()
		if res, body := grace.open("/approvals/"); res.StatusCode != 503 || !strings.Contains(body, "You cannot log in now") {
			t.Errorf("the page without the store: %s: %s", res.Status, body)
		}
		if res, body := grace.script("POST", "/approvals/logout", "{}"); res.StatusCode != 503 {
			t.Errorf("logging out without the store: %s: %s", res.Status, body)
		}
		proxy.Mend()
		for _, i := range []int{2, 0} { // each finds out by itself that the store is back
			at(i)
			await(t, "the page is there again", func() bool { res, _ := grace.open("/approvals/"); return res.StatusCode == 200 })
		}
		if out, err := all[2].command("approvals", "revoke", "--by", name); err != nil {
			t.Fatalf("approvals revoke --by = %s, %v", out, err)
		}
		grace.leads()
	})
}

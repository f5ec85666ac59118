//go:build unix

package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
	"github.com/packs-mcp/packs-mcp/test/idp"
)

// A kept answer stops counting when a later token shows that the person who gave it left
// the group that let them: for all calls and, with a store, at all servers. An older token,
// which still has the group, does not bring it back.
func TestAnswersOfALeaver(t *testing.T) {
	packs := t.TempDir()
	plantPack(t, packs, "notes", "true\n")
	open := func(g *team, token, answer string) string {
		t.Helper()
		form, params := map[string]any{"elicitation": map[string]any{}}, map[string]any{"arguments": map[string]any{"pack_id": "notes"}}
		text, content := g.send(token, "capability_packs_open_docs", params, form)
		if state := regexp.MustCompile(`"requestState":"([^"]+)"`).FindStringSubmatch(text); state != nil {
			if answer == "" {
				return "asks"
			}
			params["requestState"] = state[1]
			params["inputResponses"] = map[string]any{"approval": map[string]any{"action": "accept", "content": map[string]any{"decision": answer}}}
			text, content = g.send(token, "capability_packs_open_docs", params, form)
		}
		if e, _ := content["error"].(map[string]any); e != nil {
			return fmt.Sprint(e["code"])
		}
		if content == nil {
			t.Fatalf("opening a pack: %s", text)
		}
		return "allowed"
	}
	leaves := func(t *testing.T, p *idp.Provider, first, second *team) {
		member := p.Token(idp.Ada, idp.Audience)
		for _, x := range []struct {
			what   string
			at     *team
			token  string
			answer string
			want   string
		}{
			{"an answer for good", first, member, "always", "allowed"},
			{"the same call", second, member, "", "allowed"},
			{"with another token of a member", first, p.Token(idp.Ada, idp.Audience), "", "allowed"},
		} {
			if got := open(x.at, x.token, x.answer); got != x.want {
				t.Fatalf("%s: %s, want %s", x.what, got, x.want)
			}
		}
		p.Leaves(idp.Ada)
		if got := open(second, p.Token(idp.Ada, idp.Audience), ""); got != "denied" { // nobody who may allow it can be asked
			t.Errorf("with a token without the group: %s", got)
		}
		for _, g := range []*team{first, second} {
			if got := open(g, member, ""); got != "asks" {
				t.Errorf("afterwards, with an old token that has the group: %s", got)
			}
		}
	}
	more := func(p *idp.Provider) string {
		return fmt.Sprintf("  public_url: https://packs.example.com\n  oidc: {issuer: %q, audience: %s}\napproval: {channels: [elicitation]}\napprovers: [{who: [\"group:sre\"]}]\n", p.Issuer, idp.Audience)
	}
	t.Run("file", func(t *testing.T) {
		p := idp.Start(t)
		dir, env := home(t)
		config := dir + "/config.yaml"
		write(t, config, fmt.Sprintf("packs: [{path: %q, attach: all}]\nhttp:\n%s", packs, more(p)))
		g := startTeam(t, dir, env, config)
		leaves(t, p, g, g)
		if !strings.Contains(g.said(), "a person left groups that their kept answers had") {
			t.Errorf("the log does not say it: %s", g.said())
		}
	})
	t.Cleanup(storetest.End)
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		p := idp.Start(t)
		all := startReplicas(t, e.URL(), packs, more(p), 2)
		leaves(t, p, all[0].team, all[1].team)
	})
}

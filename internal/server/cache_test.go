package server

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/caches"
)

// Over HTTP, one person's chats share a tool's cache, and two people's never do.
func TestHTTPCaches(t *testing.T) {
	needShell(t)
	w := newWorld(t, `
-- p/SKILL.md --
---
name: p
description: d
---
-- p/tools.json --
{"tools": [{"name": "build", "description": "d", "inputSchema": {"type": "object"}, "command": {"program": "./build.sh"}, "policy": {"cache": "go-build"}}]}
-- p/build.sh --
#!/bin/sh
ls "$PACKS_CACHE"
: >"$PACKS_CACHE/left"
`, func(s *setup) { s.gate.Caches = caches.Open(filepath.Join(t.TempDir(), "caches"), caches.Options{}) })
	w.put("p/build.sh", "#!/bin/sh\nls \"$PACKS_CACHE\"\n: >\"$PACKS_CACHE/left\"\n", 0o755)
	s := newSite(t, w)
	build := func(token string) string {
		t.Helper()
		c := s.Older(token, decide("once"))
		c.OK("capability_packs_enable_tools", map[string]any{"pack_id": "p"})
		out := c.OK("capability_packs_call_tool", map[string]any{"pack_id": "p", "tool": "build", "arguments": map[string]any{}})
		text, _ := out["stdout"].(string)
		return strings.TrimSpace(text)
	}
	for _, step := range []struct{ who, token, want string }{
		{"ada", tokenAda, ""}, {"ada, in another chat", tokenAda, "left"}, {"grace", tokenGrace, ""}, {"grace again", tokenGrace, "left"},
	} {
		if got := build(step.token); got != step.want {
			t.Errorf("%s finds %q in the cache, want %q", step.who, got, step.want)
		}
	}
}

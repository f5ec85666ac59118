package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/config/places"
)

func TestExampleHasEveryProgram(t *testing.T) {
	if text := strings.Join(strings.Fields(strings.ReplaceAll(example(t), "#", " ")), " "); !strings.Contains(text, strings.Join(places.CompatNames(), ", ")) {
		t.Error("Example() does not name every program")
	}
}

func TestCompatEnvironment(t *testing.T) {
	c, _, err := load(t, "compat: [claude]\n", func(o *Options) { o.Environ = append(o.Environ, "PACKS_MCP_COMPAT=gemini, stakpak") })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"gemini", "stakpak"}, c.Compat); diff != "" {
		t.Errorf("Compat (-want +got):\n%s", diff)
	}
	if _, _, err := load(t, "compat: []\n", nil); err != nil {
		t.Errorf("Load(empty list) = %v, want no error", err)
	}
}

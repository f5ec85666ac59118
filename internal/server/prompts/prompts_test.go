package prompts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/testdata"
)

// Only the client that asks for every prompt when it starts gets a template, and only
// for its placeholder.
func TestFillsIn(t *testing.T) {
	for _, c := range []struct {
		client, argument string
		want             bool
	}{
		{"opencode", "$1", true},
		{"opencode", "main.go", false},
		{"opencode", "", false},
		{"claude-code", "$1", false},
	} {
		if got := fillsIn(c.client, c.argument); got != c.want {
			t.Errorf("fillsIn(%q, %q) = %v, want %v", c.client, c.argument, got, c.want)
		}
	}
}

// A template opens nothing: it names the tool that does.
func TestTemplate(t *testing.T) {
	root := t.TempDir()
	testdata.Plant(t, root, "-- open/SKILL.md --\n---\nname: open\ndescription: D.\n---\nThe body.\n"+
		"-- shut/SKILL.md --\n---\nname: shut\ndescription: D.\ndisable-model-invocation: true\n---\nThe body.\n")
	catalog, err := packs.Scan(t.Context(), packs.Options{Roots: []packs.Root{{Dir: root, AttachAll: true}}})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{OpenDocs: "open_docs", Offer: offer.New(offer.Options{Forbids: func(call.Kind, string) bool { return false }, Description: 100})})
	for name, want := range map[string]string{"open": "open_docs", "shut": "cannot be used here", offer.PromptAttach: "approval page"} {
		text := s.template(catalog, name).Messages[0].Content.(mcp.TextContent).Text
		if !strings.Contains(text, want) || strings.Contains(text, "The body") {
			t.Errorf("the template of %s is %q, want %q in it and nothing of the document", name, text, want)
		}
	}
}

func Example() {
	fmt.Println(noPrompt("nothing").Message)
	// Output:
	// there is no prompt "nothing"
}

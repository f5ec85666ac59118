// Package tooltest is shared by the tests of the packages that compile tools: it compiles
// tools from a line of JSON, compares golden files, and provides files of a collection of
// real ones.
//
// It uses only the tools.json format, so that the tests of other formats can use it.
package tooltest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/toolsjson"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Compile compiles a tool from an input schema and a command, both JSON.
func Compile(t testing.TB, schema, command string) *tools.Tool {
	t.Helper()
	return CompileTool(t, fmt.Sprintf(`{"name": "t", "description": "d", "inputSchema": %s, "command": %s}`, schema, command))
}

// CompileTool compiles a tool from its declaration.
func CompileTool(t testing.TB, tool string) *tools.Tool {
	t.Helper()
	set, found := toolsjson.Parse("tools.json", []byte(`{"tools": [`+tool+`]}`), tools.Limits{})
	if set == nil || len(set.Tools) != 1 {
		t.Fatalf("ParseToolsJSON(%s) = %v", tool, found)
	}
	return set.Tools[0]
}

// Arguments parses the arguments of a call; empty text yields nil.
func Arguments(t testing.TB, text string) *strictjson.Node {
	t.Helper()
	args, err := readArguments(text)
	if err != nil {
		t.Fatalf("reading the arguments %.80q: %v", text, err)
	}
	return args
}

func readArguments(text string) (*strictjson.Node, *strictjson.Error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	return strictjson.Parse([]byte(text))
}

// MustCheck checks arguments, and fails the test if they are refused.
func MustCheck(t testing.TB, tool *tools.Tool, args string) tools.Values {
	t.Helper()
	v, err := tool.Check(Arguments(t, args))
	if err != nil {
		t.Fatalf("Check(%s) = %v, want no error", args, err)
	}
	return v
}

// Codes returns the codes of diagnostics, separated by spaces.
func Codes(found []diag.Diagnostic) string {
	var out []string
	for _, d := range found {
		out = append(out, d.Code)
	}
	return strings.Join(out, " ")
}

// Quote returns text as JSON.
func Quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// One returns a file with one tool that has these members besides name and description.
func One(members string) string {
	return `{"tools": [{"name": "t", "description": "d", ` + members + `}]}`
}

// Nested returns nested empty lists.
func Nested(depth int) string {
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}

// ReportsAll fails unless seen has every code in the block of a source file that begins with
// this comment.
func ReportsAll(t *testing.T, seen map[string]bool, file, comment string) {
	t.Helper()
	src, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(src), comment)
	block, _, closed := strings.Cut(block, "\n)\n")
	if !found || !closed {
		t.Fatalf("%s has no block %q", file, comment)
	}
	for line := range strings.SplitSeq(block, "\n") {
		if parts := strings.Split(line, `"`); len(parts) == 3 && !seen[parts[1]] {
			t.Errorf("no case reports %s", parts[1])
		}
	}
}

// Soon fails the test if f takes so long that it must hang.
func Soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(60 * time.Second):
		t.Fatalf("%s takes more than 60 s", what)
	}
}

// Shared returns a file of the collection of real files beside the repository. If it is
// missing, the test is skipped, or fails if PACKS_MCP_REQUIRE has "corpora".
func Shared(t testing.TB, name string) []byte {
	t.Helper()
	root := "."
	for range 10 {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Join(root, "..")
	}
	src, err := os.ReadFile(filepath.Join(root, "..", "shared", filepath.FromSlash(name)))
	if os.IsNotExist(err) {
		if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "corpora") {
			t.Fatalf("corpora are required: %v", err)
		}
		t.Skip("corpora: the collection of real files is not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	return src
}

package tools

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden reads testdata/*.txtar: a tools.json, the calls to make
// (calls.txt, "TOOL JSON" a line), and what came of them (want.txt).
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var src, calls, want string
			at := -1
			for i, f := range a.Files {
				switch f.Name {
				case "tools.json":
					src = string(f.Data)
				case "calls.txt":
					calls = string(f.Data)
				case "want.txt":
					want, at = string(f.Data), i
				}
			}
			got := golden(src, calls)
			if *update {
				if at < 0 {
					a.Files = append(a.Files, txtar.File{Name: "want.txt"})
					at = len(a.Files) - 1
				}
				a.Files[at].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got\n%s", file, diff)
			}
		})
	}
}

func golden(src, calls string) string {
	var b strings.Builder
	set, found := ParseToolsJSON("tools.json", []byte(src), Limits{})
	for _, d := range found {
		fmt.Fprintf(&b, "%s %s\n", d.Severity, d)
		if d.Pointer != "" {
			fmt.Fprintf(&b, "\tat %s\n", d.Pointer)
		}
		if d.Hint != "" {
			fmt.Fprintf(&b, "\thint: %s\n", d.Hint)
		}
	}
	if set == nil {
		return b.String()
	}
	for _, tool := range set.Tools {
		fmt.Fprintf(&b, "# %s\n%s\n", tool.Signature(), tool.Definition())
		if tool.DeclaredOnly != "" {
			fmt.Fprintf(&b, "declared only: %s\n", tool.DeclaredOnly)
		}
		if portable := tool.PortableSchema(); !bytes.Equal(portable, canonical(rawValue(tool.InputSchema))) {
			fmt.Fprintf(&b, "portable: %s\n", portable)
		}
	}
	ctx := Context{"cwd": "/project", "url": "https://example.com/?a=b"}
	for line := range strings.Lines(calls) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		fmt.Fprintf(&b, "> %s\n", line)
		tool := set.Lookup(name)
		if tool == nil {
			b.WriteString("no such tool\n")
			continue
		}
		v, err := tool.Check(json.RawMessage(args))
		if err != nil {
			fmt.Fprintf(&b, "%v\n", err)
			continue
		}
		inv, err := tool.Expand(v, ctx)
		if err != nil {
			fmt.Fprintf(&b, "%v\n", err)
			continue
		}
		fmt.Fprintf(&b, "%q %q\n", inv.Program, inv.Args)
		if len(inv.Env) > 0 {
			fmt.Fprintf(&b, "env %q\n", inv.Env)
		}
		fmt.Fprintf(&b, "cwd %s\n", inv.Cwd)
		if inv.Stdin != nil {
			fmt.Fprintf(&b, "stdin %s", inv.Stdin)
		}
	}
	return b.String()
}

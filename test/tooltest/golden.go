package tooltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Goldens compares the results of parse and of calls.txt with want.txt for each archive.
// parse gets the archive's files by name.
func Goldens(t *testing.T, update bool, pattern string, parse func(files map[string]string) (*tools.Set, []diag.Diagnostic)) {
	archives, err := filepath.Glob(pattern)
	if err != nil || len(archives) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			files := make(map[string]string)
			at := -1
			for i, f := range a.Files {
				files[f.Name] = string(f.Data)
				if f.Name == "want.txt" {
					at = i
				}
			}
			set, found := parse(files)
			got := golden(set, found, files["calls.txt"])
			if update {
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
			if diff := cmp.Diff(files["want.txt"], got); diff != "" {
				t.Errorf("%s: -want +got\n%s", file, diff)
			}
		})
	}
}

func golden(set *tools.Set, found []diag.Diagnostic, calls string) string {
	var b strings.Builder
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
		declared, e := strictjson.Parse(tool.InputSchema)
		if portable := tool.PortableSchema(); e != nil || !bytes.Equal(portable, strictjson.Canonical(declared.Value())) {
			fmt.Fprintf(&b, "portable: %s\n", portable)
		}
	}
	ctx := tools.Context{"cwd": "/project", "url": "https://example.com/?a=b"}
	for line := range strings.Lines(calls) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		fmt.Fprintf(&b, "> %s\n", line)
		if name == "@context" {
			ctx = nil
			if err := json.Unmarshal([]byte(args), &ctx); err != nil {
				fmt.Fprintf(&b, "%v\n", err)
			}
			for _, tool := range set.Tools {
				// A context value that nobody gives and that has no default.
				_, err := tool.Expand(tools.Values{}, nil)
				missing, ok := errors.AsType[*tools.MissingContextError](err)
				if !ok {
					missing = new(tools.MissingContextError)
				}
				fmt.Fprintf(&b, "%s: needs %q, is described as %q\n", tool.Name, missing.Names, tool.DescriptionFor(ctx, 0))
			}
			continue
		}
		if name == "@printed" {
			goldenOutput(&b, set, args)
			continue
		}
		tool := set.Lookup(name)
		if tool == nil {
			b.WriteString("no such tool\n")
			continue
		}
		read, problem := readArguments(args)
		if problem != nil {
			fmt.Fprintf(&b, "%v\n", problem)
			continue
		}
		v, err := tool.Check(read)
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

// goldenOutput writes a tool's result for an exit code and a standard output.
func goldenOutput(b *strings.Builder, set *tools.Set, args string) {
	name, rest, _ := strings.Cut(args, " ")
	code, text, _ := strings.Cut(rest, " ")
	tool := set.Lookup(name)
	exit, err := strconv.Atoi(code)
	var stdout string
	if err == nil {
		err = json.Unmarshal([]byte(text), &stdout)
	}
	if tool == nil || err != nil {
		fmt.Fprintf(b, "not understood: %v\n", err)
		return
	}
	ok := tool.Policy.Allows(exit)
	out, err := tool.Output.Apply(stdout, true, ok)
	fmt.Fprintf(b, "succeeded %v, shows %q, says %q\n", ok, out.Text, out.Speak)
	if err != nil {
		fmt.Fprintf(b, "%v\n", err)
	}
}

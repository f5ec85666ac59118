package configedit

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the files of testdata")

var server = Object{
	{"command", "/usr/bin/packs-mcp"},
	{"args", []string{"serve", `--packs=/home/ada/"my" packs`}},
	{"timeout", 300},
	{"enabled", true},
	{"env", Object{{"A", "1"}}},
}

func formatOf(name string) (*Format, []string) {
	if strings.HasPrefix(name, "toml-") {
		return TOML(), []string{"mcp_servers", "packs"}
	}
	return JSON(), []string{"mcpServers", "packs"}
}

// Each file of testdata has a text before, one after Set, and one after Remove, or an
// error. The files show what a person sees in a diff.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			part := func(name string) []byte {
				i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == name })
				if i < 0 {
					return nil
				}
				text := a.Files[i].Data
				if bytes.HasPrefix(a.Comment, []byte("CRLF")) {
					text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
				}
				if bytes.HasPrefix(a.Comment, []byte("No newline")) && (name == "before" || strings.HasPrefix(file, "testdata/json-")) {
					text = bytes.TrimSuffix(text, []byte("\n"))
				}
				return text
			}
			format, path := formatOf(name)
			if *update {
				rewrite(t, file, a, format, path, part("before"))
				return
			}
			before, after, removed := part("before"), part("after"), part("removed")
			for _, mark := range []string{"", "\ufeff"} {
				with := func(b []byte) []byte { return append([]byte(mark), b...) }
				got, err := format.Set(with(before), path, server)
				if want := part("error"); want != nil {
					if err == nil || err.Error() != strings.TrimSpace(string(want)) && mark == "" {
						t.Fatalf("Set = %v, want %s", err, want)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if want := with(after); !bytes.Equal(got, want) {
					t.Errorf("Set with mark %q:\n%q\nwant\n%q", mark, got, want)
				}
				if again, err := format.Set(got, path, server); err != nil || !bytes.Equal(again, got) {
					t.Errorf("a second Set changed something, %v:\n%s", err, again)
				}
				if removed == nil {
					removed = before
				}
				if back, err := format.Remove(got, path); err != nil || !bytes.Equal(back, with(removed)) {
					t.Errorf("Remove with mark %q, %v:\n%q\nwant\n%q", mark, err, back, with(removed))
				}
			}
		})
	}
}

// rewrite writes the results of Set and Remove for a file with
//
// line endings.
func rewrite(t *testing.T, file string, a *txtar.Archive, format *Format, path []string, before []byte) {
	a.Files = a.Files[:1]
	after, err := format.Set(before, path, server)
	if err != nil {
		a.Files = append(a.Files, txtar.File{Name: "error", Data: []byte(err.Error() + "\n")})
	} else {
		back, err := format.Remove(after, path)
		if err != nil {
			t.Fatal(err)
		}
		plain := func(b []byte) []byte {
			return append(bytes.TrimSuffix(bytes.ReplaceAll(b, []byte("\r"), nil), []byte("\n")), '\n')
		}
		a.Files = append(a.Files, txtar.File{Name: "after", Data: plain(after)})
		if !bytes.Equal(back, before) {
			a.Files = append(a.Files, txtar.File{Name: "removed", Data: plain(back)})
		}
	}
	if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAppend(t *testing.T) {
	for _, tc := range []struct{ before, after string }{
		{"", "{\n  \"permissions\": {\n    \"allow\": [\"mcp__packs\"]\n  }\n}\n"},
		{`{"permissions":{"allow":[]}}`, "{\"permissions\":{\"allow\":[\n  \"mcp__packs\"\n]}}"},
		{`{"permissions":{"allow":["x"]}}`, `{"permissions":{"allow":["x", "mcp__packs"]}}`},
		{"{\n \"permissions\": {\"allow\": [\n  \"x\", // mine\n ], }\n}", "{\n \"permissions\": {\"allow\": [\n  \"x\", // mine\n  \"mcp__packs\",\n ], }\n}"},
		{`{"permissions":{"allow":["mcp__packs"]}}`, `{"permissions":{"allow":["mcp__packs"]}}`},
		{`{"permissions":{"allow":"x"}}`, ""},
		{`{"permissions":[]}`, ""},
	} {
		for _, mark := range []string{"", "\ufeff"} {
			got, err := JSON().Append([]byte(mark+tc.before), []string{"permissions", "allow"}, "mcp__packs")
			if tc.after == "" {
				if !errors.Is(err, ErrShape) {
					t.Errorf("Append(%q) = %q, %v, want ErrShape", tc.before, got, err)
				}
			} else if want := mark + tc.after; err != nil || string(got) != want {
				t.Errorf("Append(%q) = %q, %v, want %q", tc.before, got, err, want)
			}
		}
	}
}

// Drop removes an item from a JSON list, and keeps the rest of the text.
func TestDropJSON(t *testing.T) {
	path := []string{"permissions", "allow"}
	for _, tc := range []struct {
		before string
		index  int
		after  string // empty: ErrShape
	}{
		{`{"permissions":{"allow":["mcp__packs"]}}`, 0, `{"permissions":{"allow":[]}}`},
		{`{"permissions":{"allow":["x", "mcp__packs"]}}`, 1, `{"permissions":{"allow":["x"]}}`},
		{`{"permissions":{"allow":["mcp__packs", "x"]}}`, 0, `{"permissions":{"allow":[ "x"]}}`},
		{"{\n \"permissions\": {\"allow\": [\n  \"x\", // mine\n  \"mcp__packs\",\n ], }\n}", 1, "{\n \"permissions\": {\"allow\": [\n  \"x\", // mine\n ], }\n}"},
		{"{\"permissions\": {\"allow\": [\n  \"mcp__packs\"\n]}}", 0, "{\"permissions\": {\"allow\": []}}"},
		{"{\"permissions\": {\"allow\": [\n  // ours\n  \"mcp__packs\"\n]}}", 0, "{\"permissions\": {\"allow\": [\n  // ours\n]}}"},
		{`{"permissions":{"allow":["x"]}}`, 1, ""},
		{`{"permissions":{"allow":"mcp__packs"}}`, 0, ""},
		{`{}`, 0, ""},
	} {
		for _, mark := range []string{"", "\ufeff"} {
			got, err := JSON().Drop([]byte(mark+tc.before), path, tc.index)
			if tc.after == "" {
				if !errors.Is(err, ErrShape) {
					t.Errorf("Drop(%q, %d) = %q, %v, want ErrShape", tc.before, tc.index, got, err)
				}
			} else if want := mark + tc.after; err != nil || string(got) != want {
				t.Errorf("Drop(%q, %d) = %q, %v, want %q", tc.before, tc.index, got, err, want)
			}
		}
	}
}

// SetExactly restores an entry exactly, where Set would keep its other keys.
func TestSetExactly(t *testing.T) {
	for name, tc := range map[string]struct {
		format       *Format
		path         []string
		old, changed string
	}{
		"json": {JSON(), []string{"s", "packs"},
			`{"s": {"packs": {"command": "old", "args": ["--token", "x"], "env": {"A": "1", "B": null}, "n": 1e400}}}`,
			`{"s": {"packs": {"command": "new", "args": [], "trust": true}, "b": 1}, "later": 2}`},
		"toml": {TOML(), []string{"s", "packs"},
			"[s.packs]\ncommand = \"old\"\nargs = [\"--token\", \"x\"]\ntimeout = 1.5\n\n[s.packs.env]\nA = \"1\"\n",
			"later = 2\n\n[s.packs]\ncommand = \"new\" # mine\nargs = []\nmode = \"approve\" # ours\ntimeout = 3\n\n[s.b]\nx = 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			want, _, err := tc.format.Get([]byte(tc.old), tc.path...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := tc.format.SetExactly([]byte(tc.changed), tc.path, want)
			if err != nil {
				t.Fatal(err)
			}
			if value, _, err := tc.format.Get(got, tc.path...); err != nil || !reflect.DeepEqual(value, want) {
				t.Errorf("SetExactly made %v, %v, want %v:\n%s", value, err, want, got)
			}
			before, _ := tc.format.decode([]byte(tc.changed))
			after, _ := tc.format.decode(got)
			if !reflect.DeepEqual(without(before, tc.path), without(after, tc.path)) {
				t.Errorf("SetExactly changed something else: %s", got)
			}
		})
	}
	// It leaves text that it cannot change.
	if got, err := TOML().SetExactly([]byte("s.packs.a = 1\n"), []string{"s", "packs"}, map[string]any{"b": "x"}); !errors.Is(err, ErrShape) {
		t.Errorf("SetExactly of dotted keys = %q, %v, want ErrShape", got, err)
	}
	if got, err := TOML().Remove([]byte("s.packs.a = 1\n"), []string{"s", "packs"}); !errors.Is(err, ErrShape) {
		t.Errorf("Remove of dotted keys = %q, %v, want ErrShape", got, err)
	}
}

// The target of a missing file is where it will be made.
func TestReadTarget(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "real"), 0o700), os.Symlink("real", filepath.Join(dir, "link"))); err != nil {
		t.Skip(err)
	}
	path := filepath.Join(dir, "link", "new", "settings.json")
	f, err := Read(path)
	if want := filepath.Join(dir, "real", "new", "settings.json"); err != nil || f.Target != want {
		t.Fatalf("Read = %+v, %v, want the target %s", f, err, want)
	}
	if err := f.Replace([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	again, err := Read(path)
	if err != nil || again.Target != f.Target || !again.Exists {
		t.Errorf("Read = %+v, %v, want the target %s", again, err, f.Target)
	}
	if err := f.Replace([]byte("other")); !errors.Is(err, ErrMoved) {
		t.Errorf("Replace of a file that was made meanwhile = %v, want ErrMoved", err)
	}
}

func TestLists(t *testing.T) {
	folder := Object{{"path", "/b c"}, {"attach", "all"}}
	const added = "- path: /b c\n    attach: all\n"
	for name, tc := range map[string]struct{ before, after string }{
		"an empty file":     {"", "packs:\n  " + added},
		"another key":       {"log:\n  level: info # mine", "log:\n  level: info # mine\npacks:\n  " + added},
		"an empty list":     {"packs: [] # none\nmode: x\n", "packs: # none\n  " + added + "mode: x\n"},
		"no value":          {"packs:\nmode: x\n", "packs:\n  " + added + "mode: x\n"},
		"after others":      {"packs:\n  # work\n  - /a # one\n\n# mode\nmode: x\n", "packs:\n  # work\n  - /a # one\n  " + added + "\n# mode\nmode: x\n"},
		"without indent":    {"packs:\n- path: /a\n  attach: none\nmode: x\n", "packs:\n- path: /a\n  attach: none\n- path: /b c\n  attach: all\nmode: x\n"},
		"without newline":   {"packs:\n  - /a", "packs:\n  - /a\n  " + added},
		"on one line":       {"packs: [/a]\n", ""},
		"not a list":        {"packs: x\n", ""},
		"within braces":     {"{packs: []}\n", ""},
		"a folded last one": {"packs:\n  - >-\n    /a\n    b\n", ""},
	} {
		got, err := YAML().Append([]byte(tc.before), []string{"packs"}, folder)
		if tc.after == "" {
			if !errors.Is(err, ErrShape) {
				t.Errorf("%s: Append = %q, %v, want ErrShape", name, got, err)
			}
			continue
		}
		if err != nil || string(got) != tc.after {
			t.Errorf("%s: Append = %q, %v, want %q", name, got, err, tc.after)
			continue
		}
		list, _, _ := YAML().Get(got, "packs")
		back, err := YAML().Drop(got, []string{"packs"}, len(list.([]any))-1)
		want := tc.before
		switch name {
		case "an empty file":
			want = "packs: []\n"
		case "another key":
			want += "\npacks: []\n"
		case "no value":
			want = "packs: []\nmode: x\n"
		case "without newline":
			want += "\n"
		}
		if err != nil || string(back) != want {
			t.Errorf("%s: Drop = %q, %v, want %q", name, back, err, want)
		}
	}
	if _, err := YAML().Append([]byte("a: 1\n b: 2\n"), []string{"packs"}, "x"); err == nil || !strings.HasPrefix(err.Error(), "line 2") {
		t.Errorf("Append to what is not YAML = %v, want its line", err)
	}
}

// Set keeps everything in a file, and adds the value.
func FuzzSet(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range a.Files {
			f.Add(part.Data, strings.HasPrefix(filepath.Base(file), "toml-"))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, isTOML bool) {
		name := "json-"
		if isTOML {
			name = "toml-"
		}
		format, path := formatOf(name)
		before, err := format.decode(text)
		if err != nil {
			return
		}
		given := slices.Clone(text)
		out, err := format.Set(text, path, server)
		if !bytes.Equal(given, text) {
			t.Fatal("Set changed its argument")
		}
		if err != nil {
			return
		}
		got, ok, err := format.Get(out, path...)
		if err != nil || !ok || got.(map[string]any)["command"] != "/usr/bin/packs-mcp" {
			t.Fatalf("Get = %v, %v, %v", got, ok, err)
		}
		back, err := format.Remove(out, path)
		if err != nil {
			if errors.Is(err, ErrShape) {
				return
			}
			t.Fatalf("Remove: %v\n%q\n%q", err, text, out)
		}
		after, err := format.decode(back)
		if err != nil {
			t.Fatal(err)
		}
		for key := range before {
			if key != path[0] && !reflect.DeepEqual(before[key], after[key]) {
				t.Fatalf("%q was %v, is %v", key, before[key], after[key])
			}
		}
	})
}

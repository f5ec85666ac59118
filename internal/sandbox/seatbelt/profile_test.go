package seatbelt

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// rules returns the rules of a run that uses everything.
func rules() Rules {
	return Rules{
		System:    []string{"/usr", "/bin", "/System"},
		Read:      []string{"/Users/ada/packs/lint", "/opt/homebrew/Cellar/jq/1.7"},
		Names:     []string{"/Users/ada/bin/lint"},
		Write:     []string{"/Users/ada/project", "/private/tmp/packs-run-1"},
		HardLinks: true,
		Network:   true,
	}
}

func TestProfileGolden(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*Rules)
	}{
		{"everything", func(*Rules) {}},
		{"nothing", func(r *Rules) { *r = Rules{} }},
		{"readonly", func(r *Rules) { r.Write, r.HardLinks, r.Network = nil, false, false }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rules()
			tt.edit(&r)
			p, err := r.Profile()
			if err != nil {
				t.Fatal(err)
			}
			got := p.Text
			for _, d := range p.Params {
				got += "; -D " + d.Name + "=" + d.Value + "\n"
			}
			golden := filepath.Join("testdata", tt.name+".sb")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("Profile (-want +got):\n%s", diff)
			}
		})
	}
}

// parse reads the forms of a profile, each a list of words and lists; strings
// keep their quotes. It fails the test on anything that is not balanced.
func parse(t *testing.T, text string) []any {
	t.Helper()
	stack := [][]any{nil}
	word := ""
	flush := func() {
		if word != "" {
			stack[len(stack)-1] = append(stack[len(stack)-1], word)
			word = ""
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c >= 0x80 || c == '\\' || c == ';' || c == '#':
			t.Fatalf("byte %q at %d of the profile", c, i)
		case c == '"':
			flush()
			n := strings.IndexByte(text[i+1:], '"')
			if n < 0 {
				t.Fatalf("a string at %d of the profile does not end", i)
			}
			word = text[i : i+n+2]
			i += n + 1
			flush()
		case c == '(':
			flush()
			stack = append(stack, nil)
		case c == ')':
			flush()
			if len(stack) == 1 {
				t.Fatalf("a parenthesis too many at %d of the profile", i)
			}
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			stack[len(stack)-1] = append(stack[len(stack)-1], top)
		case c == ' ' || c == '\n':
			flush()
		default:
			word += string(c)
		}
	}
	if len(stack) != 1 {
		t.Fatalf("%d parentheses of the profile are not closed", len(stack)-1)
	}
	return stack[0]
}

// hostile lists possible file names.
var hostile = []string{
	`a"b`, `a\"b`, `a")) (allow default) ("`, "new\nline", "tab\tline", "back\\slash", ")(", ";comment", "#|block|#", "P0", `(param "P0")`,
	"spaces and ' quotes", "-D", "=", "a=b", "ünïcödé", "\u202eright", strings.Repeat("long", 60), "$HOME", "`id`", "%s",
}

func TestProfileHostileNames(t *testing.T) {
	at := func(root string, name string) []string { return []string{root + "/" + name} }
	build := func(name string) Profile {
		t.Helper()
		p, err := Rules{
			System: at("/usr", name), Read: at("/r/"+name, name), Names: at("/n", name), Write: at("/w", name), HardLinks: true,
		}.Profile()
		if err != nil {
			t.Fatalf("Profile of %q: %v", name, err)
		}
		return p
	}
	plain := build("zzz")
	parse(t, plain.Text)
	for _, name := range hostile {
		p := build(name)
		if p.Text != plain.Text {
			t.Errorf("Profile of %q has another text than that of a plain name:\n%s", name, cmp.Diff(plain.Text, p.Text))
		}
		for i, d := range p.Params {
			if want := strings.ReplaceAll(plain.Params[i].Value, "zzz", name); d.Value != want || d.Name != plain.Params[i].Name {
				t.Errorf("Params[%d] of %q = %q, want %q", i, name, d, want)
			}
		}
	}
}

func TestProfileRefuses(t *testing.T) {
	for _, path := range []string{"", "relative", "/", "/a/", "/a/../b", "//a", "/a\x00b", "/\xff", "."} {
		for _, r := range []Rules{{System: []string{path}}, {Read: []string{path}}, {Names: []string{path}}, {Write: []string{path}}} {
			if p, err := r.Profile(); err == nil {
				t.Errorf("Profile of %+v = %q, want an error", r, p.Params)
			}
		}
	}
	var many Rules
	for range maxPaths + 1 {
		many.Read = append(many.Read, "/"+strings.Repeat("x", len(many.Read)+1))
	}
	if _, err := many.Profile(); err == nil {
		t.Errorf("Profile with %d paths, want an error", len(many.Read))
	}
}

// A rule without a filter applies to everything. Only these may have none.
func TestProfileRulesHaveFilters(t *testing.T) {
	may := []string{
		"deny default", "deny process-info*", "deny nvram*", "deny iokit-get-properties", "deny file-map-executable",
		"deny file-link", "deny file-clone", "deny network*", "deny mach-lookup", "deny file-write-setugid",
		"allow process-fork", "allow ipc-posix-sem",
	}
	for name, r := range map[string]Rules{"zero": {}, "everything": rules()} {
		p, err := r.Profile()
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range parse(t, p.Text)[1:] { // after the version
			list := form.([]any)
			filters := slices.ContainsFunc(list, func(x any) bool { _, ok := x.([]any); return ok })
			words := ""
			for _, x := range list {
				if w, ok := x.(string); ok {
					words += " " + w
				}
			}
			if words = strings.TrimSpace(words); !filters && !slices.Contains(may, words) {
				t.Errorf("%s: rule (%s) has no filter", name, words)
			}
		}
	}
}

// The last matching rule decides about a path.
func TestProfileVerdicts(t *testing.T) {
	for _, tt := range []struct {
		op, path string
		want     bool
	}{
		{"file-read-data", "/usr/bin/true", true},
		{"file-read-data", "/", true},
		{"file-read-data", "/Users", false},
		{"file-read-metadata", "/Users", true},
		{"file-read-metadata", "/Users/ada", true},
		{"file-read-data", "/Users/ada", false},
		{"file-read-data", "/Users/ada/.ssh/id_ed25519", false},
		{"file-read-metadata", "/Users/ada/.ssh", false},
		{"file-write-mode", "/Users/ada/.ssh/id_ed25519", false},
		{"file-read-data", "/System/Library/dyld/cache", true},
		{"file-read-data", "/System/Volumes/Data/Users/ada/.ssh/id_ed25519", false},
		{"file-read-data", "/System/Volumes/Preboot/Cryptexes/OS/x", true},
		{"process-exec*", "/System/Volumes/Data/x", false},
		{"file-read-data", "/Users/ada/packs/lint/SKILL.md", true},
		{"file-read-data", "/Users/ada/packs/lint2/SKILL.md", false},
		{"file-write-data", "/Users/ada/packs/lint/SKILL.md", false},
		{"file-write-mode", "/Users/ada/packs/lint/SKILL.md", false},
		{"process-exec*", "/Users/ada/packs/lint/run", true},
		{"file-read-metadata", "/Users/ada/bin/lint", true},
		{"file-read-metadata", "/Users/ada/bin", true},
		{"file-read-data", "/Users/ada/bin/lint/x", false},
		{"process-exec*", "/Users/ada/bin/lint", false},
		{"file-link", "/Users/ada/packs/lint/SKILL.md", false},
		{"file-clone", "/Users/ada/packs/lint/SKILL.md", true},
		{"file-clone", "/Users/ada/.ssh/id_ed25519", false},
		{"file-write-data", "/usr/bin/true", false},
		{"file-write-create", "/Users/ada/project/new", true},
		{"file-write-unlink", "/Users/ada/project/new", true},
		{"file-write-unlink", "/Users/ada/project", false},
		{"file-write-unlink", "/private/tmp/packs-run-1", false},
		{"file-write-create", "/Users/ada/project/.git/index.lock", true},
		{"file-write-setugid", "/Users/ada/project/new", false},
		{"file-link", "/Users/ada/project/new", true},
		{"file-clone", "/Users/ada/project/CLAUDE.md", true},
		{"file-read-data", "/Users/ada/project/CLAUDE.md", true},
		{"file-read-data", "/dev/null", true},
		{"file-write-data", "/dev/null", true},
		{"file-write-data", "/dev/zero", true},
		{"file-read-data", "/dev/urandom", true},
		{"file-write-data", "/dev/disk0", false},
		{"file-read-data", "/dev/tty", false},
		{"file-write-data", "/dev/tty", false},
		{"file-read-data", "/private/tmp/other", false},
		{"file-read-data", "/private/var/run/docker.sock", false},
		{"network-outbound", "/private/var/run/docker.sock", false},
		{"network-outbound", "/private/var/run/mDNSResponder", true},
		{"process-exec*", "/usr/bin/osascript", false},
		{"process-exec*", "/usr/bin/git", true},
	} {
		p, err := rules().Profile()
		if err != nil {
			t.Fatal(err)
		}
		if got := verdict(t, p, tt.op, tt.path); got != tt.want {
			t.Errorf("verdict(%q, %q) = %v, want %v", tt.op, tt.path, got, tt.want)
		}
	}
}

// verdict is a small model of how the system evaluates a profile.
func verdict(t *testing.T, p Profile, op, path string) bool {
	t.Helper()
	allowed := false
	for _, form := range parse(t, p.Text)[1:] {
		list := form.([]any)
		about, filtered, hit := false, false, false
		for _, x := range list[1:] {
			switch x := x.(type) {
			case string:
				family, all := strings.CutSuffix(x, "*")
				about = about || x == "default" || x == op || all && strings.HasPrefix(op, family)
			case []any:
				filtered = true
				hit = hit || matches(p, x, path)
			}
		}
		if about && (hit || !filtered) {
			allowed = list[0] == "allow"
		}
	}
	return allowed
}

func matches(p Profile, filter []any, path string) bool {
	value := ""
	switch x := filter[1].(type) {
	case string:
		value = strings.Trim(x, `"`)
	case []any: // (param "P0")
		i := slices.IndexFunc(p.Params, func(d Param) bool { return `"`+d.Name+`"` == x[1] })
		value = p.Params[i].Value
	}
	switch filter[0] {
	case "literal":
		return path == value
	case "subpath":
		return path == value || strings.HasPrefix(path, value+"/")
	}
	return false // not a path filter
}

func TestArgs(t *testing.T) {
	p := Profile{Text: "(version 1)", Params: []Param{{"P0", "/a=b c"}, {"P1", "-x"}}}
	got := p.Args("/usr/bin/sandbox-exec", "/bin/echo", "-p", "--")
	want := []string{"/usr/bin/sandbox-exec", "-p", "(version 1)", "-D", "P0=/a=b c", "-D", "P1=-x", "--", "/bin/echo", "-p", "--"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Args (-want +got):\n%s", diff)
	}
}

package setup

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/configedit"
)

// A desk is a user with a home folder and a client.
type desk struct {
	*app
	t      *testing.T
	client clients.Client
	place  *clients.Place
	server clients.Server // what the client is to start: this program
	cfg    *config.Config
	root   string // with links resolved
	out    bytes.Buffer
}

func newDesk(t *testing.T, c clients.Client, goos string) *desk {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(root, "home")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, client: c, root: root, cfg: new(config.Config)}
	d.place = &clients.Place{GOOS: goos, Home: home}
	d.cfg.Paths.Home, d.cfg.Paths.State = home, filepath.Join(root, "state")
	d.app = &app{&cli.Env{Environ: []string{"HOME=" + home}, Stdout: &d.out, Stderr: io.Discard}}
	d.server = clients.Server{Command: exe, Args: []string{"serve", "--packs", `/home/ada/"my" packs\new`}}
	return d
}

// file is the client's file that setup writes.
func (d *desk) file() string {
	all := d.client.Files(d.place, clients.ScopeUser)
	return all[len(all)-1]
}

// put writes the client's file. The kind of link is "file", "folder" or none.
func (d *desk) put(text []byte, link string) {
	d.t.Helper()
	file, real := d.file(), filepath.Join(d.root, "dotfiles", "settings")
	var err error
	switch link {
	case "file":
		err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.MkdirAll(filepath.Dir(real), 0o755), os.Symlink(real, file))
	case "folder":
		dir := filepath.Dir(file)
		if dir == d.place.Home {
			d.t.Skip("its folder is the home folder")
		}
		real = filepath.Join(d.root, "dotfiles", filepath.Base(file))
		err = errors.Join(os.MkdirAll(filepath.Dir(dir), 0o755), os.MkdirAll(filepath.Dir(real), 0o755), os.Symlink(filepath.Dir(real), dir))
	default:
		real = file
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	if err = errors.Join(err, os.WriteFile(real, text, 0o640)); err != nil {
		d.t.Fatal(err)
	}
}

// tree returns everything in the user's folders except the state: contents, modes and
// links.
func (d *desk) tree() map[string]string {
	d.t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(d.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == d.cfg.Paths.State {
			return filepath.SkipDir
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		said := info.Mode().String()
		switch {
		case info.Mode().Type() == fs.ModeSymlink:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			said += " " + to
		case !e.IsDir():
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			said += " " + string(text)
		}
		all[path] = said
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// planned returns what setup would do.
func (d *desk) planned() plan {
	return d.plan(d.t.Context(), d.client, d.place, d.server, settings{scope: "user", name: "packs", allow: true})
}

// fixtures returns texts of a client's file, by what is special about them.
func fixtures(t *testing.T, id string) (fine map[string][]byte, broken []byte) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", id+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	fine = map[string][]byte{"empty": nil, "blank": []byte("\n")}
	if id != "codex" {
		fine["nothing"] = []byte("{}")
	}
	for _, f := range a.Files {
		name, cut := strings.CutSuffix(f.Name, " (no newline)")
		if cut {
			f.Data = bytes.TrimSuffix(f.Data, []byte("\n"))
		}
		if name == "broken" {
			broken = f.Data
		} else {
			fine[name] = f.Data
		}
	}
	if len(fine) < 5 || broken == nil {
		t.Fatalf("%s has the fixtures %q, and broken: %v", id, slices.Sorted(maps.Keys(fine)), broken != nil)
	}
	return fine, broken
}

// written returns the clients whose settings setup writes.
func written() []clients.Client {
	return slices.DeleteFunc(clients.All(), func(c clients.Client) bool { return c.PasteOnly })
}

// Whatever a client's file holds, setup adds exactly what it should, in the client's
// known files only, and --undo restores the bytes.
func TestFixtures(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows: modes and links of Unix")
	}
	styles := map[string]func([]byte) []byte{
		"":          func(b []byte) []byte { return b },
		" CRLF":     func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) },
		" and mark": func(b []byte) []byte { return append([]byte("\ufeff"), b...) },
	}
	for _, c := range written() {
		t.Run(c.ID, func(t *testing.T) {
			fine, _ := fixtures(t, c.ID)
			for _, name := range slices.Sorted(maps.Keys(fine)) {
				for style, as := range styles {
					if c.ID == "codex" && style == " and mark" && len(fine[name]) == 0 {
						continue // only a byte order mark
					}
					for _, link := range []string{"", "file", "folder"} {
						if link != "" && style != "" {
							continue // the two do not depend on each other
						}
						t.Run(name+style+" "+link, func(t *testing.T) {
							d := newDesk(t, c, "linux")
							d.put(as(slices.Clone(fine[name])), link)
							d.thereAndBack()
						})
					}
				}
			}
			for _, goos := range []string{"linux", "darwin", "windows"} {
				t.Run("no file on "+goos, func(t *testing.T) {
					newDesk(t, c, goos).thereAndBack()
				})
			}
		})
	}
}

// thereAndBack sets the client up and undoes that.
func (d *desk) thereAndBack() {
	t := d.t
	t.Helper()
	before := d.tree()
	text, _ := os.ReadFile(d.file())
	p := d.planned()
	if p.failed || p.paste != "" || p.skips != "" || len(p.edits) == 0 {
		t.Fatalf("plan = %q, %q, %d edits; want no problem", p.why, p.skips, len(p.edits))
	}
	if diff := cmp.Diff(before, d.tree()); diff != "" {
		t.Fatalf("the plan changed files (-before +after):\n%s", diff)
	}
	known := map[string]bool{}
	for _, e := range p.edits {
		if e.Path != d.file() && e.Path != filepath.Join(d.place.Home, ".claude", "settings.json") {
			t.Errorf("it would write %s", e.Path)
		}
		known[e.Target] = true
		if err := write(d.cfg, d.client, e); err != nil {
			t.Fatal(err)
		}
	}
	after := d.tree()
	for path, said := range after {
		info, err := os.Stat(path)
		if old, ok := before[path]; said != old && !known[path] && (err != nil || !info.IsDir() || ok) {
			t.Errorf("%s was %q, is %q", path, old, said)
		}
		if old, ok := before[path]; ok && old[:10] != said[:10] {
			t.Errorf("%s had the mode %s, has %s", path, old[:10], said[:10])
		}
	}
	for path := range before {
		if after[path] == "" {
			t.Errorf("%s is gone", path)
		}
	}

	// The client reads the entry, and everything else as before.
	now, err := os.ReadFile(d.file())
	if err != nil {
		t.Fatal(err)
	}
	entries, err := d.client.Entries(now)
	if err != nil {
		t.Fatalf("the file cannot be read: %v\n%s", err, now)
	}
	if got, want := clients.Started(entries["packs"]), append([]string{d.server.Command}, d.server.Args...); !slices.Equal(got, want) {
		t.Errorf("the entry starts %q, want %q:\n%s", got, want, now)
	}
	others, _ := d.client.Entries(text)
	for name, entry := range others {
		if !reflect.DeepEqual(entries[name], entry) {
			t.Errorf("the server %q was %v, is %v", name, entry, entries[name])
		}
	}
	if len(entries) != len(others)+1 {
		t.Errorf("there are %d servers, and were %d", len(entries), len(others))
	}
	if !isInsertion(text, now) {
		t.Errorf("more than the entry changed:\n%s\nwas\n%s", now, text)
	}
	if bytes.Contains(text, []byte("\r\n")) && bytes.Count(now, []byte("\n")) != bytes.Count(now, []byte("\r\n")) {
		t.Errorf("lines end in different ways:\n%q", now)
	}
	if again := d.planned(); len(again.edits) > 0 || again.failed {
		t.Errorf("a second setup would change something: %q, %d edits", again.why, len(again.edits))
	}

	if err := d.undo(d.cfg, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, d.tree()); diff != "" {
		t.Errorf("undo did not bring everything back (-before +after):\n%s", diff)
	}
}

// isInsertion reports whether after is before with text inserted in one place. Blanks
// and commas do not count.
func isInsertion(before, after []byte) bool {
	bare := func(text []byte) []byte {
		return bytes.Map(func(r rune) rune {
			if strings.ContainsRune(" \t\r\n,", r) {
				return -1
			}
			return r
		}, text)
	}
	before, after = bare(before), bare(after)
	same := 0
	for same < min(len(before), len(after)) && before[same] == after[same] {
		same++
	}
	return bytes.HasSuffix(after, before[same:])
}

// A file that cannot be parsed is not changed. The message has the line, the column
// and the entry.
func TestBroken(t *testing.T) {
	for _, c := range written() {
		t.Run(c.ID, func(t *testing.T) {
			_, broken := fixtures(t, c.ID)
			d := newDesk(t, c, runtime.GOOS)
			d.put(broken, "")
			before := d.tree()
			p := d.planned()
			if where := regexp.MustCompile(regexp.QuoteMeta(d.file()) + `:\d+:\d+: .+; it was not changed$`); !p.failed || !where.MatchString(p.why) || len(p.edits) > 0 {
				t.Errorf("plan = %q, %d edits; want the file, the line and the column", p.why, len(p.edits))
			}
			entries, err := c.Entries([]byte(p.paste))
			if got, want := clients.Started(entries["packs"]), append([]string{d.server.Command}, d.server.Args...); err != nil || !slices.Equal(got, want) {
				t.Errorf("the entry to paste starts %q, %v, want %q:\n%s", got, err, want, p.paste)
			}
			if diff := cmp.Diff(before, d.tree()); diff != "" {
				t.Errorf("files changed (-before +after):\n%s", diff)
			}
		})
	}
}

// A file that somebody writes between the question and the answer is not overwritten.
func TestChangedMeanwhile(t *testing.T) {
	for _, c := range written() {
		for _, before := range []string{"", "others"} {
			t.Run(c.ID+" "+before, func(t *testing.T) {
				d := newDesk(t, c, runtime.GOOS)
				fine, _ := fixtures(t, c.ID)
				if before != "" {
					d.put(fine[before], "")
				}
				p := d.planned()
				d.put(fine["comments"], "")
				now := d.tree()
				if err := write(d.cfg, c, p.edits[0]); !errors.Is(err, configedit.ErrMoved) {
					t.Errorf("write = %v, want %v", err, configedit.ErrMoved)
				}
				if diff := cmp.Diff(now, d.tree()); diff != "" {
					t.Errorf("files changed (-before +after):\n%s", diff)
				}
				if err := d.undo(d.cfg, nil); err == nil || !strings.Contains(err.Error(), "nothing to undo") {
					t.Errorf("undo = %v, said %q; want that there is nothing to undo", err, d.out.String())
				}
			})
		}
	}
}

// Another program's entry under our name stays.
func TestAnotherProgram(t *testing.T) {
	theirs := clients.Server{Command: filepath.Join(t.TempDir(), "their-server"), Args: []string{"--stdio"}}
	for _, c := range written() {
		t.Run(c.ID, func(t *testing.T) {
			d := newDesk(t, c, runtime.GOOS)
			fine, _ := fixtures(t, c.ID)
			entry := c.Entry(d.file(), "packs", theirs)
			text, err := entry.Format.Set(fine["others"], entry.Path, entry.Value)
			if err != nil {
				t.Fatal(err)
			}
			d.put(text, "")
			p := d.planned()
			if !p.failed || !strings.Contains(p.why, "another program; it was left") || !strings.Contains(p.why, theirs.Command) || len(p.edits) > 0 {
				t.Errorf("plan = %q, %d edits; want that it is another program's", p.why, len(p.edits))
			}
		})
	}
}

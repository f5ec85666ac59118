package git

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/sourcestest"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
)

func object(t *testing.T, kind plumbing.ObjectType, text string) plumbing.EncodedObject {
	o := &plumbing.MemoryObject{}
	o.SetType(kind)
	if _, err := o.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return o
}

// A commit is read as git reads it: a second tree or a parent line in its message is just
// text.
func TestParseCommit(t *testing.T) {
	a, b, c := strings.Repeat("a", 40), strings.Repeat("b", 40), strings.Repeat("c", 40)
	who := "author A <a@example.org> 1 +0000\ncommitter B <b> <b@example.org> 1700000000 +0100\n"
	got, err := parseCommit(object(t, plumbing.CommitObject, "tree "+a+"\nparent "+b+"\nparent "+c+"\n"+who+"tree "+c+"\n\nparent "+a+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got.tree.String() != a || len(got.parents) != 2 || got.parents[1].String() != c || !got.made.Equal(time.Unix(1700000000, 0)) {
		t.Errorf("commit = %+v", got)
	}
	if got, err := parseCommit(object(t, plumbing.CommitObject, "tree "+a+"\nauthor\ncommitter x\n\n")); err != nil || !got.made.IsZero() || got.parents != nil {
		t.Errorf("a commit without a time = %+v, %v", got, err)
	}
	for _, text := range []string{"", "tree " + a, "tree " + a[1:] + "\n", "tree " + strings.Repeat("g", 40) + "\n", who + "tree " + a + "\n", "parent " + a + "\ntree " + a + "\n", "\ntree " + a + "\n"} {
		if got, err := parseCommit(object(t, plumbing.CommitObject, text)); err == nil {
			t.Errorf("parseCommit(%q) = %+v, want an error", text, got)
		}
	}
	for text, want := range map[string]int64{"A <a> 5 +0000": 5, "5": 5, "A <a> -5 +0000": 0, "A <a> 99999999999999 +0000": 0, "A <a>": 0, "": 0} {
		got := timeIn(text)
		if want == 0 && !got.IsZero() || want > 0 && got.Unix() != want {
			t.Errorf("timeIn(%q) = %v, want %d", text, got, want)
		}
	}
}

func TestParseTree(t *testing.T) {
	h := strings.Repeat("\x01", 20)
	got, err := parseTree([]byte("100644 a b\x00" + h + "40000 ../x\x00" + h))
	want := []treeEntry{{"a b", filemode.Regular, plumbing.Hash([]byte(h))}, {"../x", filemode.Dir, plumbing.Hash([]byte(h))}}
	if err != nil || !slices.Equal(got, want) { // package stage decides which names are allowed
		t.Errorf("tree = %+v, %v", got, err)
	}
	for _, text := range []string{"100644 a\x00" + h[1:], "100644 a", "100644\x00" + h, "100644 \x00" + h, "x a\x00" + h, "100644 a\x00" + h + "1"} {
		if got, err := parseTree([]byte(text)); err == nil {
			t.Errorf("parseTree(%q) = %+v, want an error", text, got)
		}
	}
}

// A repository on this machine may have other bytes under a hash that a signed commit
// leads to.
func TestObjectUnderAnotherName(t *testing.T) {
	for _, kind := range []string{"blob", "tree", "commit"} {
		s := serveGit(t)
		evil := s.tree(line{"100644", "SKILL.md", "evil"})
		names := map[string][2]string{ // :: kind → an object, and the one whose name it gets
			"blob": {s.git("evil", "hash-object", "-w", "--stdin"), s.git(sourcestest.Document, "hash-object", "-w", "--stdin")},
			"tree": {evil, s.tree(line{"100644", "SKILL.md", sourcestest.Document})},
		}
		names["commit"] = [2]string{s.commit(evil, "evil"), s.commit(names["tree"][1], "main")}
		file := func(hash string) string { return filepath.Join(s.dir, "objects", hash[:2], hash[2:]) }
		if err := os.Remove(file(names[kind][1])); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(file(names[kind][0]), file(names[kind][1])); err != nil {
			t.Fatal(err)
		}
		r, err := address.Parse("file://" + s.dir + "@main")
		if err != nil {
			t.Fatal(err)
		}
		snap, err := Open(t.Context(), &web.Access{}, r)
		if err == nil {
			_, _, err = sourcestest.Fill(t, snap, "")
			_ = snap.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("another %s: %v, want an error", kind, err)
		}
	}
}

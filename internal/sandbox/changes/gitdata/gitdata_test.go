package gitdata

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"strings"
	"testing"
)

func TestRefName(t *testing.T) {
	for _, name := range []string{"refs/heads/main", "refs/heads/feature/x-1", "refs/tags/v1.0", "refs/heads/日本"} {
		if !refName(name) {
			t.Errorf("refName(%q) = false", name)
		}
	}
	for _, name := range []string{
		"", "HEAD", "main", "refs/heads/", "refs/remotes/origin/x", "refs/stash", "refs/heads/HEAD", "refs/heads/-x", "refs/heads/../../config",
		"refs/heads/a..b", "refs/heads/.a", "refs/heads/a/.b", "refs/heads/a.lock", "refs/heads/a.LOCK/b", "refs/heads/a b", "refs/heads/a~1", "refs/heads/a^",
		"refs/heads/a:b", "refs/heads/a?", "refs/heads/a*", "refs/heads/a[", `refs/heads/a\b`, "refs/heads/a//b", "refs/heads/a/", "refs/heads/a.",
		"refs/heads/@", "refs/heads/a@{b", "refs/heads/a\x1b", "refs/heads/a\u202e", "refs/heads/\xff", "refs/heads/.git/x", "refs/heads/" + strings.Repeat("a", 300),
	} {
		if refName(name) {
			t.Errorf("refName(%q) = true", name)
		}
	}
}

// entry is one entry of a tree as git stores it.
func entry(mode, name string) string {
	return mode + " " + name + "\x00" + strings.Repeat("\x01", sha1.Size)
}

func TestParseTree(t *testing.T) {
	for _, good := range []string{"", entry("100644", "a") + entry("100755", "b") + entry("40000", "c") + entry("120000", "d") + entry("160000", "e"),
		entry("100644", "a.b") + entry("40000", "a"), entry("100644", ".gitignore")} {
		if _, err := parseTree([]byte(good), sha1.Size); err != nil {
			t.Errorf("parseTree(%q) = %v", good, err)
		}
	}
	for _, bad := range []string{
		entry("40000", ".git"), entry("40000", ".GIT"), entry("40000", "git~1"), entry("40000", ".g\u200cit"), entry("100644", ".."), entry("100644", "."),
		entry("100644", ""), entry("100644", "a/b"), entry("100644", `a\b`), entry("100600", "a"), entry("10064x", "a"), entry("104755", "a"),
		entry("100644", "b") + entry("100644", "a"), entry("100644", "a") + entry("100644", "a"), "100644 a\x00short", "100644", entry("777777777777", "a"),
	} {
		if e, err := parseTree([]byte(bad), sha1.Size); err == nil {
			t.Errorf("parseTree(%q) = %v, want an error", bad, e)
		}
	}
}

func TestIndex(t *testing.T) {
	id := func(c string) string { return strings.Repeat(c, 2*sha1.Size) }
	x := &index{size: sha1.Size, entries: []indexEntry{
		{mode: modeFile, id: id("a"), path: "same"}, {mode: modeFile, id: id("b"), path: "moves"}, {mode: modeFile, id: id("c"), path: "goes"},
		{mode: modeFile, id: id("d"), path: "staged"}, {mode: modeExec, id: id("e"), path: strings.Repeat("long/", 1000) + "x"},
		{mode: modeFile, id: id("1"), path: "conflict", flags: 0x1000}, {mode: modeFile, id: id("2"), path: "conflict", flags: 0x2000},
		{mode: modeFile, id: id("3"), path: "intent", more: 0x2000},
	}}
	data := x.encode()
	got, err := parseIndex(data, sha1.Size)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.encode(), data) || !SameIndex(data, got.encode()) {
		t.Error("an index is another after reading and writing it")
	}
	old := map[string]treeEntry{"same": {mode: modeFile, id: id("a")}, "moves": {mode: modeFile, id: id("b")}, "goes": {mode: modeFile, id: id("c")}, "staged": {mode: modeFile, id: id("0")}}
	now := map[string]treeEntry{"same": {mode: modeFile, id: id("a")}, "moves": {mode: modeExec, id: id("9")}, "staged": {mode: modeFile, id: id("9")}, "comes": {mode: modeFile, id: id("8")}}
	if err := got.follow(old, now); err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	for _, e := range got.entries {
		have[e.path] += e.id[:1]
	}
	for p, want := range map[string]string{"same": "a", "moves": "9", "goes": "", "staged": "d", "comes": "8", "conflict": "12", "intent": "3"} {
		if have[p] != want {
			t.Errorf("%q has the object %q, want %q", p, have[p], want)
		}
	}
	if SameIndex(data, got.encode()) {
		t.Error("two different indexes are the same")
	}
	if err := got.follow(nil, map[string]treeEntry{"same/below": {mode: modeFile, id: id("7")}}); err == nil {
		t.Error("a file and a folder with one name are no error")
	}
	damaged := bytes.Clone(data)
	damaged[20] ^= 1
	if _, err := parseIndex(damaged, sha1.Size); err == nil {
		t.Error("a damaged index is read")
	}
}

func TestPatch(t *testing.T) {
	base := []byte("0123456789")
	// Copies 5 bytes from offset 2, and adds "ab".
	if got, err := patch(base, []byte{10, 7, 0x80 | 1 | 1<<4, 2, 5, 2, 'a', 'b'}); err != nil || string(got) != "23456ab" {
		t.Errorf("patch = %q, %v", got, err)
	}
	for _, bad := range [][]byte{nil, {10}, {9, 1, 1, 'a'}, {10, 5, 0}, {10, 5, 0x80 | 1 | 1<<4, 8, 5}, {10, 1, 2, 'a', 'b'}, {10, 9, 1, 'a'}, {10, 3, 5, 'a'}} {
		if got, err := patch(base, bad); err == nil {
			t.Errorf("patch(%v) = %q, want an error", bad, got)
		}
	}
}

func FuzzData(f *testing.F) {
	f.Add([]byte(entry("100644", "a")))
	f.Add((&index{size: sha1.Size, entries: []indexEntry{{mode: modeFile, id: hex.EncodeToString(make([]byte, sha1.Size)), path: "a"}}}).encode())
	f.Add([]byte{10, 7, 0x91, 2, 5, 2, 'a', 'b'})
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = parseTree(data, sha1.Size)
		_, _ = patch([]byte("0123456789"), data)
		_, _ = parseHeaders("commit", data, sha1.Size)
		if x, err := parseIndex(data, sha1.Size); err == nil {
			if y, err := parseIndex(x.encode(), sha1.Size); err != nil || len(y.entries) != len(x.entries) {
				t.Errorf("an index that was read cannot be read again: %v", err)
			}
		}
	})
}

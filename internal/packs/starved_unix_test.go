//go:build linux || darwin

package packs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

const (
	looseJSON   = `{"name": "one", "description": "D.", "parameters": {"type": "object"}, "command": ["true"]}`
	starvedTree = `-- a/SKILL.md --
PACK a
-- a/tools/x --
-- b/README.md --
PACK b
-- c/sub/SKILL.md --
PACK c
-- d/SKILL.md --
PACK d
-- 1/2/3/4/5/6/SKILL.md --
PACK deep
-- 1/2/3/4/5/6/tools/x --
-- one.tool.json --
` + looseJSON + "\n"
)

type starveCase struct {
	name string
	docs map[string][]string // from the configuration
	file string              // a file to write; a slash at the end: a directory
	text string
}

// starveCases returns edits after which something has to be opened.
func starveCases() []starveCase {
	return []starveCase{
		{"a new pack", nil, "new/", ""},
		{"a document", nil, "a/SKILL.md", "---\nname: a\ndescription: new\n---\n"},
		{"a loose tool", nil, "one.tool.json", strings.ReplaceAll(looseJSON, "D.", "New.")},
		{"a folder of tools", nil, "a/tools/y.tool.json", "{}"},
		{"a folder of tools that is too deep for packs", nil, "1/2/3/4/5/6/tools/y.tool.json", "{}"},
		{"a directory", nil, "c/sub/z.md", ""},
		{"a document that the configuration names", map[string][]string{"d": {"SKILL.md"}}, "", ""},
	}
}

// starve makes its process, which is a child, run out of descriptors after each of
// the edits.
func starve(t *testing.T, dir string) {
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	with := func(descriptors int, do func()) {
		few := limit
		few.Cur = uint64(descriptors)
		must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
		do()
		must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	}
	opts := Options{Roots: []Root{{Dir: dir, AttachAll: true}}, clock: func() time.Time { return time.Now().Add(later) }}
	for _, tc := range starveCases() {
		opts.Roots[0].Docs = tc.docs
		l, err := NewLibrary(t.Context(), opts, nil)
		must(t, err)
		before := l.Catalog(t.Context())
		if path := filepath.Join(dir, filepath.FromSlash(tc.file)); strings.HasSuffix(tc.file, "/") {
			must(t, os.Mkdir(path, 0o755))
		} else if tc.file != "" {
			must(t, os.WriteFile(path, []byte(tc.text), 0o644))
		}
		with(0, func() { _, err = l.Refresh(t.Context(), nil) })
		starved, same := packfs.IsStarved(err), true
		// With one more descriptor each time, a different step fails.
		for n := 0; packfs.IsStarved(err) && n < 100; n++ {
			same = same && l.Catalog(t.Context()) == before
			with(n, func() { _, err = l.Refresh(t.Context(), []string{}) }) // nobody reports again what happened
		}
		diff := cmp.Diff(full(scan(t, opts)), full(l.Catalog(t.Context())))
		fmt.Printf("%s: %v %v %v %v\n", tc.name, starved, same, err, diff == "")
	}
	// The first scan reports what it could not see, and the next one sees it.
	var first *Library
	var err error
	with(0, func() { first, err = NewLibrary(t.Context(), opts, nil) })
	must(t, err)
	c := first.Catalog(t.Context())
	fmt.Printf("first: %d packs, %d problems\n", len(c.All()), len(c.Problems()))
	must(t, first.Rescan(t.Context()))
	fmt.Printf("next: %d packs\n", len(first.Catalog(t.Context()).All()))
}

// A process without free descriptors cannot look at its packs, and keeps what it knew
// about them until it can.
func TestRefreshWithoutDescriptors(t *testing.T) {
	dir := writeTree(t, starvedTree)
	needStamps(t, dir)
	cmd, in, out := startProcess(t, "starve", dir, memo.Index{})
	var said, want []string
	for _, tc := range starveCases() {
		want = append(want, tc.name+": true true <nil> true")
	}
	want = append(want, "first: 0 packs, 1 problems", "next: 6 packs")
	for range want {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("the process said %q and %q, and then %v", said, line, err)
		}
		said = append(said, strings.TrimSpace(line))
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("(-want +said):\n%s", diff)
	}
	must(t, in.Close())
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the process ended with %v", err)
	}
}

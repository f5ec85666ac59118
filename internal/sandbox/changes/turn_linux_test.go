package changes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// Turns exclude each other in the same folder, above and below, under any name, but
// not side by side.
func TestTurns(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"p/sub/deep/": "", "p/side/": "", "q/": "", "link@": "p"})
	state := filepath.Join(t.TempDir(), "state")
	var stores [2]*Store // two servers
	for i := range stores {
		var err error
		stores[i], err = Open(t.Context(), Options{Dir: state})
		do(t, err)
	}
	for _, tc := range []struct {
		first, second string
		waits         bool
	}{
		{"p", "p", true}, {"p", "p/sub", true}, {"p/sub/deep", "p", true}, {"p/sub", "link/sub", true}, {"link", "p/side", true},
		{"p/sub", "p/side", false}, {"p", "q", false},
	} {
		first, err := stores[0].Begin(t.Context(), Run{ID: "first"}, nil, Folder{Path: filepath.Join(dir, tc.first)})
		do(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		holder := Holder{}
		var wait *WaitError
		second, err := stores[1].Begin(ctx, Run{ID: "second"}, func(h Holder) { holder = h; cancel(stopped) }, Folder{Path: filepath.Join(dir, tc.second)})
		switch {
		case !tc.waits && err != nil, tc.waits && !errors.Is(err, stopped):
			t.Errorf("%s, then %s: %v, want that it waits: %v", tc.first, tc.second, err, tc.waits)
		case tc.waits && (holder.Run.ID != "first" || holder.PID != os.Getpid() || time.Since(holder.Since) > time.Minute || !strings.Contains(err.Error(), `"first"`)):
			t.Errorf("%s, then %s: holder %+v, %v", tc.first, tc.second, holder, err)
		case tc.waits && (!errors.As(err, &wait) || wait.Holder.Run.ID != "first"):
			t.Errorf("%s, then %s: %#v, want a WaitError with the holder", tc.first, tc.second, err)
		}
		if second != nil {
			do(t, second.Close())
		}
		cancel(nil)
		do(t, first.Close())
		// A cancelled wait leaves no lock behind.
		next, err := stores[1].Begin(t.Context(), Run{}, nil, Folder{Path: filepath.Join(dir, tc.first)})
		do(t, err)
		do(t, next.Close())
	}
}

// Several folders are locked in a fixed order, so turns never deadlock.
func TestTurnsOfSeveral(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"a/": "", "b/x/": "", "c/": ""})
	s := openStore(t, nil)
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	in := 0
	for i := range 8 {
		wg.Go(func() {
			for range 5 {
				var folders []Folder
				for j := range 3 {
					folders = append(folders, Folder{Path: filepath.Join(dir, []string{"a", "b/x", "c", "b"}[(i+j)%4])})
				}
				turn, err := s.Begin(ctx, Run{ID: fmt.Sprint(i)}, nil, folders...)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if in++; in > 1 { // any three of the four have a folder in common, or nested ones
					t.Error("two turns at a time")
				}
				mu.Unlock()
				mu.Lock()
				in--
				mu.Unlock()
				if err := turn.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// The next run's changes do not include the last run's.
func TestRunsInTurn(t *testing.T) {
	for _, format := range formats() {
		s, dir := openStore(t, nil), t.TempDir()
		plant(t, dir, map[string]string{"f": "0"})
		for i := range 5 {
			w := begin(t, s, format, Folder{Path: dir})
			plant(t, w.at, map[string]string{"f": fmt.Sprint("run ", i), fmt.Sprint("n", i): "x"})
			if set := w.finish(Ending{}); set.Count(Applied) != 2 || len(set.Changes) != 2 {
				t.Errorf("%s, run %d: %v", format, i, states(set))
			}
		}
	}
}

// A layer that filled its file system is an error, and changes nothing.
func TestFullDisk(t *testing.T) {
	state, dir := filepath.Join(t.TempDir(), "state"), t.TempDir()
	s := openStore(t, func(o *Options) { o.Dir = state })
	mem := mountTmpfs(t, dir, "size=1m")
	plant(t, mem, map[string]string{"f": "before"})
	before := look(t, mem)
	w := begin(t, s, "overlay", Folder{Path: mem})
	plant(t, w.at, map[string]string{"f": "after", "big": strings.Repeat("x", 2<<20), "g": "after"})
	w.done()
	sets, err := w.turn.Finish(t.Context(), Ending{}, w.layer)
	if err == nil || len(sets) != 0 || !strings.Contains(err.Error(), "no space") {
		t.Errorf("Finish = %v, %v, want that there is no space", sets, err)
	}
	same(t, "the folder", before, look(t, mem))
	if left, _ := os.ReadDir(filepath.Join(state, "open")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func TestLayerOddities(t *testing.T) {
	s, dir := openStore(t, nil), t.TempDir()
	plant(t, dir, map[string]string{"kept/x": "1"})
	w := begin(t, s, "overlay", Folder{Path: dir})
	up := filepath.Join(filepath.Dir(w.at), "mem", "upper")
	plant(t, up, map[string]string{"redirected/f": "x", "meta": "x", "fine": "x", "xwhite/x": ""})
	setxattr(t, filepath.Join(up, "redirected"), "user.overlay.redirect", "/kept")
	setxattr(t, filepath.Join(up, "meta"), "user.overlay.metacopy", "")
	const maxDepth = 200 // of what is applied
	deep := up
	for range maxDepth + 5 {
		deep = filepath.Join(deep, "d")
	}
	do(t, os.MkdirAll(deep, 0o755))
	got := states(w.finish(Ending{}))
	if got["redirected"] != "mkdir refused layer" || got["redirected/f"] != "" || got["meta"] != "create refused layer" || got["fine"] != "create applied" {
		t.Errorf("%v", got)
	}
	if last := strings.TrimSuffix(strings.Repeat("d/", maxDepth+1), "/"); got[last] != "mkdir refused name" {
		t.Errorf("the folder at the limit is %q", got[last])
	}
}

// A mode that denies access to the owner hides no change.
func TestClosedNames(t *testing.T) {
	for _, format := range formats() {
		s, dir := openStore(t, nil), t.TempDir()
		w := begin(t, s, format, Folder{Path: dir})
		plant(t, w.at, map[string]string{"d/CLAUDE.md": "x", "f": "x"})
		do(t, os.Chmod(filepath.Join(w.at, "f"), 0))
		do(t, os.Chmod(filepath.Join(w.at, "d"), 0))
		got := states(w.finish(Ending{}))
		if got["d/CLAUDE.md"] != "create held protected" || got["f"] != "create applied" || got["d"] != "mkdir applied" {
			t.Errorf("%s: %v", format, got)
		}
		info, err := os.Stat(filepath.Join(dir, "f"))
		do(t, err)
		if info.Mode() != 0 {
			t.Errorf("%s: f has the mode %v", format, info.Mode())
		}
		info, err = os.Stat(filepath.Join(dir, "d"))
		do(t, err)
		if info.Mode().Perm() != 0o500 { // otherwise nothing in it could be undone
			t.Errorf("%s: d has the mode %v", format, info.Mode())
		}
	}
}

// 100 changed files are applied in at most twice the time of a copy of them
// that waits for the disk.
func BenchmarkApply(b *testing.B) {
	content := strings.Repeat("x", 20<<10)
	name := func(i int) string { return fmt.Sprintf("d%d/f%d", i%10, i) }
	files := map[string]string{}
	for i := range 100 {
		files[name(i)] = content
	}
	b.Run("copy", func(b *testing.B) {
		dir := b.TempDir()
		plant(b, dir, files)
		n := 0
		for b.Loop() {
			for i := range 100 {
				n++
				in, err := os.ReadFile(filepath.Join(dir, name(i)))
				do(b, err)
				f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%d", name(i), n)))
				do(b, err)
				_, err = f.Write(in)
				do(b, errors.Join(err, f.Sync(), f.Close()))
			}
		}
	})
	b.Run("apply", func(b *testing.B) {
		s, dir := openStore(b, func(o *Options) { o.MaxBytes = 8 << 20 }), b.TempDir()
		plant(b, dir, files)
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			w := begin(b, s, "copy", Folder{Path: dir})
			for i := range 100 {
				do(b, os.WriteFile(filepath.Join(w.at, name(i)), fmt.Appendf(nil, "%d%s", n, content), 0o644))
			}
			b.StartTimer()
			if set := w.finish(Ending{}); set.Count(Applied) != 100 {
				b.Fatal(states(set))
			}
		}
	})
}

// Overlay attributes that a run sets in a copy never reach the user's folder, which
// may later be the lower folder of an overlay.
func TestOverlayAttributesStay(t *testing.T) {
	s, dir := openStore(t, nil), t.TempDir()
	plant(t, dir, map[string]string{"d/f": "1"})
	w := begin(t, s, "copy", Folder{Path: dir})
	plant(t, w.at, map[string]string{"new/f": "1", "g": "1"})
	for _, p := range []string{"d", "d/f", "new", "new/f", "g"} {
		setxattr(t, filepath.Join(w.at, p), "user.overlay.redirect", "/x")
		setxattr(t, filepath.Join(w.at, p), "user.overlay.opaque", "y")
		setxattr(t, filepath.Join(w.at, p), "user.mine", "z")
	}
	set := w.finish(Ending{})
	if set.Count(Applied) != len(set.Changes) || len(set.Changes) != 5 {
		t.Errorf("%v", states(set))
	}
	for _, p := range []string{"d", "d/f", "new", "new/f", "g"} {
		f, err := os.Open(filepath.Join(dir, p))
		do(t, err)
		attrs, err := tree.ReadAttrs(f)
		do(t, errors.Join(err, f.Close()))
		if len(attrs) != 1 || string(attrs["user.mine"]) != "z" {
			t.Errorf("%q has the attributes %q", p, attrs)
		}
	}
}

// Getting a free turn takes a fraction of a millisecond.
func BenchmarkBegin(b *testing.B) {
	s, dir := openStore(b, nil), b.TempDir()
	for b.Loop() {
		turn, err := s.Begin(b.Context(), Run{ID: "r"}, nil, Folder{Path: dir})
		do(b, err)
		do(b, turn.Close())
	}
}

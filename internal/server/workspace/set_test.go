package workspace

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

func Example() {
	folder, err := os.MkdirTemp("", "workspaces")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	chat, err := NewSet(Place{Each: folder})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer chat.Close()
	call := sha256.Sum256([]byte("a call"))
	w, err := chat.Keep(call)
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := chat.Keep(call)
	fmt.Println(again == w, err)
	done, ok := chat.Begin(w) // its program runs
	done()
	fmt.Println(ok, chat.Named(w.Handle) == w, len(chat.All()))
	// Output:
	// true <nil>
	// true true 2
}

// The number of workspaces is bounded. Those of calls that were never made, and those
// that were idle, make room; one that a program runs in, or that was used recently,
// does not.
func TestWorkspacesAreBounded(t *testing.T) {
	root := t.TempDir()
	s, err := NewSet(Place{Each: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	keep := func(i int) (*Workspace, error) { return s.Keep(sha256.Sum256(fmt.Append(nil, i))) }
	var all []*Workspace
	for i := range maxMore {
		w, err := keep(i)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
		if i != 1 {
			done, ok := s.Begin(w)
			if !ok {
				t.Fatal("the program cannot have its workspace")
			}
			if i != 0 {
				done()
			}
		}
	}
	folders := func() int {
		entries, err := os.ReadDir(root)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	// The workspace that was kept for a call makes room, and that call then runs
	// nowhere.
	waiting := all[1]
	next, err := keep(1000)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Begin(waiting); ok || s.Named(waiting.Handle) != nil {
		t.Error("a workspace that was let go is used")
	}
	if got := folders(); got != 1+maxMore {
		t.Errorf("%d folders, want %d", got, 1+maxMore)
	}
	if done, ok := s.Begin(next); ok {
		done()
	}
	_, err = keep(1001)
	if e, ok := errors.AsType[*toolerr.Error](err); !ok || e.Code != toolerr.CodeWorkspaceLimit {
		t.Errorf("one more than %d workspaces: %v, want %s", maxMore, err, toolerr.CodeWorkspaceLimit)
	}
	age := func(by time.Duration) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, w := range s.more {
			w.used = w.used.Add(-by)
		}
	}
	age(kept)
	if _, err := keep(1002); err != nil {
		t.Errorf("after an hour: %v", err)
	}
	if s.Named(all[0].Handle) == nil {
		t.Error("the workspace of a program that runs made room")
	}
	age(idle)
	if s.Named(next.Handle) != nil {
		t.Error("a workspace that nobody used for a day is known")
	}
	if got := slices.Collect(maps.Keys(s.more)); len(got) != 1 || got[0] != all[0].Handle {
		t.Errorf("after a day there are %q, want that of the program that runs", got)
	}
	if got := folders(); got != 2 {
		t.Errorf("%d folders are left, want 2", got)
	}
}

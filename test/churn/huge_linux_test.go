package churn_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/packs-mcp/packs-mcp/test/served"
)

const allowAll = "rules:\n  - allow: {kind: [open, read]}\n"

func document(name, description string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: %s\n---\nThe body.\n", name, description)
}

// described returns each pack's description as the client gets it.
func described(t *testing.T, c *served.Client) map[string]string {
	t.Helper()
	all, err := (&reader{Client: c}).packsNow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, l := range all {
		out[l.PackID] = l.Description
	}
	return out
}

// While a pack of gigabytes is read in full, as it must be before any of it is
// returned, other packs can be opened, and their edits are noticed.
func TestHugePackKeepsNobodyWaiting(t *testing.T) {
	w := newWorld(t)
	w.Put("home/config.yaml", allowAll)
	w.Put("packs/small/SKILL.md", document("small", "Before."))
	w.Put("packs/huge/SKILL.md", document("huge", "Huge."))
	huge := filepath.Join(w.Packs, "huge")
	for i := range 3 {
		f, err := os.Create(filepath.Join(huge, fmt.Sprintf("%d.bin", i)))
		if err = errors.Join(err, f.Truncate(1300<<20), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(syscall.Mkfifo(filepath.Join(huge, "tools.json"), 0o644), os.Symlink("..", filepath.Join(huge, "loop"))); err != nil {
		t.Fatal(err)
	}
	c := w.Stdio("once")
	if got := described(t, c); len(got) != 2 {
		t.Fatalf("the packs are %v, want two", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	given := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, readFile, map[string]any{"pack_id": "huge", "path": "SKILL.md"})
		given <- err
	}()
	open := func() {
		t.Helper()
		if a, err := c.Call(t.Context(), openDocs, map[string]any{"pack_id": "small"}); err != nil || a.Code != "" || !strings.Contains(string(a.Content), "The body.") {
			t.Fatalf("opening the small one: %v, %s", err, a.Content)
		}
	}
	open()
	w.Put("packs/small/SKILL.md", document("small", "After."))
	w.Until("an edit is told of", func() bool { return c.Heard("notifications/resources/list_changed") > 0 })
	if got := described(t, c)["small"]; got != "After." {
		t.Errorf("the small one says %q, want what was written", got)
	}
	open()
	select {
	case err := <-given:
		t.Errorf("nothing came before the file of the huge one: %v", err)
	default:
	}
	cancel()
	<-given
	open() // if the client gives up, it reports that; otherwise the server would be slow to end
	c.End()
}

// If the folder of all packs disappears, so do the packs, but not the server; they
// return with the folder.
func TestRootGoesWhileServing(t *testing.T) {
	w := newWorld(t)
	w.Put("home/config.yaml", allowAll)
	w.Put("packs/a/SKILL.md", document("a", "One."))
	c := w.Stdio("once")
	if got := described(t, c); len(got) != 1 {
		t.Fatalf("the packs are %v, want one", got)
	}
	for _, description := range []string{"Two.", "Three."} {
		if err := os.RemoveAll(w.Packs); err != nil {
			t.Fatal(err)
		}
		w.Until("there is no pack", func() bool { return len(described(t, c)) == 0 })
		if a, err := c.Call(t.Context(), openDocs, map[string]any{"pack_id": "a"}); err != nil || a.Code != "not_found" {
			t.Errorf("opening what is gone: %v, %s, want not_found", err, a.Content)
		}
		w.Put("packs/a/SKILL.md", document("a", description))
		w.Until("the pack is back", func() bool { return described(t, c)["a"] == description })
		if a, err := c.Call(t.Context(), openDocs, map[string]any{"pack_id": "a"}); err != nil || a.Code != "" {
			t.Errorf("opening what is back: %v, %s", err, a.Content)
		}
	}
	c.End()
}

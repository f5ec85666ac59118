package service

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/packs"
)

// A problem is logged once, and again only if it was fixed meanwhile.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	put := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, "p"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "p", "SKILL.md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	r := &reporter{logger: slog.New(slog.NewTextHandler(&log, nil)), attach: []string{"all", "P", "pp"}}
	gone := filepath.Join(dir, "gone")
	lines := func() (all []string) {
		t.Helper()
		log.Reset()
		c, err := packs.Scan(t.Context(), packs.Options{Roots: []packs.Root{{Dir: dir, AttachAll: true}, {Dir: gone}}})
		if err != nil {
			t.Fatal(err)
		}
		r.report(c)
		for line := range strings.Lines(log.String()) {
			all = append(all, line)
		}
		return all
	}
	const good, bad = "---\nname: p\ndescription: d\n---\n", "---\nname: p\n---\n"
	for _, step := range []struct {
		name, text string
		want       []string // words in the lines
	}{
		{"at the start", good, []string{"root-missing", "--attach names an unknown pack"}},
		{"nothing new", good, nil},
		{"a pack became invalid", bad, []string{"the pack is attached and not valid: SKILL.md:1:1: description-missing"}},
		{"it still is", bad, nil},
		{"it is valid", good, nil},
		{"it became invalid again", bad, []string{"description-missing"}},
	} {
		put(step.text)
		got := lines()
		if len(got) != len(step.want) {
			t.Errorf("%s: said %q, want %q", step.name, got, step.want)
			continue
		}
		for _, want := range step.want {
			if !strings.Contains(strings.Join(got, ""), want) {
				t.Errorf("%s: said %q, want %q", step.name, got, want)
			}
		}
	}
}

// Packs that get no tool of their own are reported once, and again if they change.
func TestReportWithoutTool(t *testing.T) {
	var log bytes.Buffer
	said := ""
	r := &reporter{logger: slog.New(slog.NewTextHandler(&log, nil))}
	r.withoutTool = func(*packs.Catalog) (message, hint string) { return said, "raise the limit" }
	c, err := packs.Scan(t.Context(), packs.Options{Roots: []packs.Root{{Dir: t.TempDir()}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		now  string
		want int // lines
	}{{"", 0}, {"no tool for a", 1}, {"no tool for a", 0}, {"no tool for a, b", 1}, {"", 0}, {"no tool for a", 1}} {
		log.Reset()
		said = step.now
		r.report(c)
		if got := strings.Count(log.String(), "\n"); got != step.want || got > 0 && !strings.Contains(log.String(), step.now) {
			t.Errorf("with %q it says %q, want %d lines", step.now, log.String(), step.want)
		}
	}
}

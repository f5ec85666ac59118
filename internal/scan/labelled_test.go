package scan

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/tools/txtar"

	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
)

// unpack writes the files of a case to a folder, and returns its comment. In a file
// named NAME.q, each line is a Go string without its quotation marks; NAME.utf16 is
// written as UTF-16.
func unpack(t *testing.T, name, dir string) (comment string) {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		data := f.Data
		at, isQuoted := strings.CutSuffix(f.Name, ".q")
		if isQuoted {
			var lines []string
			for line := range strings.Lines(string(data)) {
				line, err := strconv.Unquote(`"` + strings.TrimSuffix(line, "\n") + `"`)
				if err != nil {
					t.Fatalf("%s: %s: %v", name, f.Name, err)
				}
				lines = append(lines, line)
			}
			data = []byte(strings.Join(lines, "\n"))
		}
		if plain, is := strings.CutSuffix(at, ".utf16"); is {
			at = plain
			text := utf16.Encode([]rune("\ufeff" + string(data)))
			data = nil
			for _, unit := range text {
				data = binary.LittleEndian.AppendUint16(data, unit)
			}
		}
		write(t, filepath.Join(dir, filepath.FromSlash(at)), string(data))
	}
	return string(archive.Comment)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func cases(t *testing.T, dir string, least int) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(names) < least {
		t.Fatalf("testdata/%s has %d cases (%v), want at least %d", dir, len(names), err, least)
	}
	return names
}

// one scans a folder that holds one pack.
func one(t *testing.T, dir string) findings.Report {
	t.Helper()
	reports, err := Folder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(reports) != 1 {
		t.Fatalf("%d reports, want 1", len(reports))
	}
	return reports[0]
}

// Every attack is found by the rule and with the severity in its label.
func TestAttacks(t *testing.T) {
	for _, name := range cases(t, "attacks", 60) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "pack")
			label := unpack(t, name, dir)
			rule := field(label, "rule")
			least, ok := findings.ParseSeverity(field(label, "severity"))
			if !findings.HasRule(rule) || !ok {
				t.Fatalf("the label %q names no rule or severity", label)
			}
			found := one(t, dir).Findings
			for _, f := range found {
				if f.Rule == rule && f.Severity.AtLeast(least) {
					return
				}
			}
			t.Errorf("no finding of %s, %s; there are %v", rule, least, found)
		})
	}
}

// A harmless pack that looks like an attack has no finding of medium or above.
func TestTwins(t *testing.T) {
	for _, name := range cases(t, "twins", 40) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "pack")
			unpack(t, name, dir)
			for _, f := range one(t, dir).Findings {
				if f.Severity.AtLeast(medium) {
					t.Errorf("%s (%s) at %s:%d: %s", f.Rule, f.Severity, f.Path, f.Line, f.Quote)
				}
			}
		})
	}
}

func field(label, name string) string {
	for line := range strings.Lines(label) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

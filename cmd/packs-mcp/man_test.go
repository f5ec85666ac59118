package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every command has a manual page, and man can format it.
func TestManual(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if e := ran(t, "man", dir); e.code != 0 || e.err != "" {
		t.Fatalf("man = %+v", e)
	}
	_, all := tree()
	var pages []string
	for _, c := range all {
		page := filepath.Join(dir, manName(c)+".1")
		text, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			continue
		}
		pages = append(pages, page)
		for _, part := range []string{".SH NAME\n", ".SH SYNOPSIS\n", ".SH EXAMPLES\n", ".SH OPTIONS"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %q", page, part)
			}
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("there is no groff on the PATH, which would check the pages")
	}
	for _, page := range pages {
		out, err := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z", page).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("groff %s: %v\n%s", page, err, out)
		}
	}
}

func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		".SH not a heading": `\&.SH not a heading`,
		`a\fBb`:             `a\efBb`,
		"it's --x":          `it\(aqs \-\-x`,
		"'br":               `\(aqbr`,
		"…":                 `\[u2026]`,
	} {
		if got := roffLine(text); got != want {
			t.Errorf("roffLine(%q) = %q, want %q", text, got, want)
		}
	}
}

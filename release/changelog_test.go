package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The changelog follows Keep a Changelog 1.1.0, which scripts and people rely on.
func TestChangelog(t *testing.T) {
	text, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`^## \[(Unreleased|[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?)\](.*)$`)
	date := regexp.MustCompile(`^ - [0-9]{4}-[0-9]{2}-[0-9]{2}( \[YANKED\])?$`)
	kind := regexp.MustCompile(`^### (Added|Changed|Deprecated|Removed|Fixed|Security)$`)
	var last string
	seen := make(map[string]bool) // kinds of changes in the version
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "## "):
			m := version.FindStringSubmatch(line)
			if m == nil || (m[1] == "Unreleased") != (m[3] == "") || m[3] != "" && !date.MatchString(m[3]) || m[1] == "Unreleased" && last != "" {
				t.Errorf("%q is neither [Unreleased], at the top, nor [X.Y.Z] - YYYY-MM-DD", line)
			}
			last = line
			clear(seen)
		case strings.HasPrefix(line, "### "):
			if !kind.MatchString(line) || seen[line] {
				t.Errorf("%q below %q is not a kind of change, or occurs twice", line, last)
			}
			seen[line] = true
		}
	}
	if last == "" {
		t.Error("it has no version")
	}
}

// The release notes of a version are its section of the changelog. A version without a
// section has none.
func TestReleaseNotes(t *testing.T) {
	script, err := filepath.Abs("../scripts/release-notes.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	const text = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n* Next.\n\n## [1.2.0] - 2026-11-28\n\n### Fixed\n\n* This.\n\n## [1.2.0-rc.1] - 2026-11-20\n\n* That.\n\n" +
		"## [1.1.0] - soon\n\n* Not yet.\n\n## [1.0.0] - 2026-01-02\n\n[Unreleased]: https://example.org\n"
	if err := os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for tag, want := range map[string]string{
		"v1.2.0":      "\n### Fixed\n\n* This.\n",
		"v1.2.0-rc.1": "\n* That.\n",
		"v1.1.0":      "", "v1.0.0": "", "v1.2": "", "v1x2.0": "", "vUnreleased": "", "v": "",
	} {
		cmd := exec.Command("sh", script, tag)
		cmd.Dir = dir
		got, err := cmd.Output()
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("release-notes.sh %s = %q, %v, want %q", tag, got, err, want)
		}
	}
}

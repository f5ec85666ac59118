package release

import (
	"go/version"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A tag can be moved to other code. So the workflows name each action by its commit, with
// the version beside it, and use the same commit everywhere.
func TestActionsArePinned(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(files) < 2 {
		t.Fatalf("workflows: %v, %v", files, err)
	}
	uses := regexp.MustCompile(`(?m)^\s*(?:- )?uses:\s*(.*)$`)
	pinned := regexp.MustCompile(`^([A-Za-z0-9._/-]+)@([0-9a-f]{40}) # (v[0-9]+\.[0-9]+\.[0-9]+)$`)
	seen := make(map[string]string) // :: action → commit and version
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			parts := pinned.FindStringSubmatch(m[1])
			if parts == nil {
				t.Errorf("%s: %q is not ACTION@COMMIT # vX.Y.Z", filepath.Base(file), m[1])
				continue
			}
			action, pin := parts[1], parts[2]+" "+parts[3]
			if before, ok := seen[action]; ok && before != pin {
				t.Errorf("%s is at %s and at %s", action, before, pin)
			}
			seen[action] = pin
		}
	}
	if len(seen) < 5 {
		t.Errorf("only %d actions were found", len(seen))
	}
}

// The Dockerfile names each base image by its digest. Its Go version is the one that builds
// releases, and new enough for go.mod.
func TestBaseImagesArePinned(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	from := regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?(\S+)(?: AS (\S+))?$`)
	pinned := regexp.MustCompile(`^([a-z/]+):([A-Za-z0-9.-]+)@sha256:[0-9a-f]{64}$`)
	stages := from.FindAllStringSubmatch(string(text), -1)
	if len(stages) != strings.Count("\n"+string(text), "\nFROM ") || len(stages) < 2 {
		t.Fatalf("%d stages could be read: %q", len(stages), stages)
	}
	goes := 0
	for _, stage := range stages {
		parts := pinned.FindStringSubmatch(stage[1])
		if parts == nil {
			t.Errorf("%q is not IMAGE:TAG@sha256:DIGEST", stage[1])
			continue
		}
		if parts[1] != "golang" {
			continue
		}
		goes++
		mod, err := os.ReadFile("../go.mod")
		if err != nil {
			t.Fatal(err)
		}
		asked := regexp.MustCompile(`(?m)^go ([0-9.]+)$`).FindSubmatch(mod)
		if asked == nil {
			t.Fatal("go.mod has no line with a version of Go")
		}
		has, _, _ := strings.Cut(parts[2], "-")
		if version.Compare("go"+has, "go"+string(asked[1])) < 0 {
			t.Errorf("the image has Go %s, and go.mod asks for %s", has, asked[1])
		}
		workflow, err := os.ReadFile("../.github/workflows/release.yml")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:go-version|go-version-file): ([^,}\s]+)`).FindAllSubmatch(workflow, -1) {
			if string(m[1]) != has {
				t.Errorf("the release workflow builds with Go %s, and the image with %s", m[1], has)
			}
		}
	}
	if goes != 1 {
		t.Errorf("%d stages begin with Go, want 1", goes)
	}
}

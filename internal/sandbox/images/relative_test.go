package images

import (
	"path/filepath"
	"testing"
)

// Where the copy is at another path, a relative path from the working folder into the
// pack would lead to the original, which anyone can change.
func TestImagesRelative(t *testing.T) {
	root := t.TempDir()
	at, from := filepath.Join(root, "project", ".packs", "x"), filepath.Join(root, "copies", "1")
	im := List{{At: at, From: from}}
	project := filepath.Join(root, "project")
	for _, c := range []struct{ dir, arg, want string }{
		{project, filepath.Join(".packs", "x", "run.sh"), filepath.Join(from, "run.sh")},
		{project, "." + string(filepath.Separator) + filepath.Join(".packs", "x"), from},
		{project, "--script=" + filepath.Join(".packs", "x", "a"), "--script=" + filepath.Join(from, "a")},
		{project, filepath.Join("sub", "..", ".packs", "x", "run.sh"), filepath.Join(from, "run.sh")},
		{filepath.Join(project, "sub"), filepath.Join("..", ".packs", "x", "run.sh"), filepath.Join(from, "run.sh")},
		{project, filepath.Join(".packs", "xy", "run.sh"), filepath.Join(".packs", "xy", "run.sh")},
		{project, "run.sh", "run.sh"},
		{project, "", ""},
		{project, "--script=", "--script="},
		{at, "run.sh", "run.sh"}, // the run is in the copy
	} {
		if got := im.relative(c.dir, c.arg); got != c.want {
			t.Errorf("relative(%q, %q) = %q, want %q", c.dir, c.arg, got, c.want)
		}
	}
}

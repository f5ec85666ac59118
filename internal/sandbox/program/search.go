package program

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/file"
)

// FilterPath returns the folders of the PATH value path that programs are
// looked up in, as a PATH value: absolute, existing, not writable by others,
// not inside one of the absolute folders exclude, each once.
func FilterPath(path string, exclude []string) string {
	return strings.Join(pathDirs(path, exclude), string(filepath.ListSeparator))
}

func pathDirs(path string, exclude []string) []string {
	exclude = paths.Spellings(exclude)
	var dirs []string
	for _, dir := range filepath.SplitList(path) {
		// A relative entry would mean a folder that the run chooses.
		if !filepath.IsAbs(dir) {
			continue
		}
		dir = filepath.Clean(dir)
		resolved, err := filepath.EvalSymlinks(dir)
		if err != nil || slices.Contains(dirs, dir) || paths.Inside(exclude, dir) || paths.Inside(exclude, resolved) {
			continue
		}
		if info, err := os.Stat(resolved); err != nil || !info.IsDir() || file.WritableByOthers(info) {
			continue
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// maxNearNames is how many names on PATH are compared with a missing one; a large
// system has some thousands.
const maxNearNames = 20_000

// near returns up to three names in dirs that may have been meant by name.
func near(name string, dirs []string) []string {
	type match struct {
		distance int
		name     string
	}
	var matches []match
	seen := 0
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if seen++; seen > maxNearNames {
				break
			}
			if d, ok := resembles(name, e.Name()); ok {
				matches = append(matches, match{d, e.Name()})
			}
		}
	}
	slices.SortFunc(matches, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	var names []string
	for _, m := range slices.Compact(matches) {
		if len(names) == 3 {
			break
		}
		names = append(names, m.name)
	}
	return names
}

// resembles reports whether want may be a typo for have, and returns their distance:
// they are the same except for a version at the end ("python", "python3"), or differ
// by one mistake, or two in names longer than five bytes.
func resembles(want, have string) (distance int, ok bool) {
	if strings.TrimRight(want, "0123456789.-") == strings.TrimRight(have, "0123456789.-") {
		return 1, true
	}
	most := 1
	if len(want) > 5 {
		most = 2
	}
	if len(want) < 3 || len(have) > len(want)+most || len(want) > len(have)+most {
		return 0, false
	}
	d := editDistance(want, have)
	return d, d <= most
}

// editDistance counts the bytes to insert, delete or replace to turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

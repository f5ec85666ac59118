package change

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// Bounds of what is shown of the lines of files. All else of a change is known without
// them.
const (
	maxDiffed = 256 << 10 // bytes of a file that is compared line by line
	maxDiff   = 32 << 10  // bytes of the lines of one file
	maxDiffs  = 128 << 10 // bytes of the lines of all files
)

// compare notes which lines of files are other ones, in the order of the files.
func compare(old, now *Version, all []File) error {
	was, err := old.open()
	if err != nil {
		return err
	}
	defer was.close()
	is, err := now.open()
	if err != nil {
		return err
	}
	defer is.close()
	left := maxDiffs
	for i := range all {
		f := &all[i]
		if f.Kind == Removed {
			continue
		}
		before, ok := was.text(f.Path)
		after, isText := is.text(f.Path)
		if !ok || !isText || bytes.Equal(before, after) { // a link, not a text, or only its mode
			continue
		}
		f.Diff, f.Cut = shorten(lines(before, after), min(maxDiff, left))
		left -= len(f.Diff)
	}
	return nil
}

// contents are the files of a version.
type contents struct {
	dir  *packfs.Dir // nil: there is no version before
	tree *packfs.Tree
}

func (v *Version) open() (contents, error) {
	if v.pack == nil {
		return contents{tree: v.tree}, nil
	}
	d, err := v.pack.OpenDir()
	return contents{d, v.tree}, err
}

func (c contents) close() {
	if c.dir != nil {
		_ = c.dir.Close() // it was only read
	}
}

// text returns a file if it can be shown in lines. One that is not there is empty.
func (c contents) text(name string) ([]byte, bool) {
	if _, isLink := c.tree.Links()[name]; isLink {
		return nil, false
	}
	if _, ok := c.tree.File(name); !ok || c.dir == nil {
		return nil, true
	}
	data, err := c.dir.ReadAll(name, maxDiffed)
	return data, err == nil && utf8.Valid(data) && !bytes.Contains(data, []byte{0})
}

// lines is a unified diff without the names of the files, safe to show.
func lines(old, now []byte) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(string(diff.Diff("old", old, "new", now))) {
		if inside = inside || strings.HasPrefix(line, "@@ "); inside {
			line = safetext.Text(strings.TrimSuffix(line, "\n"))
			b.WriteString(strings.ReplaceAll(line, "\r", `\r`) + "\n")
		}
	}
	return b.String()
}

// shorten cuts a text at the end of a line. It says how many lines it leaves out.
func shorten(text string, most int) (string, int) {
	if len(text) <= most {
		return text, 0
	}
	end := strings.LastIndexByte(text[:most], '\n') + 1
	return text[:end], strings.Count(text[end:], "\n")
}

// Lines are the lines of the diff, and how many more there are.
func (f *File) Lines() []string {
	if f.Diff == "" && f.Cut == 0 {
		return nil
	}
	var out []string
	for line := range strings.Lines(f.Diff) {
		out = append(out, strings.TrimSuffix(line, "\n"))
	}
	if f.Cut > 0 {
		out = append(out, fmt.Sprintf("… and %d more lines", f.Cut))
	}
	return out
}

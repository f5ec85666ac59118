package lint

import (
	"bytes"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packname"
)

// AddName returns an entry document with name added to its frontmatter. ok is false
// if there is a name already, if the place for it is unclear, or if the result would
// still lack it; then write nothing.
func AddName(src []byte, name string) (out []byte, ok bool) {
	if !packname.IsValid(name) || charset.Of(src) != charset.UTF8 {
		return nil, false
	}
	before, _ := frontmatter.Inspect("", src, frontmatter.MaxSize)
	block, state := frontmatter.Find(src)
	if before == nil || before.Name != "" || state != frontmatter.Closed {
		return nil, false
	}
	end := "\n"
	if bytes.HasSuffix(src[:block.Start], []byte("\r\n")) {
		end = "\r\n"
	}
	from, to := block.Start, block.Start
	if line := before.KeyLine("name"); line > 0 { // it is empty
		for range line - 2 {
			from += bytes.IndexByte(src[from:], '\n') + 1
		}
		to = from + bytes.IndexByte(src[from:], '\n') + 1
		if _, value, _ := strings.Cut(string(src[from:to]), ":"); strings.Trim(value, " \t\r\n\"'~") != "" {
			return nil, false // neither empty nor a text
		}
	}
	out = append(bytes.Clone(src[:from]), "name: "+name+end...)
	out = append(out, src[to:]...)
	after, _ := frontmatter.Inspect("", out, frontmatter.MaxSize)
	return out, after != nil && after.Name == name && after.Description == before.Description
}

// UnixLineEnds returns a script with the line ends that the system needs. ok is false
// if it already has only these, or is not text; then write nothing.
func UnixLineEnds(src []byte) (out []byte, ok bool) {
	if !bytes.HasPrefix(src, []byte("#!")) || bytes.IndexByte(src, 0) >= 0 || !bytes.Contains(src, []byte("\r\n")) {
		return nil, false
	}
	return bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n")), true
}

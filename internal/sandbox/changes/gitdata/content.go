package gitdata

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/protect"
)

// A treeEntry is one name of a tree.
type treeEntry struct {
	mode uint32
	name string
	id   string
}

// Modes of tree and index entries.
const (
	modeTree    = 0o040000
	modeFile    = 0o100644
	modeExec    = 0o100755
	modeLink    = 0o120000
	modeGitlink = 0o160000
	modeOld     = 0o100664 // of very old repositories
)

// parseTree reads a tree and refuses one that git would not make: its checkout could
// write elsewhere.
func parseTree(content []byte, size int) ([]treeEntry, error) {
	var entries []treeEntry
	last := ""
	for len(content) > 0 {
		head, rest, ok := bytes.Cut(content, []byte{0})
		if !ok || len(rest) < size {
			return nil, fmt.Errorf("a tree is cut off")
		}
		digits, name, ok := strings.Cut(string(head), " ")
		e := treeEntry{name: name, id: hex.EncodeToString(rest[:size])}
		content = rest[size:]
		for _, c := range digits {
			if c < '0' || c > '7' || e.mode > 0o777777 {
				return nil, fmt.Errorf("a tree has the mode %q", digits)
			}
			e.mode = e.mode<<3 | uint32(c-'0')
		}
		switch e.mode {
		case modeTree, modeFile, modeExec, modeLink, modeGitlink, modeOld:
		default:
			return nil, fmt.Errorf("a tree has the mode %q", digits)
		}
		if !ok || !fileName(name) {
			return nil, fmt.Errorf("a tree has the name %q", name)
		}
		key := name // trees are sorted as if their names ended in a slash
		if e.mode == modeTree {
			key += "/"
		}
		if key <= last {
			return nil, fmt.Errorf("a tree has its names in the wrong order")
		}
		last = key
		entries = append(entries, e)
	}
	return entries, nil
}

// fileName reports whether a tree may have the name.
func fileName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\") && !protect.IsDotGit(name)
}

// children returns the names of the objects that an object needs.
func children(kind string, content []byte, size int) (ids []string, err error) {
	switch kind {
	case "blob":
		return nil, nil
	case "tree":
		entries, err := parseTree(content, size)
		for _, e := range entries {
			if e.mode != modeGitlink {
				ids = append(ids, e.id)
			}
		}
		return ids, err
	}
	h, err := parseHeaders(kind, content, size)
	return h.needs, err
}

// headers are the headers of a commit or a tag.
type headers struct {
	tree  string // of a commit
	needs []string
}

func parseHeaders(kind string, content []byte, size int) (h headers, err error) {
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			break
		}
		key, value, _ := strings.Cut(line, " ")
		switch {
		case kind == "commit" && (key == "tree" || key == "parent"), kind == "tag" && key == "object":
			if !isID(value, size) {
				return h, fmt.Errorf("a %s has the %s %q", kind, key, value)
			}
			if key == "tree" {
				if h.tree != "" {
					return h, fmt.Errorf("a commit has two trees")
				}
				h.tree = value
			}
			h.needs = append(h.needs, value)
		}
	}
	if len(h.needs) == 0 || kind == "commit" && h.tree == "" || kind == "tag" && len(h.needs) != 1 {
		return h, fmt.Errorf("a %s lacks its headers", kind)
	}
	return h, nil
}

func isID(s string, size int) bool {
	if len(s) != 2*size || strings.ToLower(s) != s {
		return false
	}
	_, err := hex.DecodeString(s)
	return err == nil
}

// refName reports whether a branch or tag may be imported under the name, which
// begins with "refs/heads/" or "refs/tags/". It follows git check-ref-format, and
// also refuses names with invisible characters.
func refName(name string) bool {
	rest, head := strings.CutPrefix(name, "refs/heads/")
	if !head {
		var tag bool
		if rest, tag = strings.CutPrefix(name, "refs/tags/"); !tag {
			return false
		}
	}
	if rest == "" || rest == "@" || head && (rest == "HEAD" || strings.HasPrefix(rest, "-")) || len(rest) > 240 || !utf8.ValidString(rest) ||
		safetext.Line(rest) != rest || strings.Contains(rest, "..") || strings.Contains(rest, "@{") ||
		strings.HasSuffix(rest, ".") || strings.ContainsAny(rest, " ~^:?*[\\\x7f") {
		return false
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(strings.ToLower(part), ".lock") || protect.IsDotGit(part) {
			return false
		}
	}
	return true
}

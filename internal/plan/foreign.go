package plan

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// A call is about one pack: its trust, its bytes, its rules. It must not run what
// belongs to another pack. So a program, an interpreter or a file that an argument
// names is refused if it is in another pack's folder, attached or not. The other pack
// has calls of its own.

// An owner finds the packs that files belong to.
type owner struct {
	own   *packs.Pack
	hides func(*packs.Pack) bool
	all   []*packs.Pack
	byDir map[string][]*packs.Pack // :: folder in lower case → packs
}

func (c *Call) owner() *owner { return &owner{own: c.Pack, hides: c.Hides, all: c.All} }

// index makes byDir, which most calls do not need.
func (o *owner) index() {
	if o.byDir != nil {
		return
	}
	o.byDir = make(map[string][]*packs.Pack, len(o.all))
	for _, p := range o.all {
		key := strings.ToLower(p.Dir)
		o.byDir[key] = append(o.byDir[key], p)
	}
}

// refuse returns the error for a path that leads into another pack, or nil. Each step
// on the way counts. If packs are nested, the innermost counts.
func (o *owner) refuse(path string) error {
	for _, place := range paths.Places(path) {
		if p := o.holds(place); p != nil {
			return o.denial(path, p)
		}
	}
	return nil
}

// holds returns the pack, other than the call's own, that a path is in.
func (o *owner) holds(path string) *packs.Pack {
	o.index()
	for dir := path; ; dir = filepath.Dir(dir) {
		if dir == o.own.Dir {
			return nil
		}
		for _, p := range o.byDir[strings.ToLower(dir)] {
			if !sameFolder(p.Dir, dir) {
				continue // a different folder, if letter case counts
			}
			if p.Dir == o.own.Dir {
				return nil
			}
			return p
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// sameFolder reports whether two paths lead to the same folder.
func sameFolder(a, b string) bool {
	if a == b {
		return true
	}
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// denial returns the error for a path that is in another pack.
func (o *owner) denial(path string, p *packs.Pack) error {
	switch {
	case o.hides != nil && o.hides(p):
		return &ForeignError{Path: path, Own: o.own.ID}
	case !p.Valid || !p.Attached || p.ShadowedBy != "":
		return &ForeignError{Path: path, Own: o.own.ID, Other: p.ID}
	}
	return &ForeignError{Path: path, Own: o.own.ID, Other: p.ID, Attached: true}
}

// looksLikePack returns the folder around path that looks like a pack but is not one
// of ours; empty if there is none.
func (o *owner) looksLikePack(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if within(dir, o.own.Dir) || paths.IsSystem(dir) || dir == filepath.Dir(dir) {
			return ""
		}
		for _, name := range []string{"SKILL.md", "Skill.md", "skill.md"} {
			if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && !info.IsDir() {
				return dir
			}
		}
	}
}

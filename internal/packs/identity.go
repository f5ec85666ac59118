package packs

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/packname"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
)

// dirName returns the name that a pack gets from its directory, or from its file if it
// is a loose tool.
func (p *Pack) dirName() string {
	base := filepath.Base(p.Dir)
	if p.path != "." {
		base = path.Base(p.path)
	}
	if p.Loose {
		base, _ = formats.CutToolPack(base)
	}
	name := cmp.Or(packname.Slug(base), "pack")
	if packname.IsReserved(name) && (name != packname.Workspace || p.Loose || !strings.Contains(p.path, "/")) {
		name += "-pack"
	}
	return name
}

// hasPlainID reports whether the id equals the path without a file ending.
func (p *Pack) hasPlainID() bool {
	name, _ := formats.CutToolPack(p.path)
	return strings.EqualFold(name, p.ID)
}

// inParent returns the id of a pack called name beside p. Ids of loose tools leave out
// the folders that the tools are sorted into.
func (p *Pack) inParent(name string) string {
	parent := path.Dir(p.path)
	if parent == "." || p.Loose {
		return name
	}
	return packname.Segments(parent) + "/" + name
}

// assignIDs assigns the ids of all packs in one root. It sorts found by path; the
// result does not depend on the order before.
func assignIDs(found []*Pack) {
	slices.SortFunc(found, func(a, b *Pack) int { return strings.Compare(a.path, b.path) })
	taken := make(map[string]*Pack, len(found)) // :: id in lower case → the pack that has it
	rivals := make(map[string][]*Pack)          // :: id in lower case → packs that compete for it, by path; only where there are several
	for _, p := range found {
		name := p.Name
		switch {
		case p.Frontmatter.Name() == "":
			name = p.dirName()
		case !packname.IsValid(name):
			if name = packname.Slug(name); name == "" {
				name = p.dirName()
			}
			if !p.Loose { // tool names have their own rules
				p.problem(diag.Warning, CodeNameSlugged, p.Frontmatter.NameLine(),
					fmt.Sprintf("%q is not a valid name, and the pack goes by %q", p.Name, name), "use lower-case letters, digits and single hyphens, at most 64")
			}
		}
		if p.ID = p.inParent(name); p.ID == p.path {
			p.ID = p.path // share the string
		}
		key := strings.ToLower(p.ID)
		if first := taken[key]; first == nil {
			taken[key] = p
		} else {
			if rivals[key] == nil {
				rivals[key] = []*Pack{first}
			}
			rivals[key] = append(rivals[key], p)
		}
	}

	var losers []*Pack
	for key, packs := range rivals {
		keeper := packs[0]
		if i := slices.IndexFunc(packs, (*Pack).hasPlainID); i >= 0 {
			keeper = packs[i]
		}
		taken[key] = keeper
		for _, p := range packs {
			if p != keeper {
				losers = append(losers, p)
			}
		}
	}
	slices.SortFunc(losers, func(a, b *Pack) int { return strings.Compare(a.path, b.path) })
	next := make(map[string]int) // :: id in lower case → the number to try next; lower ones are taken
	for _, p := range losers {
		wants := p.ID
		own := p.inParent(p.dirName())
		p.ID = own
		key := strings.ToLower(own)
		n := max(2, next[key])
		for ; taken[strings.ToLower(p.ID)] != nil; n++ {
			p.ID = fmt.Sprintf("%s-%d", own, n)
		}
		next[key] = n
		taken[strings.ToLower(p.ID)] = p
		p.problem(diag.Warning, CodeIDCollision, 0,
			fmt.Sprintf("the pack in %q has the id %q as well, so this one goes by %q", taken[strings.ToLower(wants)].Dir, wants, p.ID), "give one of them another name")
	}
	for _, p := range found {
		if why := packname.Refuse(p.Frontmatter.Name(), p.ID); why != "" {
			hint := "write another name: in this document"
			if p.Loose {
				hint = "give the tool in this file another name"
			}
			p.problem(diag.Error, CodeIDReserved, p.Frontmatter.NameLine(), why, hint)
		}
	}
}

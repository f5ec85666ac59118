package offer

import (
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// The prompts that do not stand for a pack. A pack with such a name gets a hash in
// its own.
const (
	PromptAttach = "attach"
	PromptDetach = "detach"
)

// Names of the prompts' arguments.
const (
	ArgPack  = "pack_id"   // of attach and detach
	ArgWords = "arguments" // of a pack
)

// invocable reports whether an attached pack has a prompt. Its author may reserve the
// pack for models, which takes the prompt away. A pack that is reserved for people
// has one.
func invocable(p *packs.Pack) bool {
	return p.Frontmatter.UserInvocable()
}

// prompts returns the prompts of a Catalog's packs, and our own, sorted by name. If
// the prompts of two packs would have the same name, the later pack by id gets a
// hash.
func prompts(catalog *packs.Catalog) []Entry {
	all := []Entry{{Key: PromptAttach}, {Key: PromptDetach}}
	taken := map[string]bool{toolname.Fold(PromptAttach): true, toolname.Fold(PromptDetach): true}
	for _, p := range catalog.Attached() {
		if !invocable(p) {
			continue
		}
		name := PromptName(p.ID)
		if taken[toolname.Fold(name)] {
			name += "_" + toolname.Hash(p.ID)
		}
		taken[toolname.Fold(name)] = true
		all = append(all, Entry{name, p})
	}
	return sortEntries(all)
}

// PromptName returns a pack's id in the form that clients make commands of: "__" for
// a slash, and "-" for any character that is neither a letter nor a digit.
func PromptName(id string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		default:
			return '-'
		}
	}, strings.ReplaceAll(id, "/", "__"))
}

// PromptOf returns the pack with a prompt of this name, or nil if there is none. The
// pack may be one that may not be opened.
func PromptOf(catalog *packs.Catalog, name string) *packs.Pack {
	for _, p := range prompts(catalog) {
		if p.Key == name {
			return p.Pack
		}
	}
	return nil
}

// Prompts returns the prompts of a Catalog, sorted by name, without those of packs
// that may not be opened.
func (o *Offer) Prompts(catalog *packs.Catalog) []Entry {
	return slices.DeleteFunc(prompts(catalog), func(e Entry) bool { return e.Pack != nil && !o.MayOpen(e.Pack) })
}

// AsPrompts returns entries of [Offer.Prompts] as a client sees them.
func (o *Offer) AsPrompts(some []Entry) []mcp.Prompt {
	all := make([]mcp.Prompt, len(some))
	for i, e := range some {
		switch {
		case e.Pack != nil:
			all[i] = o.packPrompt(e)
		case e.Key == PromptAttach:
			all[i] = mcp.Prompt{
				Name: PromptAttach, Title: "Attach a capability pack", Description: "Make a capability pack available in this chat.",
				Arguments: []mcp.PromptArgument{{Name: ArgPack, Title: "Pack", Description: "id of a pack that is not attached", Required: true}},
			}
		default:
			all[i] = mcp.Prompt{
				Name: PromptDetach, Title: "Detach a capability pack", Description: "Take a capability pack, and its tools, out of this chat.",
				Arguments: []mcp.PromptArgument{{Name: ArgPack, Title: "Pack", Description: "id of an attached pack", Required: true}},
			}
		}
	}
	return all
}

// packPrompt returns the prompt of a pack.
func (o *Offer) packPrompt(e Entry) mcp.Prompt {
	hint := safetext.Line(e.Pack.Frontmatter.ArgumentHint())
	if hint == "" {
		hint = "what to apply the pack to"
	}
	return mcp.Prompt{
		Name: e.Key, Title: safetext.Line(e.Pack.Name), Description: o.Describe(e.Pack.Description),
		Arguments: []mcp.PromptArgument{{Name: ArgWords, Title: "Arguments", Description: safetext.Shorten(hint, maxHint)}},
	}
}

// maxHint is how many characters of a pack's hint about its arguments are shown.
const maxHint = 200

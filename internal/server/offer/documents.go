package offer

import (
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/filetype"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
)

// IndexURI is the list of skills for clients that know the older form.
const IndexURI = address.SchemeSkill + "://index.json"

// mimeMarkdown is the type of an entry document.
const mimeMarkdown = "text/markdown"

// documents returns the entry documents of a Catalog's packs, and the index of
// skills, sorted by their URIs.
func documents(catalog *packs.Catalog) []Entry {
	all := []Entry{{Key: IndexURI}}
	for _, p := range forModels(catalog) {
		all = append(all, Entry{address.OfPack(p, p.Entry), p})
	}
	return sortEntries(all)
}

// Documents returns the entry documents of a Catalog's packs, and the index of
// skills, sorted by their URIs, without those that may not be opened.
func (o *Offer) Documents(catalog *packs.Catalog) []Entry {
	return slices.DeleteFunc(documents(catalog), func(e Entry) bool { return e.Pack != nil && !o.MayOpen(e.Pack) })
}

// AsResources returns entries of [Offer.Documents] as a client sees them.
func (o *Offer) AsResources(some []Entry) []mcp.Resource {
	all := make([]mcp.Resource, len(some))
	for i, e := range some {
		if e.Pack == nil {
			all[i] = mcp.Resource{
				URI: IndexURI, Name: "index.json", Title: "Index of skills", Description: "The skills there are, for readers of the discovery index.",
				MIMEType: "application/json",
			}
			continue
		}
		all[i] = o.Document(e.Pack)
	}
	return all
}

// Document returns the entry document of a pack as a resource, under the pack's name
// and description. The title is the name as well: in the protocol the name is for
// programs and the title for people, and some clients show only one of them.
func (o *Offer) Document(p *packs.Pack) mcp.Resource {
	name := safetext.Line(p.Name)
	return mcp.Resource{
		URI: address.OfPack(p, p.Entry), Name: name, Title: name, Description: o.Describe(p.Description), MIMEType: TypeOf(p, p.Entry),
	}
}

// TypeOf returns the media type of a pack's file as far as its name tells. Reading
// the file shows the real one.
func TypeOf(p *packs.Pack, name string) string {
	if name == p.Entry && !p.Loose {
		return mimeMarkdown
	}
	return filetype.ByName(name)
}

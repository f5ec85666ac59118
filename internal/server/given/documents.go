package given

import (
	"errors"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/entrydoc"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// BodyPage returns a page of a pack's entry document without its frontmatter, from
// the bytes that were digested. An offset before the body means the body's beginning.
func (g *Giver) BodyPage(dir *packfs.Dir, pack *packs.Pack, tree *packfs.Tree, offset, length int64) (*packfs.Page, error) {
	if pack.Loose { // its document is made, not read
		return entrydoc.LooseBody(pack, offset, length)
	}
	begins, err := entrydoc.BodyOffset(pack, dir, tree)
	if err != nil {
		return nil, err
	}
	if offset >= 0 {
		offset = max(offset, begins)
	}
	page, err := g.Page(dir, tree, pack.Entry, offset, length)
	if errors.Is(err, packfs.ErrOffset) && offset == begins {
		err = &packfs.PathError{Path: pack.Entry, Reason: packfs.ErrChanged} // the caller did not name an offset
	}
	return page, err
}

// Hidden returns how many invisible characters a text has, in words; empty for none.
func Hidden(text []byte) string {
	if r := safetext.Inspect(text); r.Total() > 0 {
		return r.String()
	}
	return ""
}

// placeholder is replaced by the arguments.
const placeholder = "$ARGUMENTS"

// EndBeforePlaceholder ends a page that is not the last before what may be the
// beginning of a placeholder, so that no placeholder is split between pages.
func EndBeforePlaceholder(p *packfs.Page) {
	for n := len(placeholder) - 1; n > 0 && p.Truncated; n-- {
		if text, cut := strings.CutSuffix(string(p.Data), placeholder[:n]); cut && text != "" {
			p.Data, p.NextOffset = []byte(text), p.NextOffset-int64(n)
			return
		}
	}
}

// HasPlaceholder reports whether the document has a placeholder that begins before an
// offset, and whether all that was read was compared with what was digested.
func (g *Giver) HasPlaceholder(dir *packfs.Dir, pack *packs.Pack, tree *packfs.Tree, before int64) (has, verified bool, err error) {
	verified = true
	for offset := int64(0); ; {
		page, err := g.BodyPage(dir, pack, tree, offset, g.opts.Limits.PageMax)
		if err != nil {
			return false, false, err
		}
		verified = verified && page.Verified
		EndBeforePlaceholder(page)
		if strings.Contains(string(page.Data), placeholder) {
			return true, verified, nil
		}
		if !page.Truncated || page.NextOffset >= before {
			return false, verified, nil
		}
		offset = page.NextOffset
	}
}

// A Part is the part of a document that is filled in; the zero value is
// the whole document.
type Part struct {
	Later     bool // it does not begin at the beginning
	Truncated bool // it does not reach the end
	Placed    bool // an earlier part has a placeholder for the arguments
}

// Fill fills in a part of a document the way skillkit does: it puts the base
// directory first, replaces every $ARGUMENTS, and appends the arguments if the
// document has no placeholder.
func (p Part) Fill(dir, body, arguments string) string {
	text := ""
	if !p.Later {
		text = "Base directory for this skill: " + dir + "\n\n"
	}
	switch {
	case strings.Contains(body, placeholder):
		return text + strings.ReplaceAll(body, placeholder, arguments)
	case p.Truncated || p.Placed || arguments == "":
		return text + body
	}
	return text + body + "\n\nARGUMENTS: " + arguments
}

// FilledSize returns a number of bytes that a document has at most when its arguments
// are filled in.
func FilledSize(body, arguments string) int {
	return len(body) + (strings.Count(body, placeholder)+1)*len(arguments)
}

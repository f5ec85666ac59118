package offer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

// MaxText is how long instructions, and one description, can be so that they reach
// the model in every client: Claude Code cuts both there, in UTF-16 units. Here
// they are measured by [weight], which is never less.
const MaxText = 2048

// Instructions returns a text that explains packs to a model, and names as many packs
// as fit.
func (o *Offer) Instructions(catalog *packs.Catalog, once *toolfiles.Once) string {
	rules := o.rules()
	end := ""
	if slices.ContainsFunc(catalog.Problems(), func(d diag.Diagnostic) bool { return d.Code == packs.CodeRootMissing }) {
		end = "\n\nA folder of packs that the user named does not exist. If a pack is missing, tell them: packs-mcp folders"
	}
	return rules + o.block(catalog, once, MaxText-weight(rules)-weight(end)) + end
}

// Metadata returns the block about packs in the instructions.
func (o *Offer) Metadata(catalog *packs.Catalog, once *toolfiles.Once) string {
	return o.block(catalog, once, MaxText-weight(o.rules()))
}

// ListDescription returns the description of the tool that lists packs: text, and
// behind it as many packs as fit.
func (o *Offer) ListDescription(text string, catalog *packs.Catalog, once *toolfiles.Once) string {
	return text + o.block(catalog, once, MaxText-weight(text))
}

// rules returns the text that says when to call which tool.
func (o *Offer) rules() string {
	return fmt.Sprintf(`Capability packs are folders of instructions, files and tools that the user attached.
- Packs are available only if listed in "Capability Packs (attached; metadata only)".
- To use a pack's procedure, first call %[1]s(pack_id).
- For its other files, call %[2]s(pack_id, path).
- If has_tools_json is true and you need execution, call %[3]s(pack_id) before any pack tool. The tools then appear as PACK__TOOL; if you cannot see them, call %[4]s(pack_id, tool, arguments).
- Never assume a pack's contents without opening or reading them.
- Prefer asking the user for missing inputs over guessing.
- A person approves each call. When one is denied, do not repeat it unless asked.

`, o.opts.Exposed(toolname.OpenDocs), o.opts.Exposed(toolname.ReadFile), o.opts.Exposed(toolname.Enable), o.opts.Exposed(toolname.Call))
}

// block names the packs that a model may know about, in a weight of at most
// max. The packs are sorted by id. Ids take precedence over descriptions: a pack that
// is not named is easily missed, but the model can ask for its description.
func (o *Offer) block(catalog *packs.Catalog, once *toolfiles.Once, max int) string {
	attached := o.Packs(catalog)
	const head = "Capability Packs (attached; metadata only):\n"
	if len(attached) == 0 {
		return head + "(none; the user can attach packs with: packs-mcp attach ID)"
	}
	room := max - weight(head)
	for _, length := range []int{o.opts.Description, 400, 160} {
		if block, n := o.entries(attached, once, room, length); n == len(attached) {
			return head + strings.TrimRight(block, "\n")
		}
	}
	return head + strings.TrimRight(o.entriesAndIDs(attached, once, room), "\n")
}

// entries returns packs with descriptions of at most length characters, and how many
// of the packs fit.
func (o *Offer) entries(attached []*packs.Pack, once *toolfiles.Once, room, length int) (block string, n int) {
	var b strings.Builder
	for i, p := range attached {
		e := o.entry(p, once, length)
		if room -= weight(e); room < 0 {
			return b.String(), i
		}
		b.WriteString(e)
	}
	return b.String(), len(attached)
}

func (o *Offer) entry(p *packs.Pack, once *toolfiles.Once, length int) string {
	name := ""
	if p.Name != p.ID {
		name = "  name: " + safetext.Line(p.Name) + "\n"
	}
	from := ""
	if label := o.Origin(p).Label; label != "" {
		from = "  from: " + label + "\n"
	}
	return fmt.Sprintf("- pack_id: %s\n%s%s  description: %s\n  has_tools_json: %t\n",
		p.ID, name, from, safetext.Shorten(o.Describe(p.Description), length), once.HasTools(p))
}

// entriesAndIDs returns as many packs with short descriptions as leave room for the
// ids of all others. If there is not even room for all ids, it returns as many ids as
// fit.
func (o *Offer) entriesAndIDs(attached []*packs.Pack, once *toolfiles.Once, room int) string {
	const length = 160
	line := func(ids []string) string {
		return fmt.Sprintf("- other pack_ids, which %s describes: %s\n", o.opts.Exposed(toolname.List), strings.Join(ids, ", "))
	}
	more := func(n int) string {
		return fmt.Sprintf("(and %d more: call %s, with a query to search)\n", n, o.opts.Exposed(toolname.List))
	}
	var ids []string
	for used := weight(line(nil)); len(ids) < len(attached); {
		id := attached[len(ids)].ID
		if used += weight(id) + len(", "); used > room {
			break
		}
		ids = append(ids, id)
	}
	if len(ids) < len(attached) {
		for len(ids) > 0 && weight(line(ids))+weight(more(len(attached))) > room {
			ids = ids[:len(ids)-1]
		}
		return line(ids) + more(len(attached)-len(ids))
	}
	block := ""
	for i, p := range attached {
		e := o.entry(p, once, length)
		if weight(block+e+line(ids[i+1:])) > room {
			return block + line(ids[i:])
		}
		block += e
	}
	return block
}

// weight returns how many bytes a text takes in JSON, which is never less than its
// UTF-16 units. So what a model gets before its first call is bounded in bytes,
// whatever language the packs are described in.
func weight(s string) int {
	n := len(s)
	for _, r := range s {
		switch {
		case r == '"', r == '\\', r == '\n', r == '\r', r == '\t':
			n++
		case r < ' ':
			n += len(`\u0000`) - 1
		case r == '\u2028', r == '\u2029':
			n += len(`\u2028`) - utf8.RuneLen(r)
		}
	}
	return n
}

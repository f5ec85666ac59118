package server

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// maxInstructions is how long instructions, and one description, can be so that they
// reach the model in every client: Claude Code cuts both there, in UTF-16 units. Here
// they are measured by [weight], which is never less.
const maxInstructions = 2048

// instructions returns a text that explains packs to a model, and names as many packs
// as fit.
func (s *Server) instructions(ctx context.Context) string {
	rules := s.rules()
	catalog := s.catalogOf(ctx)
	end := ""
	if slices.ContainsFunc(catalog.Problems(), func(d diag.Diagnostic) bool { return d.Code == packs.CodeRootMissing }) {
		end = "\n\nA folder of packs that the user named does not exist. If a pack is missing, tell them: packs-mcp folders"
	}
	return rules + s.metadataBlock(s.listedPacks(catalog), s.files.Once(), maxInstructions-weight(rules)-weight(end)) + end
}

// Metadata returns the block about packs in the instructions of a server with these
// options. It uses only the options that affect what a model sees: Library, Tools,
// Dotted and Limits. It does not need a gate: forbidden reports whether rules forbid
// everything about the pack with an id.
func Metadata(ctx context.Context, o Options, forbidden func(id string) bool) string {
	s := &Server{opts: o, limits: o.Limits.withDefaults(), files: o.Tools}
	listed := slices.DeleteFunc(offered(s.catalogOf(ctx)), func(p *packs.Pack) bool { return forbidden(p.ID) })
	return s.metadataBlock(listed, s.files.Once(), maxInstructions-weight(s.rules()))
}

// rules returns the text that says when to call which tool.
func (s *Server) rules() string {
	return fmt.Sprintf(`Capability packs are folders of instructions, files and tools that the user attached.
- Packs are available only if listed in "Capability Packs (attached; metadata only)".
- To use a pack's procedure, first call %[1]s(pack_id).
- For its other files, call %[2]s(pack_id, path).
- If has_tools_json is true and you need execution, call %[3]s(pack_id) before any pack tool. The tools then appear as PACK__TOOL; if you cannot see them, call %[4]s(pack_id, tool, arguments).
- Never assume a pack's contents without opening or reading them.
- Prefer asking the user for missing inputs over guessing.
- A person approves each call. When one is denied, do not repeat it unless asked.

`, s.exposed(toolOpenDocs), s.exposed(toolReadFile), s.exposed(toolEnable), s.exposed(toolCall))
}

// metadataBlock names the packs that a model may know about, in a weight of at most
// max. The packs are sorted by id. Ids take precedence over descriptions: a pack that
// is not named is easily missed, but the model can ask for its description.
func (s *Server) metadataBlock(attached []*packs.Pack, once *toolfiles.Once, max int) string {
	const head = "Capability Packs (attached; metadata only):\n"
	if len(attached) == 0 {
		return head + "(none; the user can attach packs with: packs-mcp attach ID)"
	}
	room := max - weight(head)
	for _, length := range []int{s.limits.Description, 400, 160} {
		if block, n := s.entries(attached, once, room, length); n == len(attached) {
			return head + strings.TrimRight(block, "\n")
		}
	}
	return head + strings.TrimRight(s.entriesAndIDs(attached, once, room), "\n")
}

// entries returns packs with descriptions of at most length characters, and how many
// of the packs fit.
func (s *Server) entries(attached []*packs.Pack, once *toolfiles.Once, room, length int) (block string, n int) {
	var b strings.Builder
	for i, p := range attached {
		e := s.entry(p, once, length)
		if room -= weight(e); room < 0 {
			return b.String(), i
		}
		b.WriteString(e)
	}
	return b.String(), len(attached)
}

func (s *Server) entry(p *packs.Pack, once *toolfiles.Once, length int) string {
	name := ""
	if p.Name != p.ID {
		name = "  name: " + safetext.Line(p.Name) + "\n"
	}
	from := ""
	if label := s.origin(p).Label; label != "" {
		from = "  from: " + label + "\n"
	}
	return fmt.Sprintf("- pack_id: %s\n%s%s  description: %s\n  has_tools_json: %t\n",
		p.ID, name, from, safetext.Shorten(s.describe(p.Description), length), once.HasTools(p))
}

// origin returns who offers a pack.
func (s *Server) origin(p *packs.Pack) Origin {
	if s.opts.Origin == nil {
		return Origin{}
	}
	return s.opts.Origin(p.Dir)
}

// entriesAndIDs returns as many packs with short descriptions as leave room for the
// ids of all others. If there is not even room for all ids, it returns as many ids as
// fit.
func (s *Server) entriesAndIDs(attached []*packs.Pack, once *toolfiles.Once, room int) string {
	const length = 160
	line := func(ids []string) string {
		return fmt.Sprintf("- other pack_ids, which %s describes: %s\n", s.exposed(toolList), strings.Join(ids, ", "))
	}
	more := func(n int) string {
		return fmt.Sprintf("(and %d more: call %s, with a query to search)\n", n, s.exposed(toolList))
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
		e := s.entry(p, once, length)
		if weight(block+e+line(ids[i+1:])) > room {
			return block + line(ids[i:])
		}
		block += e
	}
	return block
}

// describe makes a description safe to show as metadata: one line, escaped, and cut
// at the limit.
func (s *Server) describe(text string) string {
	text = safetext.Line(strings.Join(strings.Fields(text), " "))
	return safetext.Shorten(text, s.limits.Description)
}

// describeLines is describe for a place that keeps line breaks, such as a tool's
// paragraphs and examples. Several empty lines become one.
func (s *Server) describeLines(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = safetext.Text(strings.TrimRight(line, " \t\r\n"))
		if line != "" || lines[len(lines)-1] != "" {
			lines = append(lines, line)
		}
	}
	return safetext.Shorten(strings.Join(lines, "\n"), s.limits.Description)
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

package lint

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
)

// A selection says which diagnostics of other packages a profile repeats.
type selection struct {
	all    bool     // everything
	from   []source // diagnostics about these
	also   []string // these codes, from any source
	judged []string // except these codes, which the profile judges itself if it has the frontmatter
	errors []string // these codes are errors
}

// selected returns the selection of a profile: the diagnostics for which its
// specification has a rule.
func selected(p Profile) selection {
	entry := []string{packs.CodeEntryUnreadable, packs.CodeEntryTooLarge, packs.CodeEntryAmbiguous}
	switch p {
	case AgentSkills:
		return selection{
			from: []source{fromHead}, also: entry,
			// The reference reads every value as a text, and judges names itself.
			judged: []string{
				frontmatter.CodeWrongType, frontmatter.CodeNameNotText, frontmatter.CodeDescriptionNotText,
				frontmatter.CodeNameMissing, frontmatter.CodeDescriptionMissing,
			},
			errors: []string{frontmatter.CodeRecovered, frontmatter.CodeDuplicate, frontmatter.CodeCharset},
		}
	case SkillMD:
		return selection{
			from: []source{fromHead, fromMarkdown}, also: entry,
			errors: []string{
				frontmatter.CodeRecovered, frontmatter.CodeDuplicate, frontmatter.CodeWrongType,
				frontmatter.CodeNameNotText, frontmatter.CodeDescriptionNotText,
			},
		}
	case ToolPack:
		return selection{
			from:   []source{fromPackFile},
			errors: []string{tools.CodeDescriptionMissing, tools.CodeCommandMissing, tools.CodeCommandNotUnderstood},
		}
	case CapabilityPack:
		return selection{
			from: []source{fromHead, fromList}, also: append(entry, packs.CodeIDReserved, packs.CodeDocMissing),
			errors: []string{frontmatter.CodeRecovered, frontmatter.CodeNameNotText, frontmatter.CodeDescriptionNotText},
		}
	case Skillkit:
		return selection{from: []source{fromHead}, also: entry, errors: []string{frontmatter.CodeRecovered}}
	}
	return selection{all: true}
}

// take adds a diagnostic of another package if the profile repeats it, with the
// severity that the profile gives it.
func (s *subject) take(from source, d diag.Diagnostic) {
	is := selected(s.opts.Profile)
	switch {
	case !is.all && !slices.Contains(is.from, from) && !slices.Contains(is.also, d.Code):
		return
	case s.doc != nil && slices.Contains(is.judged, d.Code):
		return
	case slices.Contains(is.errors, d.Code):
		d.Severity = diag.Error
	}
	if d.Severity == diag.Error && (from == fromMarkdown || from == fromPackFile || from == fromList) {
		s.wrong = true
	}
	s.problems = append(s.problems, d)
}

// profile adds the diagnostics of the profile's own specification.
func (s *subject) profile() {
	switch s.opts.Profile {
	case Default:
		s.unknownKeys(diag.Info, knownKeys())
		if isSkill(s.pack.Entry) && s.doc != nil {
			s.directory(diag.Info, s.doc.Name)
		}
		s.declaredOnly(diag.Info)
	case AgentSkills:
		if s.skillFile() {
			s.agentSkills()
		}
	case SkillMD:
		if s.skillFile() {
			s.skillMD()
		}
	case ToolPack:
		s.toolPacks()
	case CapabilityPack:
		s.unknownKeys(diag.Info, knownKeys())
		s.declaredOnly(diag.Warning)
	case Skillkit:
		s.skillFile()
		s.unknownKeys(diag.Info, knownKeys())
	}
}

var (
	agentKeys = []string{"name", "description", "license", "allowed-tools", "metadata", "compatibility"}                       // never modified
	skillKeys = []string{"name", "version", "description", "author", "modes", "read_only", "always_ask", "timeout", "network"} // never modified
)

// hostKeys are keys that other programs define for packs, commands and agents. They
// are never a mistake.
const hostKeys = `agent alwaysApply applyTo arguments background category color context disable-model-invocation disallowed-tools
	disallowedTools effort globs hooks homepage icon id isolation keywords maxTurns mcpServers memory mode model paths permissionMode repository
	shell skills title tools triggers type user-invocable when_to_use`

// knownKeys returns the keys that some specification defines, or that are supported
// because many packs have them.
func knownKeys() []string {
	return slices.Concat(agentKeys, skillKeys, []string{"tags", "argument-hint", "review", "cache"}, strings.Fields(hostKeys))
}

// unknownKeys reports the keys of the frontmatter that are not in known.
func (s *subject) unknownKeys(severity diag.Severity, known []string) {
	if s.node == nil {
		return
	}
	for i := 0; i+1 < len(s.node.Content); i += 2 {
		k := s.node.Content[i]
		if slices.Contains(known, k.Value) {
			continue
		}
		message, hint := fmt.Sprintf("the frontmatter has a key %q, which no specification here has", clip(k.Value)), "check its spelling, or put it below metadata:"
		if s.opts.Profile != Default {
			message = fmt.Sprintf("the frontmatter has a key %q, which the specification does not have", clip(k.Value))
		}
		switch meant := near.Names(k.Value, known, 1); {
		case slices.Contains(knownKeys(), k.Value):
			hint = "leave it if the pack is for a program that defines it"
		case len(meant) > 0 && len(k.Value) > 2:
			hint = fmt.Sprintf("did you mean %q? Otherwise put it below metadata:", meant[0])
		}
		s.report(severity, CodeKeyUnknown, k, message, hint)
	}
}

// skillFile reports a missing SKILL.md, and returns whether there is one.
func (s *subject) skillFile() bool {
	if isSkill(s.pack.Entry) {
		return true
	}
	s.report(diag.Error, CodeSkillMissing, nil, fmt.Sprintf("the pack has no SKILL.md; %q is not read by this specification", s.pack.Entry), "rename the entry document to SKILL.md")
	return false
}

func isSkill(entry string) bool { return strings.EqualFold(path.Base(entry), skillFile) }

// directory reports a name that differs from the folder's.
func (s *subject) directory(severity diag.Severity, name string) {
	if name == "" || normal(s.name) == normal(name) {
		return
	}
	_, v := s.key("name")
	s.report(severity, CodeNameDirectory, v, fmt.Sprintf("the folder is called %q and the pack %q", s.name, clip(name)), "rename one of them; some clients skip a skill whose name is not that of its folder")
}

// declaredOnly reports tools that cannot be run.
func (s *subject) declaredOnly(severity diag.Severity) {
	if s.set == nil {
		return
	}
	for _, t := range s.set.Tools {
		if s.opts.Profile == CapabilityPack && formats.Of(t.File) != formats.ToolsJSON || t.Command != nil {
			continue
		}
		if slices.ContainsFunc(s.problems, func(d diag.Diagnostic) bool {
			return d.File == t.File && d.Line >= t.Line && (d.Code == tools.CodeCommandMissing || d.Code == tools.CodeCommandNotUnderstood)
		}) {
			continue // said
		}
		s.problems = append(s.problems, diag.Diagnostic{
			Code: CodeDeclaredOnly, Severity: severity, File: t.File, Line: t.Line,
			Message: fmt.Sprintf("tool %+q is declared only: %s", t.Name, t.DeclaredOnly),
			Hint:    `add "command": {"program": "...", "args": ["..."]}, or leave it if another program provides the tool`,
		})
	}
}

// semver matches a version according to semver.org.
var semver = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
})

// limit reports a description that is longer than the specification allows.
func (s *subject) limit(severity diag.Severity, v *yaml.Node, text string, limit int, message string) {
	if n := utf8.RuneCountInString(text); n > limit {
		s.report(severity, CodeDescription, v, fmt.Sprintf("the description has %d characters, and the specification %s", n, fmt.Sprintf(message, limit)), "shorten it, and move the rest into the body")
	}
}

// clip shortens a pack's text for a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

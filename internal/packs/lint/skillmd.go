package lint

import (
	"fmt"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/packname"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// maxSkillText is how many characters of a description are read (§2.2, §9.2).
const maxSkillText = 256

// skillMD adds the rules of specs/skill-md-tools.md that serving does not check.
func (s *subject) skillMD() {
	if s.doc == nil {
		return
	}
	s.unknownKeys(diag.Warning, skillKeys) // §9.2

	_, name := s.key("name")
	if s.doc.Name != "" {
		if !packname.IsValid(s.doc.Name) { // §1.2
			s.report(diag.Error, CodeNameFormat, name, fmt.Sprintf("the name %q is not made of lower-case letters, digits and single hyphens inside, 1 to 64", clip(s.doc.Name)), "rename the skill and its folder")
		}
		s.directory(diag.Error, s.doc.Name) // §2.2 "Must match directory name"
	}
	if _, v := s.key("description"); v != nil {
		s.limit(diag.Warning, v, s.doc.Description, maxSkillText, "reads only %d")
	}
	switch _, v := s.key("version"); {
	case s.doc.Version == "":
		s.report(diag.Error, CodeVersion, v, "the frontmatter has no version", "add a line version: 1.0.0")
	case !semver().MatchString(s.doc.Version):
		s.report(diag.Error, CodeVersionFormat, v, fmt.Sprintf("the version %q is not a semantic version", clip(s.doc.Version)), "write three numbers with dots between them, such as 1.0.0")
	}
	if _, v := s.key("modes"); v != nil {
		for _, m := range s.doc.Modes {
			if !slices.Contains([]string{"Global", "Dev", "Meeting"}, m) {
				s.report(diag.Warning, CodeModeUnknown, v, fmt.Sprintf("there is no mode %q", clip(m)), "the specification has Global, Dev and Meeting")
			}
		}
	}
	s.skillTools()
}

// skillTools reports a document without tools (§9.1). The parser has already reported
// problems of existing tools.
func (s *subject) skillTools() {
	declares := s.set != nil && slices.ContainsFunc(s.set.Tools, func(t *tools.Tool) bool { return t.File == s.pack.Entry })
	if !declares && !s.wrong {
		s.report(diag.Error, CodeNoTools, nil, "the document declares no tool", "add a heading ### tool_name with #### Command and a fenced block below it")
	}
}

package lint

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
)

// snakeCase matches a tool's name according to specs/tool-packs.md, "Core Fields".
var snakeCase = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`) })

// toolPacks adds the rules of specs/tool-packs.md to a folder's tools.
func (s *subject) toolPacks() {
	found := false
	if s.set != nil {
		for _, t := range s.set.Tools {
			if formats.Of(t.File) == formats.ToolPack {
				found = true
				s.toolPack(t)
			}
		}
	}
	if !found && !s.wrong {
		s.problems = append(s.problems, diag.Diagnostic{
			Code: CodeNoTools, Severity: diag.Error, Message: "the folder has no *.tool.json", Hint: "write a NAME.tool.json beside the entry document or in tools/",
		})
	}
}

// toolPack checks one tool against the table of core fields.
func (s *subject) toolPack(t *tools.Tool) {
	add := func(severity diag.Severity, code, message, hint string) {
		s.problems = append(s.problems, diag.Diagnostic{Code: code, Severity: severity, File: t.File, Line: t.Line, Message: message, Hint: hint})
	}
	if !snakeCase().MatchString(t.Name) {
		add(diag.Error, CodeToolName, fmt.Sprintf("the name %+q is not in snake_case", t.Name), "use lower-case letters and digits with single underscores between them")
	}
	if t.Version != "" && !semver().MatchString(t.Version) {
		add(diag.Warning, CodeVersionFormat, fmt.Sprintf("the version %q is not a semantic version", clip(t.Version)), "write three numbers with dots between them, such as 1.0.0")
	}
	for _, m := range t.Modes {
		if !slices.Contains([]string{"Global", "Coding", "Dictation"}, m) {
			add(diag.Warning, CodeModeUnknown, fmt.Sprintf("there is no mode %q", clip(m)), "the specification has Global, Coding and Dictation")
		}
	}
}

// loose adds the profile's diagnostics for a tool file that was named without a pack.
func (s *subject) loose(file string) {
	switch isPackFile := formats.Of(file) == formats.ToolPack; {
	case s.opts.Profile == ToolPack && isPackFile && s.set != nil:
		for _, t := range s.set.Tools {
			s.toolPack(t)
		}
	case s.opts.Profile == ToolPack && !isPackFile:
		s.problems = append(s.problems, diag.Diagnostic{
			Code: CodeNoTools, Severity: diag.Error, File: file, Message: "the specification reads files called NAME.tool.json only", Hint: "give each tool a file of its own; packs-mcp convert does so",
		})
	case s.opts.Profile == AgentSkills || s.opts.Profile == SkillMD || s.opts.Profile == Skillkit:
		s.problems = append(s.problems, diag.Diagnostic{
			Code: CodeSkillMissing, Severity: diag.Error, File: file, Message: "the file is not a SKILL.md, and this specification reads nothing else", Hint: "name the folder of the pack, or its SKILL.md",
		})
	case s.opts.Profile == Default:
		s.declaredOnly(diag.Info)
	case s.opts.Profile == CapabilityPack:
		s.declaredOnly(diag.Warning)
	}
}

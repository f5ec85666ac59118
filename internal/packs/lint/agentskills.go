package lint

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
)

// Limits of the Agent Skills specification, in characters.
const (
	maxSkillName     = 64
	maxAgentText     = 1024
	maxCompatibility = 500
)

// agentSkills gives the verdict of the reference validator (skills-ref), which
// reads every scalar as a text, with its spaces removed for the name only.
//
// It differs where the reference reads other text than the file has: there, a
// "---" inside a value ends the frontmatter. docs/reference/diagnostics.md names this.
func (s *subject) agentSkills() {
	if s.node == nil {
		return // reported by the reader of frontmatter
	}
	if bytes.HasPrefix(s.src, []byte("\ufeff")) {
		s.report(diag.Error, CodeYAMLStrict, nil, "the file begins with a byte order mark, which the reference takes for text before the frontmatter", "save the file as UTF-8 without a byte order mark")
	}
	s.strictYAML()
	s.unknownKeys(diag.Error, agentKeys)

	if _, v := s.key("name"); v == nil || v.Kind != yaml.ScalarNode || strings.TrimSpace(v.Value) == "" {
		s.report(diag.Error, frontmatter.CodeNameMissing, v, "the frontmatter has no name with text in it", "add a line name: followed by the name of the folder")
	} else {
		s.agentName(v)
	}
	if _, v := s.key("description"); v == nil || v.Kind != yaml.ScalarNode || strings.TrimSpace(v.Value) == "" {
		s.report(diag.Error, frontmatter.CodeDescriptionMissing, v, "the frontmatter has no description with text in it", "add a line description: that says what the skill does and when to use it")
	} else {
		s.limit(diag.Error, v, v.Value, maxAgentText, "allows %d")
	}
	if _, v := s.key("compatibility"); v != nil {
		if n := utf8.RuneCountInString(v.Value); v.Kind != yaml.ScalarNode || n > maxCompatibility {
			s.report(diag.Error, CodeCompatibility, v, fmt.Sprintf("compatibility is not a text of at most %d characters", maxCompatibility), "say in a sentence what the skill needs")
		}
	}
}

// agentName checks a name against the rules: lower-case letters of any script,
// digits, single hyphens inside, and equal to the folder's name.
func (s *subject) agentName(v *yaml.Node) {
	name := norm.NFKC.String(strings.TrimSpace(v.Value))
	bad := func(problem string) {
		s.report(diag.Error, CodeNameFormat, v, fmt.Sprintf("the name %q %s", clip(name), problem), "use lower-case letters, digits and single hyphens, at most 64")
	}
	if n := utf8.RuneCountInString(name); n > maxSkillName {
		bad(fmt.Sprintf("has %d characters, and the specification allows %d", n, maxSkillName))
	}
	if name != strings.ToLower(name) {
		bad("is not in lower case")
	}
	if strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") {
		bad("begins or ends with a hyphen")
	}
	if strings.Contains(name, "--") {
		bad("has two hyphens in a row")
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r != '-' && !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		bad("has characters other than letters, digits and hyphens")
	}
	s.directory(diag.Error, name)
}

// strictYAML reports YAML that the reference's parser, StrictYAML, refuses: flow
// collections, anchors, aliases and tags.
func (s *subject) strictYAML() {
	block, state := frontmatter.Find(s.src)
	if state != frontmatter.Closed {
		return
	}
	var doc yaml.Node
	if yaml.Unmarshal(s.src[block.Start:block.End], &doc) != nil {
		return // recovered, and already reported
	}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		problem := ""
		switch {
		case n.Kind == yaml.AliasNode || n.Anchor != "":
			problem = "an anchor or alias"
		case (n.Kind == yaml.SequenceNode || n.Kind == yaml.MappingNode) && n.Style&yaml.FlowStyle != 0:
			problem = "a list or mapping in brackets"
		case n.Style&yaml.TaggedStyle != 0:
			problem = "a tag (!…)"
		}
		if problem != "" {
			// The block begins in line 2 of the file.
			at := &yaml.Node{Line: n.Line + 1, Column: n.Column}
			s.report(diag.Error, CodeYAMLStrict, at, problem+", which the reference validator refuses", "write it out: one element a line, or the text in quotes")
			return
		}
		for _, c := range n.Content {
			walk(c)
		}
	}
	walk(&doc)
}

// normal returns a name in the form in which names are compared: composed and
// trimmed.
func normal(name string) string { return norm.NFKC.String(strings.TrimSpace(name)) }

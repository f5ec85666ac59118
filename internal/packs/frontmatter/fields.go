package frontmatter

import (
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs/cachename"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// maxTimeout is the longest timeout a pack can ask for, in seconds.
const maxTimeout = 300

// read fills doc from the known keys of node.
func (p *parser) read(doc *Document, node *yaml.Node) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		k, v := node.Content[i], node.Content[i+1]
		switch k.Value {
		case "name":
			doc.Name = p.required(k, v, CodeNameNotText)
		case "description":
			doc.Description = p.required(k, v, CodeDescriptionNotText)
		case "tags":
			doc.Tags = p.list(k, v)
		case "modes":
			doc.Modes = p.list(k, v)
		case "license":
			doc.License = p.text(k, v)
		case "compatibility":
			doc.Compatibility = p.text(k, v)
		case "version":
			doc.Version = p.text(k, v)
		case "metadata":
			doc.MetadataVersion = versionIn(v)
		case "author":
			doc.Author = p.text(k, v)
		case "argument-hint":
			// People write [file] as a hint; YAML reads it as a list.
			if items, ok := scalars(v); ok && v.Kind == yaml.SequenceNode {
				doc.ArgumentHint = "[" + strings.Join(items, ", ") + "]"
			} else {
				doc.ArgumentHint = p.text(k, v)
			}
		case "allowed-tools":
			if items, ok := scalars(v); ok && v.Kind == yaml.SequenceNode {
				doc.AllowedTools = strings.Join(items, ", ")
			} else {
				doc.AllowedTools = p.text(k, v)
			}
		case "read_only":
			doc.ReadOnly = p.boolean(k, v)
		case "always_ask":
			doc.AlwaysAsk = p.safeguard(k, v, "it is read as true, so every call is asked about")
		case "review":
			doc.Review = true
			if v.Kind != yaml.ScalarNode || v.Value != "all" {
				p.wrongType(k, v, "all", "it is read as all, so every change waits for the user")
			}
		case "cache":
			doc.Cache = p.cache(k, v)
		case "network":
			doc.Network = p.boolean(k, v)
		case "timeout":
			doc.Timeout = p.seconds(k, v)
		case "disable-model-invocation":
			doc.DisableModelInvocation = *p.safeguard(k, v, "it is read as true, so models are kept out")
		case "user-invocable":
			doc.UserInvocable = p.boolean(k, v)
		}
	}
}

// versionIn returns the version in the mapping "metadata", or "".
func versionIn(metadata *yaml.Node) string {
	for i := 0; metadata.Kind == yaml.MappingNode && i+1 < len(metadata.Content); i += 2 {
		if v := metadata.Content[i+1]; metadata.Content[i].Value == "version" && v.Kind == yaml.ScalarNode && v.Tag != "!!null" {
			return tidy(v.Value)
		}
	}
	return ""
}

// fields reports required fields that are missing.
func (p *parser) fields(doc *Document) {
	missing := func(key, code, hint string) {
		at, message := doc.KeyLine(key), fmt.Sprintf("%s has no text", key)
		if at == 0 {
			at, message = 1, fmt.Sprintf("the frontmatter has no %s", key)
		}
		if _, value, ok := strings.Cut(p.line(at), ":"); ok && strings.HasPrefix(strings.TrimSpace(value), "#") {
			message, hint = fmt.Sprintf("what follows %s: begins with #, so it is a comment in YAML", key), "put the value in quotes"
		}
		p.report(diag.Error, code, at, 1, message, hint)
	}
	if doc.Name == "" {
		missing("name", CodeNameMissing, "add a line name: followed by a short name in lower case")
	}
	if doc.Description == "" {
		missing("description", CodeDescriptionMissing, "add a line description: that says what the pack does and when to use it")
	}
}

// required reads name or description. It accepts any scalar, with a warning if it is
// not a string. It returns "" for anything else.
func (p *parser) required(k, v *yaml.Node, notText string) string {
	if v.Kind != yaml.ScalarNode || v.Tag == "!!null" {
		return ""
	}
	switch {
	case v.Style&yaml.TaggedStyle != 0:
		p.report(diag.Warning, notText, v.Line, v.Column, fmt.Sprintf("%s begins with !, and so with a tag to YAML, %s, which is not read as a part of it", k.Value, clip(v.Tag)), "put the value in quotes")
	case v.Tag != "!!str":
		p.report(diag.Warning, notText, v.Line, v.Column, fmt.Sprintf("%s is not text in YAML, and is read as %q", k.Value, clip(v.Value)), "put the value in quotes")
	}
	if v.Style == 0 {
		if line := p.line(v.Line); v.Column <= len(line) {
			if at := strings.Index(line[v.Column-1:], " #"); at >= 0 {
				p.report(diag.Warning, CodeComment, v.Line, v.Column+at+1, fmt.Sprintf("a # after a space begins a comment, so %s ends before %q", k.Value, clip(line[v.Column+at:])), "put the value in quotes")
			}
		}
	}
	return tidy(v.Value)
}

// line returns line no of the file, or "" if that line is outside the block.
func (p *parser) line(no int) string {
	i := 2
	for text := range strings.Lines(p.block) {
		if i == no {
			return strings.TrimRight(text, "\r\n")
		}
		i++
	}
	return ""
}

// text reads a value that people write as a string, a number or a date.
func (p *parser) text(k, v *yaml.Node) string {
	if v.Kind != yaml.ScalarNode {
		p.wrongType(k, v, "a text", "it is ignored")
		return ""
	}
	if v.Tag == "!!null" {
		return ""
	}
	return tidy(v.Value)
}

// list reads a list of texts. A single text is split at commas.
func (p *parser) list(k, v *yaml.Node) []string {
	items, ok := scalars(v)
	switch {
	case !ok:
		p.wrongType(k, v, "a list of texts", "it is ignored")
	case v.Kind == yaml.ScalarNode && len(items) > 0:
		p.wrongType(k, v, "a list of texts", "it is read as one, split at commas")
		items = strings.Split(items[0], ",")
	}
	var texts []string
	for _, item := range items {
		if item = tidy(item); item != "" {
			texts = append(texts, item)
		}
	}
	return texts
}

// scalars returns the texts of a single scalar or a list of them. ok is false if v
// is or holds anything else.
func scalars(v *yaml.Node) (texts []string, ok bool) {
	items := []*yaml.Node{v}
	if v.Kind == yaml.SequenceNode {
		items = v.Content
	}
	for _, item := range items {
		if item.Kind != yaml.ScalarNode {
			return nil, false
		}
		if item.Tag != "!!null" {
			texts = append(texts, tidy(item.Value))
		}
	}
	return texts, true
}

// boolean reads true or false. It returns nil if there is no value, and, with a
// warning, if the value is neither. For the keys that use it, nil is the safe reading:
// the tool is not read-only, it has no network, and people see the pack.
func (p *parser) boolean(k, v *yaml.Node) *bool {
	if v.Kind == yaml.ScalarNode && v.Tag == "!!null" {
		return nil
	}
	b := p.truth(k, v)
	if b == nil {
		p.wrongType(k, v, "true or false", "it is ignored")
	}
	return b
}

// safeguard reads a key that restricts something when it is true. A missing value, or
// one that is neither true nor false, counts as true: the author who wrote the key
// wanted the restriction. The result is never nil.
func (p *parser) safeguard(k, v *yaml.Node, doubt string) *bool {
	b := p.truth(k, v)
	if b == nil {
		p.wrongType(k, v, "true or false", doubt)
		b = new(true)
	}
	return b
}

// truth reads true or false in the spellings of YAML 1.1 and 1.2, or returns nil. A
// value in quotes counts too, with a warning.
func (p *parser) truth(k, v *yaml.Node) *bool {
	if v.Kind == yaml.ScalarNode {
		var b bool
		switch strings.ToLower(v.Value) {
		case "true", "yes", "on":
			b = true
		case "false", "no", "off":
		default:
			return nil
		}
		if v.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			p.wrongType(k, v, "true or false", "the text in quotes is read as "+strconv.FormatBool(b))
		}
		return &b
	}
	return nil
}

func (p *parser) seconds(k, v *yaml.Node) *int {
	if v.Kind == yaml.ScalarNode && v.Tag == "!!null" {
		return nil
	}
	var n int
	if v.Kind != yaml.ScalarNode || v.Tag != "!!int" || v.Decode(&n) != nil || n < 1 {
		p.wrongType(k, v, fmt.Sprintf("a whole number from 1 to %d", maxTimeout), "it is ignored")
		return nil
	}
	if n > maxTimeout {
		p.wrongType(k, v, fmt.Sprintf("a whole number from 1 to %d", maxTimeout), fmt.Sprintf("%d is used", maxTimeout))
		n = maxTimeout
	}
	return &n
}

// cache reads the name of a cache. With an invalid name, the pack has no cache.
func (p *parser) cache(k, v *yaml.Node) string {
	if v.Kind == yaml.ScalarNode && v.Tag == "!!null" {
		return ""
	}
	if v.Kind != yaml.ScalarNode || !cachename.Valid(v.Value) {
		p.wrongType(k, v, cachename.Want, "it is ignored")
		return ""
	}
	return v.Value
}

func (p *parser) wrongType(k, v *yaml.Node, want, instead string) {
	p.report(diag.Warning, CodeWrongType, v.Line, v.Column, fmt.Sprintf("%s should be %s; %s", k.Value, want, instead), "make it "+want)
}

func tidy(s string) string { return strings.TrimSpace(strings.ToValidUTF8(s, "\ufffd")) }

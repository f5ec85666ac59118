package convert

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/packname"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// markdown writes a SKILL.md. Its frontmatter holds the policy of all its tools, so
// tools with another policy go into a separate folder if the options allow it.
func (w *writer) markdown() {
	groups := map[string][]*tools.Tool{} // :: policy and modes → tools
	var order []string
	for _, t := range w.source.Tools {
		if t.Command == nil {
			w.report(diag.Error, CodeImpossible, t, fmt.Sprintf("tool %q is only declared, and a tool in Markdown must be a command", t.Name), "choose another format, or leave the tool out")
			continue
		}
		key := fmt.Sprint(t.Policy.ReadOnly, t.Policy.AlwaysAsk, t.Policy.Review, t.Policy.Cache, t.Policy.Network == tools.NetworkFull, t.Policy.Timeout, t.Modes)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], t)
	}
	if diag.HasErrors(w.problems) {
		return
	}
	if len(order) > 1 && !w.options.Split {
		w.report(diag.Error, CodeImpossible, groups[order[1]][0],
			fmt.Sprintf("tools %q and %q differ in their policies or modes, but a SKILL.md has one policy for all its tools", groups[order[0]][0].Name, groups[order[1]][0].Name),
			fmt.Sprintf("use --split to write %d packs; tool-pack and tools-json keep one", len(order)))
		return
	}
	taken := map[string]bool{}
	for _, key := range order {
		own := w.packName(groups[key])
		name := own
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s-%d", own, n)
		}
		taken[name] = true
		w.write(path.Join(name, "SKILL.md"), w.skill(name, groups[key]), groups[key]...)
	}
}

// packName returns a name for the pack of some tools.
func (w *writer) packName(list []*tools.Tool) string {
	for _, name := range []string{w.source.Name, list[0].Name} {
		name = strings.Trim(strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9')
		}), "-"), "-")
		if len(name) > 60 {
			name = strings.TrimRight(name[:60], "-")
		}
		if packname.IsValid(name) {
			return name
		}
	}
	return "tools"
}

// skill writes one document.
func (w *writer) skill(name string, list []*tools.Tool) []byte {
	var b bytes.Buffer
	b.WriteString("---\n")
	key := func(key string, value any) {
		var doc yaml.Node
		if err := doc.Encode(value); err != nil {
			panic("encoding a value of the frontmatter: " + err.Error()) // texts, numbers, lists of texts
		}
		if doc.Kind == yaml.SequenceNode {
			doc.Style = yaml.FlowStyle
		}
		line, err := yaml.Marshal(map[string]*yaml.Node{key: &doc})
		if err != nil {
			panic("encoding the frontmatter: " + err.Error())
		}
		b.Write(line)
	}
	version := w.source.Version
	description := w.source.Description
	if description == "" {
		var all []string
		for _, t := range list {
			all = append(all, strings.Join(strings.Fields(t.Description), " "))
		}
		description = strings.TrimSpace(strings.Join(all, " "))
	}
	if description == "" {
		description = "Tools: " + list[0].Name
	}
	for _, t := range list {
		if version == "" {
			version = t.Version
		}
	}
	if version == "" {
		version = "1.0.0"
	}
	policy := list[0].Policy
	key("name", name)
	key("version", version)
	key("description", description)
	if w.source.Author != "" {
		key("author", w.source.Author)
	}
	if len(list[0].Modes) > 0 {
		key("modes", list[0].Modes)
	}
	if policy.ReadOnly {
		key("read_only", true)
	}
	if policy.AlwaysAsk {
		key("always_ask", true)
	}
	if policy.Review {
		key("review", tools.ReviewAll)
	}
	if policy.Cache != "" {
		key("cache", policy.Cache)
	}
	if policy.Network == tools.NetworkFull {
		key("network", true)
	}
	if policy.Timeout > 0 {
		key("timeout", int(policy.Timeout.Seconds()))
	}
	b.WriteString("---\n")
	for _, t := range list {
		section(&b, t)
	}
	return b.Bytes()
}

// section writes one tool.
func section(b *bytes.Buffer, t *tools.Tool) {
	fmt.Fprintf(b, "\n### %s\n", t.Name)
	if d := strings.TrimSpace(t.Description); d != "" {
		fmt.Fprintf(b, "\n%s\n", d)
	}
	b.WriteString("\n#### Parameters\n\n")
	table(b, t)
	if len(t.Examples) > 0 {
		b.WriteString("\n#### Examples\n")
		for _, e := range t.Examples {
			mark := fence(e)
			fmt.Fprintf(b, "\n%s\n%s\n%s\n", mark, e, mark)
		}
	}
	line := commandLine(t)
	mark := fence(line)
	fmt.Fprintf(b, "\n#### Command\n\n%sbash\n%s\n%s\n", mark, line, mark)
}

// fence returns a fence that does not occur in the text.
func fence(text string) string {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark
}

// table writes the parameters.
func table(b *bytes.Buffer, t *tools.Tool) {
	root, e := strictjson.Parse(t.InputSchema)
	if e != nil {
		root = &strictjson.Node{} // cannot happen: a tool with such a schema is refused when it is read
	}
	properties := root.Get("properties")
	if properties == nil || len(properties.Members) == 0 {
		b.WriteString("None.\n")
		return
	}
	b.WriteString("| Name | Type | Required | Description |\n|------|------|----------|-------------|\n")
	for _, p := range properties.Members {
		required := "no"
		if slices.Contains(root.StringsAt("required"), p.Key) || t.Sources[p.Key].Required {
			// Only the model can give a value here.
			required = "yes"
		}
		kind := p.Value.StringAt("type")
		if !slices.Contains([]string{"string", "integer", "number", "boolean", "array"}, kind) {
			kind = "string" // the difference is reported
		}
		description := strings.Join(strings.Fields(p.Value.StringAt("description")), " ")
		preset := p.Value.Get("default")
		if preset != nil && preset.Kind != strictjson.Null && !strings.Contains(strings.ToLower(description), "(default:") && !hasFallback(t.Command, p.Key) {
			description = strings.TrimSpace(description + " (default: " + defaultText(preset.Value()) + ")")
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", p.Key, kind, required, strings.ReplaceAll(description, "|", `\|`))
	}
}

// defaultText writes a default in the form used in a description.
func defaultText(v any) string {
	s, ok := v.(string)
	if !ok {
		return short(v)
	}
	if s == "" || strings.ContainsAny(s, " \t") {
		return `"` + s + `"`
	}
	return s
}

// hasFallback reports whether the command has a default for a parameter.
func hasFallback(c *tools.Command, name string) bool {
	for _, a := range c.Args {
		if strings.Contains(a.String(), "{{"+name+":") {
			return true
		}
	}
	return false
}

// commandLine writes a command as one line that splits into the same words. Markdown
// has no fixed values for parameters, so each is written into the command itself.
func commandLine(t *tools.Tool) string {
	var fixed []string // pairs of old and new, for strings.NewReplacer
	for name, s := range t.Sources {
		if s.From == tools.SourceLiteral {
			value, e := strictjson.Parse(s.Value)
			if e != nil {
				continue // what differs is reported
			}
			text := value.Text
			if value.Kind != strictjson.Text {
				text = string(strictjson.Canonical(value.Value()))
			}
			fixed = append(fixed, "{{"+name+"}}", strings.ReplaceAll(text, "{{", "{{{{"))
		}
	}
	literals := strings.NewReplacer(fixed...)
	words := []string{quote(t.Command.Program)}
	for _, a := range t.Command.Args {
		words = append(words, quote(literals.Replace(a.String())))
	}
	return strings.Join(words, " ")
}

// quote writes one word. Text between the braces of a placeholder needs no quoting:
// it is read verbatim, in quotes or not.
func quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+"
	outside := withoutPlaceholders(word)
	if word != "" && strings.Trim(outside, plain) == "" {
		return word
	}
	if !strings.ContainsAny(outside, "\"\\$`") {
		return `"` + word + `"`
	}
	if !strings.Contains(outside, "'") {
		return "'" + word + "'"
	}
	// Neither kind of quotes can hold the word as it is, so each single quote is
	// escaped outside of the quotes.
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// withoutPlaceholders returns a template's text outside of {{…}}.
func withoutPlaceholders(s string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "{{")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		_, after, closed := strings.Cut(rest, "}}")
		if !closed {
			b.WriteString(rest)
			return b.String()
		}
		s = after
	}
}

// Package convert writes tools that were declared in one format in another, and
// says what the other format has no words for.
//
// What it writes is read again with the same parsers that serving uses, and
// compared: two tools are equal if their definitions are. So nothing gets lost
// without being named. It reads and writes no files, and it does not improve
// anything on the way.
package convert

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// A Format is one in which tools are declared.
type Format string

// The formats.
const (
	Markdown  Format = "markdown"   // SKILL.md
	ToolPack  Format = "tool-pack"  // NAME.tool.json, one file a tool
	ToolsJSON Format = "tools-json" // tools.json
)

// Formats returns all formats.
func Formats() []Format { return []Format{Markdown, ToolPack, ToolsJSON} }

// ParseFormat returns the format called name.
func ParseFormat(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats(), f) {
		return f, nil
	}
	return "", fmt.Errorf("no format %q; there are markdown, tool-pack and tools-json", name)
}

// FormatOf returns the format of a file by its name, or "".
func FormatOf(name string) Format {
	switch base := path.Base(strings.ReplaceAll(name, `\`, "/")); {
	case strings.HasSuffix(base, ".tool.json"):
		return ToolPack
	case strings.EqualFold(path.Ext(base), ".json"):
		return ToolsJSON
	case strings.EqualFold(path.Ext(base), ".md"):
		return Markdown
	}
	return ""
}

// Codes of the diagnostics of this package. They are stable.
const (
	CodeLost       = "convert-lost"       // warning: something that the format has no words for, or says otherwise
	CodeImpossible = "convert-impossible" // error: a tool that the format cannot declare
	CodeFiles      = "convert-files"      // info: a tool that runs a file of its pack, which is not copied
)

// A Source is the tools of one file, and what it says of the pack around them.
type Source struct {
	Name, Description string // of the pack; empty when the file does not say
	Version, Author   string
	Tools             []*tools.Tool
}

// Read reads the tools of a file in the format that its name says. Source is
// nil exactly if one of the diagnostics is an error, or there is no tool.
func Read(l *tools.Loader, file string, src []byte) (*Source, []diag.Diagnostic) {
	var set *tools.Set
	var problems []diag.Diagnostic
	s := &Source{}
	switch FormatOf(file) {
	case ToolPack:
		set, problems = l.ParseToolPack(file, src)
	case ToolsJSON:
		set, problems = l.ParseToolsJSON(file, src)
	default:
		if set := charset.Of(src); set != charset.UTF8 {
			return nil, []diag.Diagnostic{{
				Code: tools.CodeNotUTF8, Severity: diag.Error, File: file,
				Message: fmt.Sprintf("the document is %s, not UTF-8", set), Hint: "save the file as UTF-8",
			}}
		}
		doc, found := frontmatter.Parse(file, src)
		if doc == nil {
			return nil, found
		}
		set, problems = l.ParseMarkdown(file, src, defaults(doc))
		problems = append(found, problems...)
		s.Name, s.Description, s.Version, s.Author = doc.Name, doc.Description, doc.Version, doc.Author
	}
	if set == nil || len(set.Tools) == 0 {
		return nil, problems
	}
	s.Tools = set.Tools
	return s, problems
}

// defaults is what a frontmatter says about all tools below it.
func defaults(doc *frontmatter.Document) tools.MarkdownDefaults {
	is := func(b *bool) bool { return b != nil && *b }
	d := tools.MarkdownDefaults{
		BodyOffset: doc.BodyOffset, Modes: doc.Modes,
		ReadOnly: is(doc.ReadOnly), AlwaysAsk: is(doc.AlwaysAsk), Network: is(doc.Network),
	}
	if doc.Timeout != nil {
		d.Timeout = time.Duration(*doc.Timeout) * time.Second
	}
	return d
}

// A File is one that was written.
type File struct {
	Name string // a path with slashes, relative to where the files go
	Data []byte
}

// Write declares the tools of s in another format, and reports everything that
// is another after reading it back. The files are nil exactly if one of the
// diagnostics is an error: then a tool cannot be declared at all.
func Write(l *tools.Loader, s *Source, to Format) ([]File, []diag.Diagnostic) {
	w := &writer{loader: l, source: s, to: to}
	switch to {
	case Markdown:
		w.markdown()
	case ToolPack:
		for _, t := range s.Tools {
			w.write(t.Name+".tool.json", toolPack(t), t)
		}
	default:
		w.write("tools.json", toolsJSON(s.Tools), s.Tools...)
	}
	for _, t := range s.Tools {
		if t.Command != nil && strings.HasPrefix(t.Command.Program, "./") {
			w.report(diag.Info, CodeFiles, t, fmt.Sprintf("tool %q runs %q of its pack", t.Name, t.Command.Program), "copy that file, and what it needs, beside what was written")
		}
	}
	if diag.HasErrors(w.problems) {
		return nil, w.problems
	}
	return w.files, w.problems
}

type writer struct {
	loader   *tools.Loader
	source   *Source
	to       Format
	files    []File
	problems []diag.Diagnostic
}

func (w *writer) report(severity diag.Severity, code string, t *tools.Tool, message, hint string) {
	w.problems = append(w.problems, diag.Diagnostic{Code: code, Severity: severity, File: t.File, Line: t.Line, Message: message, Hint: hint})
}

// write adds a file that declares the tools, and compares them with what it
// says when it is read.
func (w *writer) write(name string, data []byte, declared ...*tools.Tool) {
	back, problems := Read(w.loader, name, data)
	for _, d := range problems {
		if d.Severity == diag.Error {
			w.report(diag.Error, CodeImpossible, nearest(declared, back, d), fmt.Sprintf("%s cannot be written as %s: %s", named(declared), w.to, d.Message), "change it so that the format can say it, or choose another format")
		}
	}
	if diag.HasErrors(problems) {
		return
	}
	for _, b := range back.list() {
		// Text of a description can begin a block in Markdown.
		if !slices.ContainsFunc(declared, func(t *tools.Tool) bool { return t.Name == b.Name }) {
			w.report(diag.Error, CodeImpossible, declared[0], fmt.Sprintf("%s cannot be written as %s: its text would declare another tool, %q", named(declared), w.to, b.Name), "take what looks like a tool out of the description")
			return
		}
	}
	for _, t := range declared {
		var got *tools.Tool
		if back != nil {
			if i := slices.IndexFunc(back.Tools, func(b *tools.Tool) bool { return b.Name == t.Name }); i >= 0 {
				got = back.Tools[i]
			}
		}
		if got == nil {
			w.report(diag.Error, CodeImpossible, t, fmt.Sprintf("tool %q cannot be written as %s", t.Name, w.to), "choose another format")
			continue
		}
		for _, l := range losses(t, got) {
			w.report(diag.Warning, CodeLost, t, fmt.Sprintf("tool %q: %s", t.Name, l), "look whether the tool does without it; "+w.hint())
		}
	}
	w.files = append(w.files, File{name, data})
}

func (w *writer) hint() string {
	if w.to == Markdown {
		return "tool-pack and tools-json can say it"
	}
	return "tools-json can say it"
}

// named returns words for the tools of a file.
func named(list []*tools.Tool) string {
	if len(list) == 1 {
		return fmt.Sprintf("tool %q", list[0].Name)
	}
	return "the tools"
}

// nearest returns the tool that a problem of a written file is most likely
// about.
func nearest(declared []*tools.Tool, _ *Source, d diag.Diagnostic) *tools.Tool {
	for _, t := range declared {
		if strings.Contains(d.Message, fmt.Sprintf("%q", t.Name)) {
			return t
		}
	}
	return declared[0]
}

// losses says what differs between two tools, one sentence each.
func losses(want, got *tools.Tool) []string {
	var a, b any
	if err := decode(want.Definition(), &a); err != nil {
		return []string{err.Error()}
	}
	if err := decode(got.Definition(), &b); err != nil {
		return []string{err.Error()}
	}
	return differences("", a, b)
}

func decode(data []byte, v *any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return dec.Decode(v)
}

// differences compares two trees of JSON; at is the JSON pointer to them.
func differences(at string, want, got any) []string {
	a, isObject := want.(map[string]any)
	b, isObject2 := got.(map[string]any)
	if !isObject || !isObject2 {
		if bytes.Equal(compact(want), compact(got)) {
			return nil
		}
		return []string{fmt.Sprintf("%s is %s, and becomes %s", at, short(want), short(got))}
	}
	var found []string
	keys := map[string]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	for _, k := range sorted(keys) {
		x, had := a[k]
		y, has := b[k]
		below := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
		switch {
		case !has:
			found = append(found, fmt.Sprintf("%s is left out (it was %s)", below, short(x)))
		case !had:
			found = append(found, fmt.Sprintf("%s is added: %s", below, short(y)))
		default:
			found = append(found, differences(below, x, y)...)
		}
	}
	return found
}

func sorted(set map[string]bool) []string {
	var out []string
	for k := range set {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func compact(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("encoding %T: %v", v, err)) // it was decoded from JSON
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// short is a value for a message.
func short(v any) string {
	const limit = 120
	text := string(compact(v))
	if r := []rune(text); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return text
}

// list returns the tools of a source that may be nil.
func (s *Source) list() []*tools.Tool {
	if s == nil {
		return nil
	}
	return s.Tools
}

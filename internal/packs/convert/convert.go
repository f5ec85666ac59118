// Package convert rewrites tools from one format to another, and reports what the target
// format cannot express.
//
// It parses its output with the parsers that serving uses, and compares the tools'
// definitions, so nothing is lost without being reported. It reads and writes no files,
// and improves nothing on the way.
package convert

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/markdown"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A Format is a format in which tools are declared.
type Format = formats.Format

// The formats.
const (
	Markdown  = formats.Markdown
	ToolPack  = formats.ToolPack
	ToolsJSON = formats.ToolsJSON
)

// Formats returns all formats.
func Formats() []Format { return []Format{Markdown, ToolPack, ToolsJSON} }

// ParseFormat returns the format called name.
func ParseFormat(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats(), f) {
		return f, nil
	}
	return "", fmt.Errorf("no format %q; the formats are markdown, tool-pack and tools-json", name)
}

// FormatOf returns the format of a file that a person named, or "". It takes any
// Markdown document and any JSON file, since either may declare tools.
func FormatOf(name string) Format {
	switch base := path.Base(strings.ReplaceAll(name, `\`, "/")); {
	case formats.Of(base) == ToolPack:
		return ToolPack
	case strings.EqualFold(path.Ext(base), ".json"):
		return ToolsJSON
	case strings.EqualFold(path.Ext(base), ".md"):
		return Markdown
	}
	return ""
}

// Target returns the default format to convert a file in format from to, or "" if
// several are equally likely. The one default comes from "Migration from SKILL.md" in
// specs/tool-packs.
func Target(from Format) Format {
	if from == Markdown {
		return ToolPack
	}
	return ""
}

// Codes of the diagnostics of this package. They are stable.
const (
	CodeLost       = "convert-lost"       // warning: something that the format cannot express, or expresses differently
	CodeImpossible = "convert-impossible" // error: a tool that the format cannot declare
	CodeFiles      = "convert-files"      // info: a tool that runs a file of its pack, which is not copied
)

// A Source is the tools of one file, and what the file says about its pack.
type Source struct {
	Name, Description string // of the pack; empty when the file does not say
	Version, Author   string
	Tools             []*tools.Tool
}

// Read reads the tools of a file in the format that its name implies. The Source is
// nil exactly if one of the diagnostics is an error or there is no tool.
func Read(file string, src []byte) (*Source, []diag.Diagnostic) {
	var set *tools.Set
	var problems []diag.Diagnostic
	s := &Source{}
	switch f := FormatOf(file); f {
	case ToolPack, ToolsJSON:
		set, problems = formats.Parse(f, file, src, tools.Limits{})
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
		set, problems = markdown.Parse(file, src, markdown.DefaultsOf(doc), tools.Limits{})
		problems = append(found, problems...)
		s.Name, s.Description, s.Version, s.Author = doc.Name, doc.Description, doc.Version, doc.Author
	}
	if set == nil || len(set.Tools) == 0 {
		return nil, problems
	}
	s.Tools = set.Tools
	return s, problems
}

// A File is a file to write.
type File struct {
	Name string // a path with slashes, relative to where the files go
	Data []byte
}

// Options say how tools are written. The zero value never splits one pack into
// several.
type Options struct {
	// Split writes a separate document for each policy where one document cannot
	// express them all.
	Split bool
}

// Write declares the tools of s in another format, reads the result back, and reports
// every difference, in one diagnostic for each kind. The files are nil exactly if one
// of the diagnostics is an error: then a tool cannot be declared at all.
func Write(s *Source, to Format, o Options) ([]File, []diag.Diagnostic) {
	w := &writer{source: s, to: to, options: o}
	w.all()
	w.lost()
	for _, t := range s.Tools {
		if t.Command != nil && strings.HasPrefix(t.Command.Program, "./") {
			file := strings.TrimPrefix(t.Command.Program, "./")
			hint := fmt.Sprintf("copy %s, and what it needs, into the folder of the new SKILL.md", file)
			if to != Markdown {
				hint = fmt.Sprintf("put the new file into a pack: a folder with a SKILL.md, %s, and what that needs", file)
			}
			w.report(diag.Info, CodeFiles, t, fmt.Sprintf("tool %q runs %q of its pack", t.Name, t.Command.Program), hint)
		}
	}
	if diag.HasErrors(w.problems) {
		return nil, w.problems
	}
	return w.files, w.problems
}

type writer struct {
	source   *Source
	to       Format
	options  Options
	files    []File
	losses   []loss
	problems []diag.Diagnostic
}

// A loss is one thing that a tool says and the written file does not.
type loss struct {
	tool *tools.Tool
	kind string // equal for losses that differ only in names and values
	text string
}

func (w *writer) all() {
	switch w.to {
	case Markdown:
		w.markdown()
	case ToolPack:
		for _, t := range w.source.Tools {
			w.write(formats.ToolPackFile(t.Name), toolPack(withVersion(t, w.source)), t)
		}
	default:
		list := make([]*tools.Tool, len(w.source.Tools))
		for i, t := range w.source.Tools {
			list[i] = withVersion(t, w.source)
		}
		w.write(formats.ToolsJSONFile, toolsJSON(list), w.source.Tools...)
	}
}

// withVersion returns the tool with its document's version if it has none itself.
func withVersion(t *tools.Tool, s *Source) *tools.Tool {
	own := *t
	own.Version = cmp.Or(t.Version, s.Version)
	return &own
}

// lost reports the losses, one diagnostic for each kind.
func (w *writer) lost() {
	const named = 3
	byKind := make(map[string][]loss)
	var kinds []string
	for _, l := range w.losses {
		if byKind[l.kind] == nil {
			kinds = append(kinds, l.kind)
		}
		byKind[l.kind] = append(byKind[l.kind], l)
	}
	for _, kind := range kinds {
		all := byKind[kind]
		message := fmt.Sprintf("tool %q: %s", all[0].tool.Name, all[0].text)
		if more := all[1:]; len(more) > 0 {
			var others []string
			for _, l := range more {
				if other := fmt.Sprintf("%q", l.tool.Name); !slices.Contains(others, other) {
					others = append(others, other)
				}
			}
			if n := len(others) - named; n > 0 {
				others = append(others[:named], fmt.Sprintf("%d more", n))
			}
			message += fmt.Sprintf("; and %d more like this, in %s", len(more), strings.Join(others, ", "))
		}
		w.report(diag.Warning, CodeLost, all[0].tool, message, "check whether the tool works without it"+w.sayable(all))
	}
}

// sayable names the formats, other than the original one, that can express the whole
// of every tool in all.
func (w *writer) sayable(all []loss) string {
	var can []string
	for _, f := range []Format{ToolPack, ToolsJSON} {
		if f != w.to && f != FormatOf(all[0].tool.File) && !slices.ContainsFunc(all, func(l loss) bool { return !w.whole(l.tool, f) }) {
			can = append(can, string(f))
		}
	}
	if len(can) == 0 {
		return ""
	}
	return "; " + strings.Join(can, " and ") + " can express it"
}

// whole reports whether a format can express all of a tool.
func (w *writer) whole(t *tools.Tool, f Format) bool {
	s := *w.source
	s.Tools = []*tools.Tool{t}
	other := &writer{source: &s, to: f}
	other.all()
	return len(other.losses) == 0 && !diag.HasErrors(other.problems)
}

func (w *writer) report(severity diag.Severity, code string, t *tools.Tool, message, hint string) {
	w.problems = append(w.problems, diag.Diagnostic{Code: code, Severity: severity, File: t.File, Line: t.Line, Message: message, Hint: hint})
}

// write adds a file that declares the tools, reads it back, and compares.
func (w *writer) write(name string, data []byte, declared ...*tools.Tool) {
	back, problems := Read(name, data)
	for _, d := range problems {
		if d.Severity == diag.Error {
			w.report(diag.Error, CodeImpossible, nearest(declared, d), fmt.Sprintf("%s cannot be written as %s: %s", named(declared), w.to, d.Message), "change it so that the format can express it, or choose another format")
		}
	}
	if diag.HasErrors(problems) {
		return
	}
	for _, b := range back.list() {
		// Text in a description can begin a Markdown block, and so a tool.
		if !slices.ContainsFunc(declared, func(t *tools.Tool) bool { return t.Name == b.Name }) {
			w.report(diag.Error, CodeImpossible, declared[0], fmt.Sprintf("%s cannot be written as %s: its description would declare another tool, %q", named(declared), w.to, b.Name), "remove what looks like a tool from the description")
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
		want, got := withVersion(t, w.source), withVersion(got, back)
		if want.Version == "" {
			got.Version = "" // Markdown needs one
		}
		for _, l := range differences("", "", definition(want), definition(got)) {
			l.tool = t
			w.losses = append(w.losses, l)
		}
	}
	w.files = append(w.files, File{name, data})
}

// named describes the tools of a file for a message.
func named(list []*tools.Tool) string {
	if len(list) == 1 {
		return fmt.Sprintf("tool %q", list[0].Name)
	}
	return "the tools"
}

// nearest returns the tool that a problem of a written file is most likely
// about.
func nearest(declared []*tools.Tool, d diag.Diagnostic) *tools.Tool {
	for _, t := range declared {
		if strings.Contains(d.Message, fmt.Sprintf("%q", t.Name)) {
			return t
		}
	}
	return declared[0]
}

// specCwd is how specs/tool-packs names the project folder.
const specCwd = "{{context.cwd}}"

// definition returns the decoded definition of a tool, with one spelling of the
// project folder.
func definition(t *tools.Tool) any {
	root, e := strictjson.Parse(t.Definition())
	if e != nil {
		return string(t.Definition())
	}
	def := root.Value()
	if command, ok := def.(map[string]any)["command"].(map[string]any); ok && command["cwd"] == specCwd {
		command["cwd"] = tools.CwdProject
	}
	return def
}

// differences compares two JSON trees. at is the JSON pointer to them, and kind is
// that pointer without the names that a pack chose.
func differences(at, kind string, want, got any) []loss {
	a, isObject := want.(map[string]any)
	b, isObject2 := got.(map[string]any)
	if !isObject || !isObject2 {
		if bytes.Equal(strictjson.Canonical(want), strictjson.Canonical(got)) {
			return nil
		}
		return []loss{{kind: kind + " becomes another", text: fmt.Sprintf("%s is %s, but becomes %s", at, short(want), short(got))}}
	}
	var found []loss
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
		below := at + strictjson.Pointer([]string{k})
		belowKind := kind + "/" + k
		switch path.Base(kind) {
		case "properties", "sources", "env", "$defs":
			belowKind = kind + "/*"
		}
		switch {
		case !has:
			found = append(found, loss{kind: belowKind + " is left out", text: fmt.Sprintf("%s is left out (it was %s)", below, short(x))})
		case !had:
			found = append(found, loss{kind: belowKind + " is added", text: fmt.Sprintf("%s is added: %s", below, short(y))})
		default:
			found = append(found, differences(below, belowKind, x, y)...)
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

// short shortens a value for a message.
func short(v any) string {
	const limit = 120
	text := string(strictjson.Canonical(v))
	if r := []rune(text); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return text
}

// list returns the tools of s, which may be nil.
func (s *Source) list() []*tools.Tool {
	if s == nil {
		return nil
	}
	return s.Tools
}

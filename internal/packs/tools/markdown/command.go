package markdown

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/yuin/goldmark/ast"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/phrase"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Bounds on a command line: more than any system would run.
const (
	maxCommandBytes = 64 << 10
	maxCommandWords = 1000
)

const oneCommand = "keep one command, and put what needs several into a script of the pack"

// commandLine returns the words of a section's command, beginning with the program. It
// returns nil after an error.
func (m *document) commandLine(s *section) []*strictjson.Node {
	commands := s.all(partCommand)
	if len(commands) > 1 {
		m.Report(diag.Error, tools.CodeCommandSeveral, m.node(commands[1].at, ""), fmt.Sprintf("tool %q has a second Command", s.name()), "keep one, or make another tool of it")
		return nil
	}
	fences := commands[0].fences()
	switch len(fences) {
	case 1:
	case 0:
		m.Report(diag.Error, tools.CodeCommandFence, m.node(commands[0].at, ""), fmt.Sprintf("the Command of tool %q has no fenced block", s.name()),
			"write the command between two lines of ```")
		return nil
	default:
		m.Report(diag.Error, tools.CodeCommandSeveral, m.node(fences[1].Pos(), ""), fmt.Sprintf("the Command of tool %q has a second block", s.name()), oneCommand)
		return nil
	}
	// One that takes the next command in may well end where that one should.
	if !m.closed(fences[0]) || MentionsCommand(fences[0].Lines().Value(m.src)) {
		m.unclosed(fences[0])
		return nil
	}
	text, offset := m.fenced(fences[0])
	if len(text) > maxCommandBytes {
		m.Report(diag.Error, tools.CodeTooLarge, m.node(fences[0].Pos(), ""),
			fmt.Sprintf("the command has %d bytes, and at most %d are read", len(text), maxCommandBytes), "put it into a script of the pack")
		return nil
	}
	out, err := splitCommand(text)
	for _, at := range out.comments {
		m.Report(diag.Warning, tools.CodeCommandComment, m.node(offset(at), ""), "a comment beside the command is not read", "write it above the block")
	}
	if e, ok := errors.AsType[*quoteError](err); ok {
		m.Report(diag.Error, tools.CodeCommandQuote, m.node(offset(e.at), ""), e.Error(), `close it, or write \' or \" for the character itself`)
		return nil
	}
	switch {
	case len(out.words) == 0:
		m.Report(diag.Error, tools.CodeCommandFence, m.node(fences[0].Pos(), ""), fmt.Sprintf("the Command of tool %q is empty", s.name()), "write a program and its arguments")
		return nil
	case out.next >= 0:
		hint := oneCommand + `; a \ at the end of a line continues it`
		if endsInSpaces(text[:out.next]) {
			hint = `remove the spaces after the \ at the end of the line above`
		}
		m.Report(diag.Error, tools.CodeCommandSeveral, m.node(offset(out.next), ""), fmt.Sprintf("the Command of tool %q has a second line", s.name()), hint)
		return nil
	case len(out.words) > maxCommandWords:
		m.Report(diag.Error, tools.CodeTooLarge, m.node(offset(out.words[maxCommandWords].at), ""),
			fmt.Sprintf("the command has %d words, and at most %d are read", len(out.words), maxCommandWords), "put it into a script of the pack")
		return nil
	}
	m.shellMarks(out.marks, offset)
	words := make([]*strictjson.Node, len(out.words))
	for i, w := range out.words {
		words[i] = m.node(offset(w.at), w.text)
	}
	return words
}

// endsInSpaces reports whether a line was meant to be continued.
func endsInSpaces(text string) bool {
	line := strings.TrimRight(text, " \t")
	line = strings.TrimSuffix(line, "\n")
	trimmed := strings.TrimRight(line, " \t")
	return trimmed != line && strings.HasSuffix(trimmed, `\`)
}

// fenced returns the text of a fence, and what turns offsets in it into offsets
// in the body.
func (m *document) fenced(f *ast.FencedCodeBlock) (text string, offset func(int) int) {
	var b strings.Builder
	var starts, at []int // of each line, in the text and in the body
	for _, segment := range f.Lines().Sliced(0, f.Lines().Len()) {
		starts, at = append(starts, b.Len()), append(at, segment.Start)
		line := segment.Value(m.src)
		if s, ok := strings.CutSuffix(string(line), "\r\n"); ok {
			b.WriteString(s)
			b.WriteByte('\n')
		} else {
			b.Write(line)
		}
	}
	return b.String(), func(i int) int {
		line := sort.SearchInts(starts, i+1) - 1
		if line < 0 {
			return max(f.Pos(), 0)
		}
		return at[line] + i - starts[line]
	}
}

// shellMarks warns once about each thing that a shell would not pass on.
func (m *document) shellMarks(marks []mark, offset func(int) int) {
	var seen []string
	for _, k := range marks {
		if slices.Contains(seen, k.text) {
			continue
		}
		seen = append(seen, k.text)
		m.Report(diag.Warning, tools.CodeCommandShell, m.node(offset(k.at), ""), fmt.Sprintf("%+q is ordinary text here: no shell reads the command", phrase.Clip(k.text)),
			"put what needs a shell into a script of the pack; quote it with ' if the text is meant")
	}
}

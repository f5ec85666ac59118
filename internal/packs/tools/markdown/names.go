package markdown

import (
	"bytes"
	"slices"
	"strings"
)

// Names returns the names of the tools that the body of a Markdown document seems to
// declare, without compiling any. It is for search. It considers only lines that look like
// headings, so for an unusual document it may return names that [Parse] does not, and miss
// others.
func Names(body []byte) []string {
	if !MentionsCommand(body) {
		return nil
	}
	var names []string
	name := ""       // of the current section
	var fence []byte // the start of the open fence; nil if none is open
	for line := range bytes.Lines(body) {
		indented := len(line)
		line = bytes.TrimLeft(line, " ")
		if indented-len(line) > 3 {
			continue
		}
		line = bytes.TrimRight(line, " \t\r\n")
		if mark := fenceOf(line); mark != nil {
			switch {
			case fence == nil:
				fence = mark
			case mark[0] == fence[0] && len(mark) >= len(fence) && len(mark) == len(line):
				fence = nil
			}
			continue
		}
		if fence != nil {
			continue
		}
		level, title := headingOf(line)
		switch {
		case level == 0:
		case level < toolLevel:
			name = ""
		case level == toolLevel:
			s := section{title: title}
			if name = s.name(); !validMarkdownName(name) {
				name = ""
			}
		case level == partLevel && name != "" && strings.EqualFold(title, partCommand):
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// fenceOf returns the start of a line that opens or closes a fence; nil for any other line.
func fenceOf(line []byte) []byte {
	if len(line) == 0 || line[0] != '`' && line[0] != '~' {
		return nil
	}
	n := len(line) - len(bytes.TrimLeft(line, string(line[:1])))
	if n < 3 || line[0] == '`' && bytes.IndexByte(line[n:], '`') >= 0 {
		return nil
	}
	return line[:n]
}

// headingOf is the level of a line that is a heading, and its text; 0 for another.
func headingOf(line []byte) (level int, title string) {
	rest := bytes.TrimLeft(line, "#")
	level = len(line) - len(rest)
	if level == 0 || level > 6 || len(rest) > 0 && rest[0] != ' ' && rest[0] != '\t' {
		return 0, ""
	}
	text := bytes.TrimSpace(rest)
	// Marks at the end are no part of it, when something parts them from the rest.
	if open := bytes.TrimRight(text, "#"); len(open) == 0 || open[len(open)-1] == ' ' || open[len(open)-1] == '\t' {
		text = bytes.TrimSpace(open)
	}
	return level, string(text)
}

package lint

import "strings"

// unquoted returns a Markdown document with block quotes and fenced code replaced by
// spaces. Lines and offsets stay. An unclosed fence quotes nothing, so that one line
// cannot hide the rest.
func unquoted(text string) string {
	if !strings.ContainsAny(text, ">`~") {
		return text
	}
	out := []byte(text)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	var open string // the fence that is open; empty: none
	var inside int  // where its content begins
	at := 0
	for line := range strings.Lines(text) {
		end := at + len(line)
		fence, info := fenceOf(line)
		switch {
		case open == "" && fence != "" && (fence[0] == '~' || !strings.Contains(info, "`")):
			open, inside = fence, end
		case open != "" && strings.HasPrefix(fence, open) && info == "":
			blank(inside, at)
			open = ""
		}
		at = end
	}
	at = 0
	for line := range strings.Lines(text) {
		end := at + len(line)
		if rest := strings.TrimLeft(line, " "); strings.HasPrefix(rest, ">") && len(line)-len(rest) <= 3 {
			blank(at, end)
		}
		at = end
	}
	return string(out)
}

// fenceOf returns the fence at the beginning of a line and the text after it, or ""
// if there is none.
func fenceOf(line string) (fence, info string) {
	rest := strings.TrimLeft(line, " \t") // in lists, too
	for _, c := range []string{"`", "~"} {
		if behind := strings.TrimLeft(rest, c); len(rest)-len(behind) >= 3 {
			return rest[:len(rest)-len(behind)], strings.TrimSpace(behind)
		}
	}
	return "", ""
}

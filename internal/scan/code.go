package scan

import (
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/scan/letters"
)

// code cuts a script into units: logical lines of code, and remarks.
func (f *file) code(lang string) {
	var j joiner
	var note joiner
	flush := func() {
		if !j.empty() {
			u := j.take(code)
			u.lang = lang
			f.units = append(f.units, u)
		}
	}
	endNote := func() {
		if !note.empty() {
			f.units = append(f.units, note.take(remark))
		}
	}
	block := "" // the mark that ends the open block of remarks or string
	for i, raw := range f.lines {
		s := strings.TrimSpace(f.normal(raw))
		if lang == "shell" {
			s = letters.Unsplit(s)
		}
		n := i + 1
		if block != "" {
			before, after, ends := strings.Cut(s, block)
			note.add(before, n)
			if ends {
				block = ""
				endNote()
				if s = strings.TrimSpace(after); s != "" {
					j.add(s, n)
					flush()
				}
			}
			continue
		}
		if s == "" {
			flush()
			endNote()
			continue
		}
		if open, end := opens(s, lang); open != "" {
			flush()
			inside, after, ends := strings.Cut(s[len(open):], end)
			note.add(inside, n)
			if !ends {
				block = end
				continue
			}
			endNote()
			if s = strings.TrimSpace(after); s == "" {
				continue
			}
		}
		if isRemark(s, lang) && j.empty() {
			note.add(s, n)
			continue
		}
		endNote()
		j.add(s, n)
		if !continues(s) {
			flush()
		}
	}
	flush()
	endNote()
}

// plain makes each line a unit.
func (f *file) plain(z zone) {
	for i, raw := range f.lines {
		s := strings.TrimSpace(f.normal(raw))
		if s == "" {
			continue
		}
		f.units = append(f.units, unit{zone: z, text: s, offsets: []int{0}, lines: []int{i + 1}})
	}
}

// opens returns the marks that open and end a block of remarks, or a free-standing
// string, at the beginning of a line.
func opens(s, lang string) (open, end string) {
	switch lang {
	case "python":
		for _, q := range []string{`"""`, `'''`} {
			for _, prefix := range []string{"", "r", "R", "u"} {
				if strings.HasPrefix(s, prefix+q) {
					return prefix + q, q
				}
			}
		}
	case "js", "c":
		if strings.HasPrefix(s, "/*") {
			return "/*", "*/"
		}
	case "powershell":
		if strings.HasPrefix(s, "<#") {
			return "<#", "#>"
		}
	}
	return "", ""
}

// isRemark reports whether a line is only a remark.
func isRemark(s, lang string) bool {
	switch lang {
	case "js", "c", "javascript", "typescript", "ts", "jsx", "tsx", "go", "rust", "java", "cpp", "csharp", "cs":
		return strings.HasPrefix(s, "//") || strings.HasPrefix(s, "* ")
	case "sql", "lua":
		return strings.HasPrefix(s, "--")
	case "batch":
		return strings.HasPrefix(letters.Lower(s), "rem ") || strings.HasPrefix(s, "::")
	case "php":
		return strings.HasPrefix(s, "//") || strings.HasPrefix(s, "#")
	case "text":
		return false
	}
	return strings.HasPrefix(s, "#") && !strings.HasPrefix(s, "#!")
}

package scan

import (
	"path"
	"strings"
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
			s = unsplit(s)
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

// unsplit removes from a shell line characters that split a word without changing it:
// c\url and cu""rl are curl. Escapes that printf reads stay.
func unsplit(s string) string {
	if !strings.ContainsAny(s, `\'"`) {
		return s
	}
	b := make([]byte, 0, len(s))
	isLetter := func(i int) bool { return 0 <= i && i < len(s) && isASCIILetter(rune(s[i])) }
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && isLetter(i-1) && isLetter(i+1) && strings.IndexByte("xntr", s[i+1]) < 0:
			continue
		case (s[i] == '"' || s[i] == '\'') && i+1 < len(s) && s[i+1] == s[i] && isLetter(i-1) && isLetter(i+2):
			i++
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
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
		return strings.HasPrefix(lowered(s), "rem ") || strings.HasPrefix(s, "::")
	case "php":
		return strings.HasPrefix(s, "//") || strings.HasPrefix(s, "#")
	case "text":
		return false
	}
	return strings.HasPrefix(s, "#") && !strings.HasPrefix(s, "#!")
}

// langOf returns the language of a script, from its name and first line, or "" if the
// file is not a script.
func langOf(name string, head []byte) string {
	if line, _, _ := strings.Cut(string(head[:min(200, len(head))]), "\n"); strings.HasPrefix(line, "#!") {
		for _, is := range []struct{ word, lang string }{{"python", "python"}, {"node", "js"}, {"deno", "js"}, {"bun", "js"}, {"pwsh", "powershell"}, {"php", "php"}, {"lua", "lua"}} {
			if strings.Contains(line, is.word) {
				return is.lang
			}
		}
		return "shell"
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".sh", ".bash", ".zsh", ".ksh", ".fish", ".command", ".rb", ".pl", ".pm", ".mk", ".r", ".jl", ".ex", ".exs", ".tcl", ".awk", ".envrc", ".bats", ".cr", ".nix", ".tf":
		return "shell"
	case ".py", ".pyw", ".pyi", ".pth":
		return "python"
	case ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx", ".vue", ".svelte":
		return "js"
	case ".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".java", ".kt", ".kts", ".scala", ".swift", ".cs", ".dart", ".zig", ".groovy", ".gradle", ".m", ".sol":
		return "c"
	case ".ps1", ".psm1", ".psd1":
		return "powershell"
	case ".bat", ".cmd":
		return "batch"
	case ".vbs", ".applescript", ".scpt", ".ahk", ".hta", ".reg", ".wsf":
		return "text"
	case ".php":
		return "php"
	case ".lua", ".sql":
		return "lua"
	}
	switch strings.ToLower(name) {
	case "makefile", "gnumakefile", "dockerfile", "containerfile", "justfile", "rakefile", "gemfile", "vagrantfile", "jenkinsfile", ".bashrc", ".zshrc", ".profile", ".bash_profile", ".zshenv":
		return "shell"
	}
	return ""
}

package lint

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/cases"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// headSize is how much of a program is read to find out what starts it.
const headSize = 256

// runs reports what would fail when a tool is called: programs in the pack that are
// missing or that the system cannot start, and programs that this machine lacks.
// files lists the pack's files.
func (s *subject) runs(files []string) {
	if s.set == nil || s.dir == nil {
		return
	}
	seen := make(map[string]bool)
	for _, t := range s.set.Tools {
		if t.Command == nil || seen[t.Command.Program] {
			continue
		}
		program := t.Command.Program
		seen[program] = true
		name, inPack := strings.CutPrefix(program, "./")
		if !inPack {
			s.notHere(t.File, t.Line, fmt.Sprintf("tool %+q", t.Name), program)
			continue
		}
		s.program(t, name, files)
	}
}

// add adds a warning.
func (s *subject) add(code, file string, line int, message, hint string) {
	s.problems = append(s.problems, diag.Diagnostic{Code: code, Severity: diag.Warning, File: file, Line: line, Message: message, Hint: hint})
}

// program checks a program in the pack.
func (s *subject) program(t *tools.Tool, name string, files []string) {
	head, info, err := s.dir.ReadHeadInfo(name, headSize, nil)
	switch {
	case errors.Is(err, packfs.ErrNotFound):
		hint := "add the file, or correct the path: it begins in the pack's folder"
		if meant := near.Names(path.Clean(name), files, 1); len(meant) > 0 {
			hint = fmt.Sprintf("did you mean %q?", "./"+meant[0])
		}
		s.add(CodeProgramMissing, t.File, t.Line, fmt.Sprintf("tool %+q runs %+q, which is not in the pack", t.Name, clip(t.Command.Program)), hint)
		return
	case errors.Is(err, packfs.ErrOutside):
		s.add(CodeProgramOutside, t.File, t.Line, fmt.Sprintf("tool %+q runs %+q, which leads out of the pack", t.Name, clip(t.Command.Program)),
			"copy the program into the pack, or name one that is on PATH")
		return
	case err != nil:
		s.add(CodeProgramMissing, t.File, t.Line, fmt.Sprintf("tool %+q runs %+q, which is not a program: %s", t.Name, clip(t.Command.Program), causeOf(err)), "name a file of the pack")
		return
	}
	file := path.Clean(name)
	if info.Mode()&0o111 == 0 && runtime.GOOS != "windows" {
		s.add(CodeProgramMode, file, 0, fmt.Sprintf("tool %+q runs this file, which is not executable", t.Name), "chmod +x makes it so, and so does validate --fix")
	}
	line, script := strings.CutPrefix(string(head), "#!")
	if !script {
		if !isBinary(head) && !slices.Contains([]string{".exe", ".com", ".bat", ".cmd"}, strings.ToLower(path.Ext(name))) {
			s.add(CodeProgramNoInterpreter, file, 1, fmt.Sprintf("tool %+q runs this file, which is neither a binary nor begins with #! and an interpreter", t.Name),
				"begin the script with a line such as #!/bin/sh")
		}
		return
	}
	line, _, _ = strings.Cut(line, "\n")
	if strings.HasSuffix(line, "\r") {
		s.add(CodeProgramLineEnds, file, 1, "the first line ends in a carriage return, which the system takes for a part of the interpreter's name", "save the script with Unix line ends; validate --fix does")
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		s.add(CodeProgramNoInterpreter, file, 1, "the first line names no interpreter", "begin the script with a line such as #!/bin/sh")
		return
	}
	interpreter := words[0]
	if path.Base(interpreter) == "env" && len(words) > 1 && !strings.HasPrefix(words[1], "-") && !strings.Contains(words[1], "=") {
		s.notHere(file, 1, "the script", words[1])
	}
	s.notHere(file, 1, "the script", interpreter)
}

// notHere reports that this machine lacks a program.
func (s *subject) notHere(file string, line int, who, program string) {
	if s.opts.Installed == nil || s.opts.Installed(program) {
		return
	}
	s.problems = append(s.problems, diag.Diagnostic{
		Code: CodeProgramNotHere, Severity: diag.Info, File: file, Line: line,
		Message: fmt.Sprintf("%s needs %+q, which this machine does not have", who, clip(program)), Hint: "install it here, or say in the document what the pack needs",
	})
}

// isBinary reports whether a file begins like a program of some system.
func isBinary(head []byte) bool {
	for _, magic := range []string{"\x7fELF", "MZ", "\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", "\xca\xfe\xba\xbe", "\xca\xfe\xba\xbf"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return false
}

// tests reports what is wrong with the pack's tests. It leaves out files in the folder
// that belong to another program. If the tools cannot be read, it does not check which of
// them the tests call.
func (s *subject) tests() {
	if s.dir == nil {
		return
	}
	all, problems := cases.Read(s.dir)
	var names []string
	if s.set != nil {
		for _, t := range s.set.Tools {
			names = append(names, t.Name)
		}
	}
	ours := make(map[string]bool)
	if !s.unread {
		problems = append(problems, cases.UnknownTools(all, names, func(name string) bool { return s.set != nil && s.set.Lookup(name) != nil })...)
	}
	for _, d := range problems {
		is, known := ours[d.File]
		if !known {
			src, err := s.dir.ReadAll(d.File, cases.MaxSize)
			is = err == nil && cases.IsOurs(src)
			ours[d.File] = is
		}
		if is {
			d.Severity = diag.Warning // the pack can still be used
			s.problems = append(s.problems, d)
		}
	}
}

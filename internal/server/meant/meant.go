// Package meant guesses what was meant by a command of a pack that names no program:
// a file of the pack without "./", a command line in place of one program, or a
// script in the workspace.
//
// It changes no command and starts nothing: its guess is the hint of an error.
package meant

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolresult"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
)

// A Command is a command that could not be found, and the places where it may be.
type Command struct {
	Pack      *packs.Pack
	Workspace *workspace.Workspace
	Command   string
	Args      []string
}

// Explain explains the error of a command that names no program, or names a folder,
// and says how to write what was probably meant. It returns nil if it has no guess.
func (m Command) Explain(err error) *toolerr.Error {
	hint := ""
	if e, ok := errors.AsType[*program.NotFoundError](err); ok && e.NeededBy == "" {
		hint = m.command()
	} else if _, ok := errors.AsType[*program.NotExecutableError](err); ok {
		hint = ofFolder(m.Pack, m.Command)
	}
	if hint == "" {
		return nil
	}
	t := toolerr.ExplainSandbox(err)
	t.Hint = hint
	return t
}

func (m Command) command() string {
	if name := ofPack(m.Pack, m.Command); name != "" && name != m.Command {
		return fmt.Sprintf("A program of the pack begins with ./: call again with %s.", spelledCall(name, m.Args))
	}
	if hint := ofWorkspace(m.Workspace, m.Command, m.Args); hint != "" {
		return hint
	}
	if hint := ofFolder(m.Pack, m.Command); hint != "" {
		return hint
	}
	if name := inScripts(m.Pack, m.Command); name != "" {
		return fmt.Sprintf("The pack has that program in a folder: call again with %s.", spelledCall(name, m.Args))
	}
	if name := ofPack(m.Pack, strings.ReplaceAll(m.Command, `\`, "/")); name != "" {
		return fmt.Sprintf("A program of the pack begins with ./, and its path has slashes: call again with %s.", spelledCall(name, m.Args))
	}
	words := strings.Fields(m.Command)
	if len(words) == 0 {
		return "command names one program: call again with its name."
	}
	if name, _, ok := strings.Cut(words[0], "="); ok && isVariable(name) && len(words) > 1 {
		return "command takes one program and no arguments, and no variables before it: there is no shell. Call again with the program as the command; " +
			`where it needs a variable, "command":"env" takes NAME=VALUE, the program and its arguments as args.`
	}
	if len(words) < 2 {
		return ""
	}
	if strings.ContainsAny(m.Command, "\"'\\|&;<>$`*?(){}") {
		return "command takes one program and no arguments, and there is no shell: put each argument into args as it is, without quotes, and make a call for each program."
	}
	program := words[0]
	if name := cmp.Or(ofPack(m.Pack, program), inScripts(m.Pack, program)); name != "" {
		program = name
	}
	args := append(words[1:], m.Args...)
	if hint := ofWorkspace(m.Workspace, program, args); hint != "" {
		return hint
	}
	return fmt.Sprintf("command takes one program and no arguments: call again with %s.", spelledCall(program, args))
}

// isVariable reports whether a text is a valid name of a shell variable.
func isVariable(name string) bool {
	return name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// spelledCall returns a command as it is written in a call, as JSON.
func spelledCall(program string, args []string) string {
	if args == nil {
		args = []string{}
	}
	text, err := toolresult.JSON(struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}{program, args})
	if err != nil {
		return "it"
	}
	return strings.Trim(string(text), "{}")
}

// ofPack returns how to call a file of the pack as a program; empty if the pack has
// no such file.
func ofPack(pack *packs.Pack, name string) string {
	rel := strings.TrimPrefix(name, "./")
	if path.IsAbs(rel) || rel == "" {
		return ""
	}
	dir, err := pack.OpenDir()
	if err != nil {
		return ""
	}
	defer dir.Close()
	if _, err := dir.Read(rel, 0, 1, packfs.Limits{File: 1 << 62}); err != nil {
		return ""
	}
	return "./" + rel
}

// inScripts returns how to call a file that is in the pack's folder scripts, where
// most programs are, and was named without it; empty if there is none.
func inScripts(pack *packs.Pack, name string) string {
	if strings.ContainsAny(strings.TrimPrefix(name, "./"), `/\`) {
		return ""
	}
	return ofPack(pack, "scripts/"+strings.TrimPrefix(name, "./"))
}

// ofFolder says what can be run in a folder of the pack that was named as a program;
// empty if it is not a folder.
func ofFolder(pack *packs.Pack, name string) string {
	rel := strings.Trim(strings.TrimPrefix(name, "./"), "/")
	if rel == "" || path.IsAbs(name) {
		return ""
	}
	dir, err := pack.OpenDir()
	if err != nil {
		return ""
	}
	defer dir.Close()
	entries, _, err := dir.List(rel)
	if err != nil {
		return ""
	}
	const is = "That is a folder of the pack"
	for _, e := range entries {
		if e.Type == packfs.TypeFile && !strings.HasPrefix(e.Name, ".") {
			return fmt.Sprintf("%s: name a file in it as the command, such as %q.", is, "./"+path.Join(rel, e.Name))
		}
	}
	return is + ", and no program: name a file."
}

// ofWorkspace says how to run a script that an earlier run made: programs are not
// looked up in a workspace, whose files every run can change.
func ofWorkspace(w *workspace.Workspace, name string, args []string) string {
	rel := strings.TrimPrefix(name, "./")
	dir, err := w.Open()
	if err != nil {
		return ""
	}
	defer dir.Close()
	page, err := dir.Read(rel, 0, 256, packfs.Limits{File: 1 << 62})
	if err != nil {
		return ""
	}
	const cannot = "That file is in the workspace, where no programs are looked for"
	line, script := bytes.CutPrefix(bytes.SplitN(page.Data, []byte("\n"), 2)[0], []byte("#!"))
	words := strings.Fields(string(line))
	if !script || len(words) == 0 {
		return cannot + ". If it is a script, name its interpreter as the command and the file in args."
	}
	interpreter := path.Base(words[0])
	if interpreter == "env" && len(words) > 1 && !strings.HasPrefix(words[1], "-") {
		interpreter = words[1]
	}
	return fmt.Sprintf("%s. Call its interpreter: %s.", cannot, spelledCall(interpreter, append([]string{rel}, args...)))
}

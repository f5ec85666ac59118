// Package cases reads the test cases that a pack keeps in its folder "tests", and
// compares what a run did with what a case expects.
//
// It runs nothing. A case says what to call and what should come of it; it cannot ask
// for rights, so that its run has those of any other call. Files are read through a
// handle on the pack's folder, within bounds.
package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// Folder is where a pack keeps its cases: the files *.yaml and *.yml in it.
const Folder = "tests"

// Bounds of what is read.
const (
	MaxFiles = 100       // files of a pack
	MaxCases = 200       // cases of a pack; somebody looks at all of them before they run
	MaxSize  = 256 << 10 // bytes of a file
	maxNames = 1000      // names in the folder
)

// Codes of the diagnostics of this package. They are stable.
const (
	CodeFile       = "test-file"        // error: a file of cases cannot be read
	CodeYAML       = "test-yaml"        // error: not the YAML that is read here
	CodeKeyUnknown = "test-key-unknown" // error: a key that a case does not have
	CodeValue      = "test-value"       // error: a value that is missing, or is not what the key takes
	CodeLimit      = "test-limit"       // error: more cases, or files of cases, than are read
	CodeTool       = "test-tool"        // error: a case calls a tool that the pack does not have
)

// A Case is one call and what should come of it.
type Case struct {
	File string // in the pack, with slashes
	Line int    // 1-based
	Name string // unique in its file

	Tool      string
	Arguments json.RawMessage   // a JSON object
	Context   map[string]string // what the client says that its user looks at

	Exit   int     // the exit status that the program ends with
	Output *Check  // of what the tool returns; nil: anything
	Stderr *Check  // of what the program writes to standard error; nil: anything
	Files  []Files // that the run makes, in its workspace
}

// Files is a file that a run should make.
type Files struct {
	Path string // within the workspace, with slashes
	Check
}

// A Check says how a text should be. What is empty is not checked.
type Check struct {
	Equals   *string // but for line ends at the very end
	Contains []string
	Matches  *regexp.Regexp
}

// Read returns the cases of the pack in dir, and what is wrong with them, with their
// files as paths in the pack. A pack without the folder has no cases.
func Read(dir *packfs.Dir) ([]Case, []diag.Diagnostic) {
	is, err := dir.IsDir(Folder)
	if err != nil || !is {
		if err == nil || isMissing(err) {
			return nil, nil
		}
		return nil, []diag.Diagnostic{unreadable(Folder, err)}
	}
	sub, err := dir.Sub(Folder)
	if err != nil {
		return nil, []diag.Diagnostic{unreadable(Folder, err)}
	}
	defer sub.Close()
	entries, more, err := sub.NamesOf(maxNames, func(name string, mode fs.FileMode) bool {
		ext := path.Ext(name)
		return !mode.IsDir() && !strings.HasPrefix(name, ".") && (ext == ".yaml" || ext == ".yml")
	})
	if err != nil {
		return nil, []diag.Diagnostic{unreadable(Folder, err)}
	}
	var all []Case
	var problems []diag.Diagnostic
	limit := func(file, what string) {
		problems = append(problems, diag.Diagnostic{
			Code: CodeLimit, Severity: diag.Error, File: file, Message: "the pack has more than " + what + ", and none is run", Hint: "remove some; one case can check several things",
		})
	}
	switch {
	case more:
		limit(Folder, fmt.Sprintf("%d names in the folder of its tests", maxNames))
		return nil, problems
	case len(entries) > MaxFiles:
		limit(Folder, fmt.Sprintf("%d files of tests", MaxFiles))
		return nil, problems
	}
	for _, e := range entries {
		file := path.Join(Folder, e.Name())
		src, err := sub.ReadAll(e.Name(), MaxSize)
		if err != nil {
			problems = append(problems, unreadable(file, err))
			continue
		}
		cases, wrong := Parse(file, src)
		all, problems = append(all, cases...), append(problems, wrong...)
		if len(all) > MaxCases {
			limit(file, fmt.Sprintf("%d test cases", MaxCases))
			return nil, problems
		}
	}
	return all, problems
}

// IsOurs reports whether a file looks like one of cases: it has a list called "cases",
// of which an item has the key "tool". Packs keep files of other programs in such a
// folder, too.
func IsOurs(src []byte) bool {
	var doc struct {
		Cases []map[string]yaml.Node `yaml:"cases"`
	}
	if yaml.Unmarshal(src, &doc) != nil && len(doc.Cases) == 0 {
		return bytes.Contains(src, []byte("cases:")) && bytes.Contains(src, []byte("tool:"))
	}
	return slices.ContainsFunc(doc.Cases, func(c map[string]yaml.Node) bool { _, has := c["tool"]; return has })
}

// isMissing reports whether an error says that a pack has no such file.
func isMissing(err error) bool { return matches(err, packfs.ErrNotFound, fs.ErrNotExist) }

func unreadable(file string, err error) diag.Diagnostic {
	return diag.Diagnostic{
		Code: CodeFile, Severity: diag.Error, File: file, Message: "the tests cannot be read: " + cause(err),
		Hint: fmt.Sprintf("make it a plain file in the pack of at most %d KiB, in the folder %q", MaxSize>>10, Folder),
	}
}

// UnknownTools returns a diagnostic for each case that calls none of the pack's tools,
// whose declared names are known.
func UnknownTools(all []Case, known []string, has func(name string) bool) []diag.Diagnostic {
	var problems []diag.Diagnostic
	for _, c := range all {
		if has(c.Tool) {
			continue
		}
		hint := "the pack has no tools"
		if len(known) > 0 {
			hint = "the pack has: " + strings.Join(known, ", ")
		}
		if meant := near.Names(c.Tool, known, 1); len(meant) > 0 {
			hint = fmt.Sprintf("did you mean %q?", meant[0])
		}
		problems = append(problems, diag.Diagnostic{
			Code: CodeTool, Severity: diag.Error, File: c.File, Line: c.Line, Message: fmt.Sprintf("the test calls %q, which is no tool of the pack", clip(c.Tool)), Hint: hint,
		})
	}
	return problems
}

// clip shortens a text of the pack for a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

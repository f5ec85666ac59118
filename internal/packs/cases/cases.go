// Package cases reads the test cases in a pack's folder "tests", and compares a run's
// results with what a case expects.
//
// It runs nothing. A case names a call and the expected results. It cannot ask for
// permissions, so its run has the same ones as any other call. Files are read through
// a handle on the pack's folder, within bounds.
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

// Folder is the folder with a pack's cases: its files *.yaml and *.yml.
const Folder = "tests"

// Bounds on reading.
const (
	MaxFiles = 100       // files of a pack
	MaxCases = 200       // cases of a pack; a person looks at all of them before they run
	MaxSize  = 256 << 10 // bytes of a file
	maxNames = 1000      // names in the folder
)

// Codes of the diagnostics of this package. They are stable.
const (
	CodeFile       = "test-file"        // error: a file of cases cannot be read
	CodeYAML       = "test-yaml"        // error: unsupported YAML
	CodeKeyUnknown = "test-key-unknown" // error: an unknown key
	CodeValue      = "test-value"       // error: a value is missing or invalid
	CodeLimit      = "test-limit"       // error: too many cases or files
	CodeTool       = "test-tool"        // error: a case calls a tool that the pack lacks
)

// A Case is one call and its expected results.
type Case struct {
	File string // in the pack, with slashes
	Line int    // 1-based
	Name string // unique in its file

	Tool      string
	Arguments json.RawMessage   // a JSON object
	Context   map[string]string // what the user is looking at, according to the client

	Exit   int     // the program's exit status
	Output *Check  // of the tool's result; nil: anything
	Stderr *Check  // of the program's standard error; nil: anything
	Files  []Files // files that the run makes in its workspace
}

// Files is a file that a run should make.
type Files struct {
	Path string // within the workspace, with slashes
	Check
}

// A Check describes an expected text. Empty members are not checked.
type Check struct {
	Equals   *string // ignoring line ends at the end
	Contains []string
	Matches  *regexp.Regexp
}

// Read returns the cases of the pack in dir, and diagnostics about them, with paths
// relative to the pack. A pack without the folder has no cases.
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
		cases, wrong := parse(file, src)
		all, problems = append(all, cases...), append(problems, wrong...)
		if len(all) > MaxCases {
			limit(file, fmt.Sprintf("%d test cases", MaxCases))
			return nil, problems
		}
	}
	return all, problems
}

// IsOurs reports whether a file looks like a file of cases: it has a list "cases" with
// an item that has the key "tool". Packs keep other programs' files in such a folder,
// too.
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

// UnknownTools returns a diagnostic for each case whose tool has reports false for.
// known lists the pack's declared names, for hints.
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
			Code: CodeTool, Severity: diag.Error, File: c.File, Line: c.Line, Message: fmt.Sprintf("the test calls %q, which is not a tool of the pack", clip(c.Tool)), Hint: hint,
		})
	}
	return problems
}

// clip shortens a pack's text for a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

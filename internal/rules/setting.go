package rules

import (
	"path"
	"slices"
	"strings"
)

// This file is about what a run has besides its argv: variables, a folder and
// standard input. Each can make a program do something else (COMPILER_PATH, a
// Makefile, a script), so an allowance that bounds a run by its argv must bound
// these too.

// The words for folders.
const (
	cwdWorkspace = "workspace"
	cwdPackRoot  = "pack_root"
	cwdProject   = "project"
	cwdAny       = "*"
)

// cwdWords returns the words for folders, the most specific first.
func cwdWords() []string { return []string{cwdPackRoot, cwdProject, cwdWorkspace} }

// lacks returns what else the allowance r would have to name to cover s.
func (r *Rule) lacks(s *subject) (add []string) {
	if !starts(s.Kind) || r.asDeclared() {
		return nil
	}
	var unnamed []string
	for _, v := range s.Env {
		if !slices.ContainsFunc(r.Env, func(p string) bool { return name(s.variable(p), s.variable(v)) }) {
			unnamed = append(unnamed, v)
		}
	}
	if unnamed != nil {
		add = append(add, selectEnv+": "+words(unnamed))
	}
	if r.Cwd == "" && !s.Usual || r.Cwd != "" && !s.at(r.Cwd) {
		add = append(add, selectCwd+": "+word(s.folder()))
	}
	if s.Stdin && !r.Stdin {
		add = append(add, selectStdin+": true")
	}
	return add
}

// variable returns the name of a variable, or a pattern, in the form compared on
// this system.
func (s *subject) variable(name string) string {
	if s.windows {
		return strings.ToUpper(name)
	}
	return name
}

// sets reports whether the tool sets a variable that one of patterns matches, in
// any letter case.
func (s *subject) sets(patterns []string) bool {
	return slices.ContainsFunc(s.Env, func(v string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool { return name(strings.ToUpper(p), strings.ToUpper(v)) })
	})
}

// at reports whether the program runs in the folder that cwd means.
func (s *subject) at(cwd string) bool {
	if cwd == cwdAny {
		return true
	}
	dir := s.meant(cwd)
	return dir != "" && s.Dir != "" && clean(s.plain(s.Dir)) == clean(s.plain(dir))
}

// inside reports whether the program runs in the folder that cwd means or below
// it, as far as is known.
func (s *subject) inside(cwd string) bool {
	if cwd == cwdAny || s.Dir == "" {
		return true
	}
	dir := s.meant(cwd)
	if dir == "" {
		return false
	}
	under, at := path.Clean(folded(dir)), path.Clean(folded(s.Dir))
	return at == under || strings.HasPrefix(at, strings.TrimSuffix(under, "/")+"/") || s.Within != nil && s.Within(dir)
}

// meant returns the absolute folder that cwd means; empty if there is none.
func (s *subject) meant(cwd string) string {
	if slices.Contains(cwdWords(), cwd) {
		return s.Folders[cwd]
	}
	return cwd
}

// folder returns the folder that the program runs in, as a rule would name it.
func (s *subject) folder() string {
	for _, w := range cwdWords() {
		if s.at(w) {
			return w
		}
	}
	return s.Dir
}

func (r *Rule) settingProblem() *Error {
	for _, p := range r.Env {
		if p == "" || !isPattern(p) || strings.ContainsFunc(p, notInTools) {
			return &Error{selectEnv, "has " + word(p) + "; want names of variables, or patterns of names"}
		}
	}
	switch {
	case r.Env != nil && len(r.Env) == 0:
		return &Error{selectEnv, `is empty; name variables, or write "*" for any`}
	case r.Cwd != "" && r.Cwd != cwdAny && !slices.Contains(cwdWords(), r.Cwd) && !isAbsolute(r.Cwd):
		return &Error{selectCwd, "is " + word(r.Cwd) + `; want workspace, pack_root, project, an absolute folder, or "*" for any`}
	case (r.Env != nil || r.Stdin) && len(r.Kinds) > 0 && !slices.Contains(r.Kinds, kindRun):
		at := selectEnv
		if r.Env == nil {
			at = selectStdin
		}
		return &Error{at, "is about tools that packs declare; a command of the model's own sets no variables and has no input: remove it"}
	}
	return nil
}

// isAbsolute reports whether a path begins at the root of a file system.
func isAbsolute(dir string) bool {
	slashed := strings.ReplaceAll(dir, `\`, "/")
	return strings.HasPrefix(slashed, "/") || len(slashed) > 2 && slashed[1] == ':' && slashed[2] == '/'
}

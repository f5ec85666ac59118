package seatbelt

import (
	"errors"
	"fmt"
	slashpath "path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Rules say what a profile allows. With the zero Rules no program starts, since not even
// the system's own folders are readable.
//
// All paths are absolute and as the kernel itself spells them: Seatbelt compares
// resolved paths, so a rule with a symbolic link in it, or with /tmp instead of
// /private/tmp, has no effect.
type Rules struct {
	System []string // folders and files of the system: read and executed
	Read   []string // folders and files of the run: read and executed
	Names  []string // symbolic links: only the links themselves are read
	Write  []string // folders of the run: read, executed and changed

	// HardLinks allows hard links between files of Write, and clones (copies that share
	// blocks) of readable files. Try first whether the system enforces these bounds.
	HardLinks bool

	Network bool // any Internet address, and host name look-up; otherwise none
}

// A Profile is the input of sandbox-exec: a text without paths, and the paths as
// parameters, so that no file name can be read as a rule.
type Profile struct {
	Text   string // ASCII only
	Params []Param
}

// A Param is a string that the text of a Profile refers to.
type Param struct{ Name, Value string }

// maxPaths bounds the paths of one profile. The compiled form of a profile is
// limited to 64 KiB.
const maxPaths = 250

// Profile returns the profile for r. An error says which path cannot be part
// of one.
func (r Rules) Profile() (Profile, error) {
	w := &writer{names: map[string]string{}}
	own := slices.Concat(r.Read, r.Write)
	for _, path := range slices.Concat(r.System, own, r.Names) {
		if err := checkPath(path); err != nil {
			return Profile{}, err
		}
	}

	w.text.WriteString(base)
	w.rule("allow", "file-read* file-test-existence file-map-executable process-exec*", w.below(r.System))
	w.text.WriteString(afterSystem)
	w.rule("allow", "file-read* file-test-existence file-map-executable process-exec*", w.below(own))
	w.rule("allow", "file-read* file-test-existence", w.exactly(r.Names))
	w.rule("allow", "file-read-metadata file-test-existence", w.exactly(ancestors(slices.Concat(r.System, own, r.Names))))
	w.rule("allow", "file-write*", w.below(r.Write))
	if r.HardLinks {
		w.rule("allow", "file-link", w.below(r.Write))
		w.rule("allow", "file-clone", w.below(slices.Concat(r.System, own)))
		// Cloning a folder copies everything in it without further checks.
		w.text.WriteString("(deny file-clone (vnode-type DIRECTORY))\n")
	}
	if r.Network {
		w.text.WriteString(network)
	}

	// The last matching rule wins, so denials come last. The folders of Write may not be
	// renamed, since the rules would no longer match them.
	w.text.WriteString("(deny file-write-setugid)\n")
	w.rule("deny", "file-write-unlink", w.exactly(slices.Compact(slices.Sorted(slices.Values(r.Write)))))
	w.text.WriteString(programs)
	if len(w.params) > maxPaths {
		return Profile{}, fmt.Errorf("%d paths are more than a profile can have (%d)", len(w.params), maxPaths)
	}
	return Profile{Text: w.text.String(), Params: w.params}, nil
}

// Args returns the arguments of sandbox-exec, the first of which is its own
// name, for starting argv under p.
func (p Profile) Args(sandboxExec string, argv ...string) []string {
	args := []string{sandboxExec, "-p", p.Text}
	for _, d := range p.Params {
		args = append(args, "-D", d.Name+"="+d.Value)
	}
	return append(append(args, "--"), argv...)
}

// checkPath says why path cannot be part of a profile.
func checkPath(path string) error {
	problem := ""
	switch {
	case !slashpath.IsAbs(path) || slashpath.Clean(path) != path:
		problem = "is not absolute and clean"
	case path == "/":
		problem = "would be everything"
	case strings.ContainsRune(path, 0):
		problem = "has a NUL byte"
	case !utf8.ValidString(path):
		problem = "is not UTF-8, which this system's paths are"
	default:
		return nil
	}
	return errors.New("path " + strconv.Quote(path) + " " + problem)
}

// ancestors returns the folders above paths, without "/", each once.
func ancestors(paths []string) []string {
	var all []string
	for _, path := range paths {
		for dir := slashpath.Dir(path); dir != "/"; dir = slashpath.Dir(dir) {
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A writer collects the text and the parameters of a profile.
type writer struct {
	text   strings.Builder
	params []Param
	names  map[string]string // :: path → name of its parameter
}

// rule writes a rule, unless it has no filter: without one, it would match
// everything.
func (w *writer) rule(action, operations string, filters []string) {
	if len(filters) == 0 {
		return
	}
	fmt.Fprintf(&w.text, "(%s %s\n  %s)\n", action, operations, strings.Join(filters, "\n  "))
}

// below returns filters for paths and everything below them.
func (w *writer) below(paths []string) []string {
	var filters []string
	for _, path := range paths {
		name := w.param(path)
		filters = append(filters, `(literal (param "`+name+`"))`, `(subpath (param "`+name+`"))`)
	}
	return filters
}

// exactly returns filters for paths alone.
func (w *writer) exactly(paths []string) []string {
	var filters []string
	for _, path := range paths {
		filters = append(filters, `(literal (param "`+w.param(path)+`"))`)
	}
	return filters
}

func (w *writer) param(path string) string {
	name, ok := w.names[path]
	if !ok {
		name = "P" + strconv.Itoa(len(w.params))
		w.names[path] = name
		w.params = append(w.params, Param{name, path})
	}
	return name
}

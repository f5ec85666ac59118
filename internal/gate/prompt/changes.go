package prompt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
)

// maxChanges is how many changes a question names.
const maxChanges = 12

// Changes returns the differences between what was approved and a new call about the
// same subject, one line each, escaped. What the call may do comes before files, and
// files that changed before those that were added or removed, so that many of these
// hide nothing. The lists of files may be empty: then they are not compared.
func Changes(then, now []call.Fact, filesThen, filesNow []call.File) []string {
	files := fileChanges(filesThen, filesNow)
	var lines []string
	for _, f := range now {
		before := call.FactOf(then, f.Name)
		if slices.Equal(before, f.Values) || f.Name == call.FactPack && len(files) > 0 {
			continue // the lines about its files say more
		}
		lines = append(lines, factChange(f.Name, before, f.Values)...)
	}
	lines = append(lines, files...)
	if extra := len(lines) - maxChanges; extra > 0 {
		lines = append(lines[:maxChanges:maxChanges], fmt.Sprintf("and %d more", extra))
	}
	return lines
}

// fileChanges returns the files that differ. Both lists are empty if there were too
// many files.
func fileChanges(then, now []call.File) []string {
	if len(then) == 0 || len(now) == 0 {
		return nil
	}
	index := func(files []call.File) map[string]string {
		m := make(map[string]string, len(files))
		for _, f := range files {
			m[f.Path] = f.Digest
		}
		return m
	}
	before, after := index(then), index(now)
	var changed, more, gone []string
	for _, f := range now {
		switch old, ok := before[f.Path]; {
		case !ok:
			more = append(more, f.Path)
		case old != f.Digest:
			changed = append(changed, f.Path)
		}
	}
	for _, f := range then {
		if _, ok := after[f.Path]; !ok {
			gone = append(gone, f.Path)
		}
	}
	var lines []string
	for _, group := range []struct {
		paths     []string
		one, many string
	}{{changed, "the file %s changed", "%d more files changed"}, {more, "the file %s is new", "%d more files are new"}, {gone, "the file %s was removed", "%d more files were removed"}} {
		const enough = 4
		slices.Sort(group.paths)
		for _, p := range group.paths[:min(len(group.paths), enough)] {
			lines = append(lines, fmt.Sprintf(group.one, Name(p)))
		}
		if rest := len(group.paths) - enough; rest > 0 {
			lines = append(lines, "and "+fmt.Sprintf(group.many, rest))
		}
	}
	return lines
}

// factChange returns how one fact differs.
func factChange(fact string, then, now []string) []string {
	value := func(values []string) string {
		if len(values) == 0 {
			return "none"
		}
		return orNone(values[0])
	}
	switch fact {
	case call.FactPack:
		switch {
		case value(then) != value(now): // the digest
			return []string{"the pack's files changed"}
		case len(then) != len(now):
			return []string{"packs-mcp was updated: answers now cover more about the pack's files"}
		}
		return []string{"the pack's digest leaves out other files than before"}
	case call.FactDefinition:
		return []string{"the tool's declaration changed"}
	case call.FactProgram:
		return programChange(then, now)
	case call.FactInterpreter:
		return interpreterChange(then, now)
	case "attached":
		return []string{"the pack was detached and attached again"}
	case call.FactNetwork:
		return []string{fmt.Sprintf("network was %s, is now %s", reach(then), reach(now))}
	case "folder":
		if value(then) == value(now) {
			return nil // the rest is a fact of its own, the workspace
		}
		fallthrough
	case "workspace", "sandbox", "project", "home", "trust", "person":
		return []string{fmt.Sprintf("%s was %s, is now %s", fact, value(then), value(now))}
	case call.FactInputs:
		return []string{"a file named in the arguments changed"}
	case call.FactReads:
		return []string{"files that it can read changed"}
	case "limits", "input":
		return []string{"the " + fact + " changed"}
	case "output":
		return []string{"the way its output is assembled changed"}
	case call.FactEnviron:
		then, now = call.EnvNames(differing(then, now)), call.EnvNames(differing(now, then))
		both := slices.Compact(slices.Sorted(slices.Values(slices.Concat(then, now))))
		return []string{"variables changed: " + names(both)}
	}
	more, fewer := differing(now, then), differing(then, now)
	var lines []string
	if len(more) > 0 {
		lines = append(lines, fmt.Sprintf("%s: now also %s", fact, names(more)))
	}
	if len(fewer) > 0 {
		lines = append(lines, fmt.Sprintf("%s: no longer %s", fact, names(fewer)))
	}
	if lines == nil {
		lines = []string{fact + " changed"} // in another order, or another number of times
	}
	return lines
}

// programChange returns how a program differs: its path, where that leads, its bytes,
// the name by which it was called, or the shim that chose it.
func programChange(then, now []string) []string {
	const values = 5 // as in runFacts
	if len(then) != values || len(now) != values {
		return []string{"the program changed"}
	}
	var lines []string
	for i, says := range []string{"the program was %s, is now %s", "the program led to %s, now leads to %s", "", "the program was called as %s, is now called as %s", "the program's shim was %s, is now %s"} {
		switch was, is := then[i], now[i]; {
		case was == is:
		case i > 0 && i <= 2 && then[0] != now[0], i == 2 && then[1] != now[1]: // another program has other bytes
		case i == 2:
			lines = append(lines, "the bytes of the program changed")
		default:
			lines = append(lines, fmt.Sprintf(says, orNone(was), orNone(is)))
		}
	}
	return lines
}

// interpreterChange returns how the programs that run a script differ.
func interpreterChange(then, now []string) []string {
	one := func(values []string, i int) []string {
		return values[i*call.InterpreterValues : (i+1)*call.InterpreterValues]
	}
	n := min(len(then), len(now)) / call.InterpreterValues
	for i := range n {
		was, is := one(then, i), one(now, i)
		switch {
		case slices.Equal(was, is):
			continue
		case was[0] != is[0]:
			return []string{fmt.Sprintf("the interpreter was %s, is now %s", Name(was[0]), Name(is[0]))}
		case was[1] != is[1]:
			return []string{fmt.Sprintf("the interpreter %s led to %s, now leads to %s", Name(is[0]), Name(was[1]), Name(is[1]))}
		case was[2] != is[2]:
			return []string{"the bytes of the interpreter changed"}
		}
		return []string{fmt.Sprintf("the arguments or variables of the interpreter %s changed", Name(is[0]))}
	}
	last := func(values []string) string {
		if len(values) < call.InterpreterValues {
			return "none"
		}
		return Name(one(values, len(values)/call.InterpreterValues-1)[0])
	}
	switch {
	case len(then)%call.InterpreterValues != 0:
		return []string{"packs-mcp was updated: answers now cover more about the interpreter"}
	case last(then) == last(now):
		return []string{"the program that runs the interpreter changed"}
	}
	return []string{fmt.Sprintf("the interpreter was %s, is now %s", last(then), last(now))}
}

// orNone returns a name, or a word for an empty one.
func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return Name(s)
}

// differing returns what a has and b has not.
func differing(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(v string) bool { return slices.Contains(b, v) })
}

// names lists a few values.
func names(values []string) string {
	const enough = 4
	var shown []string
	for _, v := range values[:min(len(values), enough)] {
		shown = append(shown, quoted(v))
	}
	text := strings.Join(shown, ", ")
	if len(values) > enough {
		text += fmt.Sprintf(" and %d more", len(values)-enough)
	}
	return text
}

// reach describes the network that a run had: the hosts, if it had only some.
func reach(values []string) string {
	if len(values) > 1 {
		values = values[1:]
	}
	return line(strings.Join(values, ", "))
}

package winjob

import (
	"slices"
	"strings"
)

// Integrity labels as security descriptors in text (SDDL). NW: a process with a lower
// integrity than the file may not write to it. A file without a label counts as medium.
const (
	LowFolder = "S:(ML;OICI;NW;;;LW)" // and what is created in it
	LowFile   = "S:(ML;;NW;;;LW)"
	Medium    = "S:(ML;;NW;;;ME)"
	Unlabeled = "S:"
)

// Low reports whether a file with the security descriptor sddl has low integrity (or
// less), and whether it inherited that from its folder.
func Low(sddl string) (low, inherited bool) {
	flags, _, level, ok := labelOf(sddl)
	if !ok || hasFlag(flags, "IO") {
		return false, false
	}
	switch level {
	case "LW", "S-1-16-4096", "S-1-16-0":
		return true, hasFlag(flags, "ID")
	}
	return false, false
}

// Shield returns the label of sddl, which may have none, changed so that a process with
// a lower integrity has no execute right either. Ending a process needs that right.
func Shield(sddl string) string {
	_, _, level, ok := labelOf(sddl)
	if !ok {
		level = "ME"
	}
	return "S:(ML;;NWNRNX;;;" + level + ")"
}

// labelOf returns the parts of the mandatory label in sddl:
// "S:AI(ML;flags;rights;;;level)".
func labelOf(sddl string) (flags, rights, level string, ok bool) {
	_, ace, ok := strings.Cut(sddl, "(ML;")
	if !ok {
		return "", "", "", false
	}
	ace, _, ok = strings.Cut(ace, ")")
	fields := strings.Split(ace, ";")
	if !ok || len(fields) != 5 {
		return "", "", "", false
	}
	return fields[0], fields[1], fields[4], true
}

// hasFlag reports whether flags, of two letters each, has flag.
func hasFlag(flags, flag string) bool {
	for i := 0; i+2 <= len(flags); i += 2 {
		if flags[i:i+2] == flag {
			return true
		}
	}
	return false
}

// Fold returns the absolute path as Windows compares it.
func Fold(path string) string {
	return strings.TrimRight(strings.ToLower(strings.ReplaceAll(path, "/", `\`)), `\`)
}

// Extended returns the absolute and clean path in the form that may be longer
// than 260 characters, and in which Windows changes nothing.
func Extended(path string) string {
	switch {
	case strings.HasPrefix(path, `\\?\`), strings.HasPrefix(path, `\\.\`):
		return path
	case strings.HasPrefix(path, `\\`):
		return `\\?\UNC\` + path[2:]
	}
	return `\\?\` + path
}

// Holds counts how many runs need each folder labelled. The zero value is ready. It is
// not safe for concurrent use.
type Holds struct {
	held map[string]int    // :: folded path → how many runs have it
	owed map[string]string // :: folded path → path that no run has, but that is still labelled
}

// Take counts one more run in the folder, and reports whether it is the first one,
// which has to label the folder.
func (h *Holds) Take(folder string) (first bool) {
	if h.held == nil {
		h.held, h.owed = map[string]int{}, map[string]string{}
	}
	key := Fold(folder)
	h.held[key]++
	delete(h.owed, key)
	return h.held[key] == 1
}

// Give undoes one Take. It returns the folders whose labels to remove: those that no
// run has, and that neither contain nor are inside a run's folder.
func (h *Holds) Give(folder string) (free []string) {
	key := Fold(folder)
	if h.held[key]--; h.held[key] > 0 {
		return nil
	}
	delete(h.held, key)
	h.owed[key] = folder
	for key, folder := range h.owed {
		if h.overlaps(key) {
			continue
		}
		delete(h.owed, key)
		free = append(free, folder)
	}
	slices.Sort(free)
	return free
}

func (h *Holds) overlaps(key string) bool {
	for other := range h.held {
		if within(key, other) || within(other, key) {
			return true
		}
	}
	return false
}

// within reports whether folded path is dir or below it.
func within(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '\\')
}

package findings

import (
	"fmt"
	"slices"
	"strings"
)

// A Report is the result of scanning one folder.
type Report struct {
	Path  string   // of the folder, or of the file of a single tool, as it was named
	Packs []string // the names of the packs in it; never empty
	Files int      // how many files were examined
	// Findings are sorted, worst first. The hash of each covers the rule, the path in the
	// folder, and the bytes of the lines, the file or the declaration that it is about. It
	// stays the same until one of these changes, wherever the folder is.
	Findings []Finding
}

// Worst returns the highest severity of a finding that nobody accepted; ok is false if there
// is none.
func (r Report) Worst() (s Severity, ok bool) {
	for _, f := range r.Findings {
		if f.Accepted == "" && (!ok || f.Severity < s) {
			s, ok = f.Severity, true
		}
	}
	return s, ok
}

// Nothing is the summary if there are no findings.
const Nothing = "nothing found"

// Summary counts the findings that nobody accepted, by severity: "1 critical, 2 high". It
// omits infos, which only say what a pack asks for.
func Summary(found []Finding) string {
	counts := make([]int, len(Severities()))
	for _, f := range found {
		if f.Accepted == "" {
			counts[f.Severity]++
		}
	}
	var parts []string
	for i, name := range Severities() {
		if counts[i] > 0 && Severity(i) != Info {
			parts = append(parts, fmt.Sprintf("%d %s", counts[i], name))
		}
	}
	if len(parts) == 0 {
		return Nothing
	}
	return strings.Join(parts, ", ")
}

// Accept marks the findings with some hashes as accepted by a person, and returns their
// hashes, sorted.
func Accept(found []Finding, hashes []string) []string {
	var accepted []string
	for i := range found {
		if slices.Contains(hashes, found[i].Hash) {
			found[i].Accepted = "by hash"
			accepted = append(accepted, found[i].Hash)
		}
	}
	slices.Sort(accepted)
	return slices.Compact(accepted)
}

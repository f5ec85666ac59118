// Package diag is the vocabulary for what is wrong with a pack: a stable code, a
// severity, a place, what is wrong and what to do about it.
//
// It neither prints nor decides anything: the code that finds a problem makes a
// [Diagnostic], and the code that shows it chooses the words around it. Texts may
// quote a pack's own bytes, always with %q, so they need no further escaping.
package diag

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// A Severity says what a diagnostic means for the thing it is about.
type Severity string

const (
	// Error makes the pack, or the part of it that the diagnostic names, unusable.
	Error Severity = "error"
	// Warning is a mistake that was read over, or something that was left out.
	Warning Severity = "warning"
	// Info is worth knowing but not a mistake.
	Info Severity = "info"
)

// A Diagnostic is one finding. Code and Severity are always set; the other fields are
// empty where they do not apply.
type Diagnostic struct {
	Code     string   `json:"code"` // stable kebab-case word, see the Code constants of the package that reports it
	Severity Severity `json:"severity"`
	File     string   `json:"file,omitempty"`    // as the reporter was given it: inside a pack with slashes, otherwise absolute
	Line     int      `json:"line,omitempty"`    // 1-based; 0 when the finding is about the whole file
	Column   int      `json:"column,omitempty"`  // 1-based, in bytes; 0 when unknown
	Pointer  string   `json:"pointer,omitempty"` // JSON pointer (RFC 6901) into File
	Message  string   `json:"message,omitempty"` // what is wrong
	Hint     string   `json:"hint,omitempty"`    // what to do now
}

// String returns "file:line:col: code: message", without the unknown parts.
func (d Diagnostic) String() string {
	var b strings.Builder
	if d.File != "" {
		b.WriteString(d.File)
		b.WriteByte(':')
		if d.Line > 0 {
			b.WriteString(strconv.Itoa(d.Line))
			b.WriteByte(':')
			if d.Column > 0 {
				b.WriteString(strconv.Itoa(d.Column))
				b.WriteByte(':')
			}
		}
		b.WriteByte(' ')
	}
	b.WriteString(d.Code)
	if d.Message != "" {
		b.WriteString(": ")
		b.WriteString(d.Message)
	}
	return b.String()
}

// Error makes a Diagnostic usable as an error; the text is that of String.
func (d Diagnostic) Error() string { return d.String() }

// HasErrors reports whether one of list has severity [Error].
func HasErrors(list []Diagnostic) bool {
	return slices.ContainsFunc(list, func(d Diagnostic) bool { return d.Severity == Error })
}

// Count returns a number with its noun, which must be regular: "1 character",
// "2 characters".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Sort orders list by file, line, column, code and message, so that the same
// findings always read the same.
func Sort(list []Diagnostic) {
	slices.SortStableFunc(list, func(a, b Diagnostic) int {
		return cmp.Or(
			strings.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Code, b.Code),
			strings.Compare(a.Message, b.Message),
		)
	})
}

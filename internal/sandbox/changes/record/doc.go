// Package record defines change sets: the changes, the data to carry out, show and undo
// each, and how a set is encoded on disk.
//
// It does not find changes (see package layer), carry them out (apply) or keep
// them (journal).
package record

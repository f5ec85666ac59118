// Package record defines change sets: the changes, what is needed to carry each out, show
// it and undo it, and how a set is encoded on disk.
//
// It does not find changes (see package layer), carry them out (apply) or keep
// them (journal).
package record

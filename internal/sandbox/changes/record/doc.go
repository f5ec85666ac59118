// Package record says what a change set is: its changes, what each of them needs
// to be carried out, shown and taken back, and the bytes that a set is on disk.
//
// It does not find changes (see package layer), carry them out (apply) or keep
// them (journal).
package record

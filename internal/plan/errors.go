package plan

import "fmt"

// ErrManyInputs says that arguments name more files than an answer can be bound to.
var ErrManyInputs = fmt.Errorf("the arguments name more than %d files, or more than %d bytes in them, which is more than can be approved", maxInputs, maxInputBytes)

// A FolderProblem is why a run may not have a folder.
type FolderProblem int

const (
	FolderOutside      FolderProblem = iota // it is outside all of the call's folders
	FolderHoldsHome                         // it contains the user's whole home
	FolderHoldsPrivate                      // it contains keys or tokens of this program
	FolderUnusable                          // it does not exist, or cannot be read
)

// A FolderError says that a run may not have a folder.
type FolderError struct {
	Folder  string
	Pack    string // the pack to which it belongs; empty: the run works in it
	Problem FolderProblem
}

func (e *FolderError) Error() string {
	switch e.Problem {
	case FolderHoldsHome:
		return fmt.Sprintf("the folder of pack %q holds the user's whole home folder, so no program may read it", e.Pack)
	case FolderHoldsPrivate:
		what := "folder"
		if e.Pack != "" {
			what = "pack's folder"
		}
		return fmt.Sprintf("the %s %q holds keys or tokens of packs-mcp itself, so no program may read it", what, e.Folder)
	case FolderUnusable:
		return fmt.Sprintf("the working folder %q cannot be used", e.Folder)
	}
	return fmt.Sprintf("the working folder %q is outside them", e.Folder)
}

// A ForeignError says that a path leads into another pack than the call's.
type ForeignError struct {
	Path, Own string
	Other     string // the other pack; empty: it must not be named
	Attached  bool   // the other pack can be called
}

func (e *ForeignError) Error() string {
	switch {
	case e.Other == "":
		return fmt.Sprintf("%q belongs to a pack that cannot be used", e.Path)
	case !e.Attached:
		return fmt.Sprintf("%q belongs to pack %q, which is not attached, rather than to pack %q", e.Path, e.Other, e.Own)
	}
	return fmt.Sprintf("%q belongs to pack %q, not to pack %q", e.Path, e.Other, e.Own)
}

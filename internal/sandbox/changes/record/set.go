package record

import (
	"io/fs"
	"time"
)

// A Set has the changes of one run to one folder, or those of a person who applied or
// undid another set.
type Set struct {
	ID     string `json:"id"`
	Run    Run    `json:"run"`
	Folder string `json:"folder"` // absolute
	// From is the set whose held changes a person applied with this set, and Undoes is
	// the set that this set undid. Both are empty for a run's set.
	From   string    `json:"from,omitempty"`
	Undoes string    `json:"undoes,omitempty"`
	Made   time.Time `json:"made"`
	// Expires is when held content and undo data are removed. After that, the set is
	// listed as Expired for as long again.
	Expires time.Time `json:"expires"`
	Expired bool      `json:"expired,omitempty"`
	// Changes are in the order in which they are carried out.
	Changes []Change `json:"changes"`
	// UndoLost says why the set cannot be undone completely; empty: it can, if anything
	// was applied.
	UndoLost string `json:"undo_lost,omitempty"`
	// MadeRoom lists the sets that can no longer be undone because this set needed the
	// space.
	MadeRoom []string `json:"made_room,omitempty"`
	// Bytes is the size of the set in the state folder.
	Bytes int64 `json:"bytes"`
}

// A Run names the run that made changes. Its fields are only stored and shown.
type Run struct {
	ID   string `json:"id"`
	Pack string `json:"pack,omitempty"`
	Tool string `json:"tool,omitempty"`
}

// A Kind says what a change does.
type Kind string

// The kinds of changes. KindGit is a reference that moves, with its new objects and
// index; its path is the reference's file. KindSpecial is a device, FIFO or socket.
const (
	KindCreate  Kind = "create"  // a new regular file
	KindReplace Kind = "replace" // a regular file or link, by a regular file
	KindRemove  Kind = "remove"  // a regular file or link
	KindMkdir   Kind = "mkdir"
	KindRmdir   Kind = "rmdir"
	KindSymlink Kind = "symlink" // new, or in place of a file or link
	KindMeta    Kind = "meta"    // mode, time or attributes alone
	KindGit     Kind = "git"
	KindSpecial Kind = "special"
)

// A State says what happened to a change. The zero value is not a state.
type State string

// The states of a change.
const (
	Applied   State = "applied"
	Held      State = "held"      // waits for a person
	Refused   State = "refused"   // never applied, and its content is not kept
	Discarded State = "discarded" // rejected by a person
	Undone    State = "undone"    // was applied, then undone
)

// A Why is the reason for a state, for programs. Change.Reason says it in words.
type Why string

// Reasons why a change is held or refused. An applied change has none.
const (
	WhyProtected Why = "protected" // its name, or where its link leads
	WhyGit       Why = "git"       // in a git folder, or would make one
	WhyConflict  Why = "conflict"  // the user changed it meanwhile
	WhyKilled    Why = "killed"    // the run did not end by itself
	WhyReview    Why = "review"    // a person wants to see every change
	WhyParent    Why = "parent"    // it needs another change that is not applied
	WhyFailed    Why = "failed"    // a system call failed
	WhySpecial   Why = "special"   // a device, FIFO or socket
	WhySetID     Why = "set-id"
	WhyLinkOut   Why = "link-out" // a link that leads out of the folder
	WhyName      Why = "name"     // control characters, or too deep
	WhyRoom      Why = "room"     // the store has no room for its content, or for the set's undo data
	WhyLayer     Why = "layer"    // the layer has an attribute for it that overlays never set here
)

// Reasons of conflicts that more than one package finds.
const (
	ChangedMeanwhile = "you changed it while the run was going on"
	GoneMeanwhile    = "you removed it while the run was going on"
)

// A Change is one difference between a folder before a run and after.
type Change struct {
	Path string `json:"path"` // below the folder, with slashes, not escaped: escape it to show it
	Kind Kind   `json:"kind"`
	// Size, Mode, New and Link describe what the run left: New is "sha256:" and 64
	// hexadecimal digits for a regular file, Link the target of a symbolic link.
	Size int64       `json:"size,omitempty"`
	Mode fs.FileMode `json:"mode,omitempty"` // permissions only
	New  string      `json:"new,omitempty"`
	Link string      `json:"link,omitempty"`
	// Old is the digest of the regular file that the run found there, or, for
	// KindGit, the object that the reference named; empty: none.
	Old string `json:"old,omitempty"`

	State  State  `json:"state"`
	Why    Why    `json:"why,omitempty"`
	Reason string `json:"reason,omitempty"` // for people: "its name is protected: …"
	// Note is what a person should know about an applied change, such as that a hard
	// link became a file.
	Note string `json:"note,omitempty"`
	// By is the set with which a person applied or undid the change; empty: none.
	By string `json:"by,omitempty"`
}

// Count returns how many changes have a state.
func (s *Set) Count(state State) int {
	n := 0
	for i := range s.Changes {
		if s.Changes[i].State == state {
			n++
		}
	}
	return n
}

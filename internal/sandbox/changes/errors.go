package changes

import "errors"

// Errors of [Store.Apply], [Store.Discard] and [Store.Undo] that callers tell
// apart, beside [ErrNotFound], [ErrExpired] and [*WaitError].
var (
	// ErrNothing is for a set of which nothing is there to decide about.
	ErrNothing = errors.New("nothing of the change set")
	// ErrNotAsShown is for a view that is out of date.
	ErrNotAsShown = errors.New("the folder is not as it was shown any more: look at the changes again")
	// ErrOtherFolder is for a set of a folder that another has the name of now.
	ErrOtherFolder = errors.New("it is not the folder any more that the changes are of")
)

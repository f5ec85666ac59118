package changes

import "errors"

// Errors from [Store.Apply], [Store.Discard] and [Store.Undo] that callers
// distinguish, besides [ErrNotFound], [ErrExpired] and [*WaitError].
var (
	// ErrNothing says that the set has no changes to decide about.
	ErrNothing = errors.New("nothing of the change set")
	// ErrNotAsShown says that the view is out of date.
	ErrNotAsShown = errors.New("the folder is not as it was shown any more: look at the changes again")
	// ErrOtherFolder says that another folder now has the name of the set's folder.
	ErrOtherFolder = errors.New("it is not the folder any more that the changes are of")
)

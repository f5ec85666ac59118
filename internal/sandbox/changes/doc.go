// Package changes applies what a run did to a folder of the user's, after the
// run, and only what may be applied unseen.
//
// A run never writes into a folder of the user's. It writes into a layer: an
// overlay, or a copy. When every process of the run has ended, this package
// reads the layer, compares it with the folder, and makes a [Set] of changes.
// Each change is applied, held for a person, or refused. What is applied goes
// through a journal, so that a crash leaves either the old folder or the new
// one. What is held waits in the user's state folder, where it can be shown,
// applied or discarded. An applied set can be undone. In a conflict the
// user's bytes always win.
//
// The order of calls is
//
//	turn, err := store.Begin(ctx, run, folders...) // waits for other runs in the same folders
//	defer turn.Close()
//	… make the layers, run the program, wait for its last process …
//	sets, err := turn.Finish(ctx, ending, layers...)
//
// and, later, by a person: [Store.List], [Store.Show], [Store.Apply],
// [Store.Discard] and [Store.Undo].
//
// This package has the turns and what a person does. Package layer reads layers
// and decides of changes, journal keeps sets and carries them out with apply,
// turns has the locks, and record says what a set is.
//
// # What it does not do
//
// It does not make overlays, mounts or namespaces, and it starts no program;
// git's files are read by package gitdata. It does not ask anybody and writes
// no audit lines: the caller does, with the [Set]. It does not bound the layer
// while the run goes on. It does not see that a user's program wrote through a
// memory mapping which it had written to before the run. Times of existing
// folders and owners are not restored, and a folder whose parent was moved may
// be taken for one in conflict.
package changes

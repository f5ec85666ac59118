// Package changes applies a run's changes to the user's folders after the run has ended.
// Without asking, it applies only those that are safe to apply unseen.
//
// A run never writes to the user's folders. It writes to a layer: an overlay or a copy. When
// every process of the run has ended, this package reads the layer, compares it with the
// folder, and makes a [Set] of changes. Each change is applied, held for a person, or
// refused. Changes are applied through a journal, so that a crash leaves either the old
// folder or the new one. Held changes wait in the user's state folder, where a person can
// look at them, apply or discard them. An applied set can be undone. In a conflict, the
// user's own files always win.
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
// This package has the turns of runs and a person's operations. Package layer reads
// layers and decides about each change, journal stores sets and carries them out with
// package apply, turns has the locks, and record defines sets.
//
// # What it does not do
//
// It does not make overlays, mounts or namespaces, and starts no program, not even git (see
// package gitdata). It asks nobody and writes no audit lines: the caller does both, with the
// [Set]. It does not bound the layer during the run. It does not notice that a user's
// program writes through a memory mapping to which it had written before the run. It does
// not restore owners, or the times of existing folders. A folder whose parent was moved may
// count as being in conflict.
package changes

//go:build !linux

package tree

// A Clock would watch whether somebody sets the system's clock. Without overlays,
// what a folder had before a run is known of each name, and decides.
type Clock struct{}

// WatchClock returns a Clock that reports nothing.
func WatchClock() *Clock { return &Clock{} }

// WasSet reports false.
func (*Clock) WasSet() bool { return false }

// Close does nothing.
func (*Clock) Close() error { return nil }

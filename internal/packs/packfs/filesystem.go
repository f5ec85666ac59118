package packfs

// Local reports whether dir is on a file system of this machine that is known to
// put down every change: as an event for watchers, and as a stamp that
// differs. On those of a network, or of a program, another machine may change
// what is there, and times may be anything.
func Local(dir string) bool { return isLocal(dir) }

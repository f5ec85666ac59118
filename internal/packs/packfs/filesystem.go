package packfs

// Local reports whether dir is on a local file system that records every change, both as
// an event for watchers and in stamps. On network and user-space file systems, another
// machine may change the contents, and times may be wrong.
func Local(dir string) bool { return isLocal(dir) }

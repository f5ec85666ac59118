package paths

// IsSystem reports whether a path, absolute and without links, is in a folder of
// the system's own, where ordinary users change nothing.
func IsSystem(path string) bool { return Inside(SystemDirs(), path) }

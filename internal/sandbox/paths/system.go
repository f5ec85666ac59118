package paths

// IsSystem reports whether a path, absolute and without links, is in a system folder,
// where ordinary users can change nothing.
func IsSystem(path string) bool { return Inside(SystemDirs(), path) }

package paths

// SystemDirs returns the folders of the system and its packages, which every
// run can read. Some may be links to others.
func SystemDirs() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt",
		"/nix/store", "/gnu/store", "/snap"}
}

//go:build !linux && !darwin && !windows

package paths

// SystemDirs returns the folders of the system and its packages, which every
// run can read. Some may be links to others.
func SystemDirs() []string {
	return existing("/usr", "/bin", "/sbin", "/lib", "/libexec", "/etc", "/opt")
}

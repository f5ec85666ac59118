//go:build !linux && !darwin && !windows

package sandbox

// systemDirs returns the folders of the system and its packages, which every
// run can read. Some may be links to others.
func systemDirs() []string {
	return existing("/usr", "/bin", "/sbin", "/lib", "/libexec", "/etc", "/opt")
}

package paths

// SystemDirs returns the folders of the system and its packages, which every run can
// read. Some may be links to others. Of the folders in /Library and /private, it has
// those that programs are loaded from; the others also hold private data. Homebrew's
// folder is not included: it is found as a program's installation.
func SystemDirs() []string {
	return existing("/usr", "/bin", "/sbin", "/System", "/etc", "/private/etc",
		"/Library/Apple", "/Library/Developer", "/Library/Frameworks", "/Library/Java", "/Library/Perl", "/Library/Ruby",
		"/Applications/Xcode.app", "/private/var/db/timezone", "/private/var/select", "/nix/store")
}

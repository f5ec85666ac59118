package watch

import "os"

// files is the state of the library's files when they were last looked at. Each file
// is always replaced as a whole.
type files map[string]os.FileInfo // :: path → nil if there is no file

// filesOf looks at the files for the first time.
func filesOf(lib Library) files {
	f := make(files)
	for _, path := range lib.Files() {
		f[path] = nil
	}
	f.changed()
	return f
}

// changed looks again, and reports whether a file was replaced.
func (f files) changed() bool {
	differs := false
	for path, was := range f {
		is, err := os.Lstat(path)
		if err != nil {
			is = nil
		}
		same := is == nil && was == nil ||
			is != nil && was != nil && os.SameFile(is, was) && is.Size() == was.Size() && is.ModTime().Equal(was.ModTime())
		if !same {
			f[path], differs = is, true
		}
	}
	return differs
}

package watch

import "os"

// files are how the library's files looked last. Each is put in place whole.
type files map[string]os.FileInfo // :: path → nil for none there

// filesOf looks at them for the first time.
func filesOf(lib Library) files {
	f := make(files)
	for _, path := range lib.Files() {
		f[path] = nil
	}
	f.changed()
	return f
}

// changed looks again, and reports whether one is another than before.
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

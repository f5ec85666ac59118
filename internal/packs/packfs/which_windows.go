package packfs

import "os"

// other is how Windows describes open files.
type other struct{ info os.FileInfo }

func otherOf(info os.FileInfo) other { return other{info} }

func (a other) same(b other) bool {
	return a.info != nil && b.info != nil && os.SameFile(a.info, b.info)
}

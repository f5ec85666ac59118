package paths

const (
	Nonblock = 0
	DirOnly  = 0
)

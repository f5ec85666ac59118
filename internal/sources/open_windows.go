package sources

const (
	openFlags = 0
	linkFlags = 0
)

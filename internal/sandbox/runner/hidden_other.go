//go:build !linux || !(amd64 || arm64)

package runner

// hiddenBelow sees nothing: this system does not tell.
func hiddenBelow(int, bool) int64 { return 0 }

// Package file examines a file that is to be started: whether it can be run, and who
// could change it. It also reads small files.
//
// It does not find programs and decides nothing about them; see package program.
package file

import (
	"errors"
	"io"
	"os"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// Runnable reports whether the file at path can be started.
func Runnable(path string) bool {
	problem, err := Executable(path)
	return problem == "" && err == nil
}

// maxText is the size of the largest file that [Text] reads: far more than a version
// file needs.
const maxText = 256 << 10 // 256 KiB

// Text returns the text of a small regular file.
func Text(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|paths.Nonblock, 0) // opening a FIFO would block
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", errors.New("not a regular file")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxText {
		return "", errors.New("larger than any such file should be")
	}
	return string(text), nil
}

// IsDir reports whether path is a folder, or a link to one.
func IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

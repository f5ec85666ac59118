package server

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// Bounds of what is looked at of the files that a command's arguments name.
const (
	maxInputs     = 64
	maxInputBytes = 64 << 20 // of all of them
)

// inputs finds the regular files that the arguments of a command name, by
// themselves or behind a "=", and digests them. The pack's own files are in its
// digest, and what the system has is nobody's to change, or, in /proc, different
// at each look. A run of python3 with a script of the workspace is about that
// script as it is now; one that cannot be read is about a file that cannot.
func (s *Server) inputs(pack *packs.Pack, c *sandbox.Command) ([]gate.File, error) {
	var files []gate.File
	room := int64(maxInputBytes)
	for _, arg := range c.Args {
		_, value, _ := strings.Cut(arg, "=")
		for _, name := range []string{arg, value} {
			path := name
			if !filepath.IsAbs(path) {
				path = filepath.Join(c.Dir, path)
			}
			resolved, err := filepath.EvalSymlinks(path)
			if name == "" || err != nil || within(resolved, pack.Dir) || sandbox.IsSystem(resolved) || insideAny([]string{"/proc", "/sys", "/dev"}, resolved) {
				continue
			}
			if slices.ContainsFunc(files, func(f gate.File) bool { return f.Path == resolved }) {
				continue
			}
			digest, size, err := digestFile(resolved, room)
			switch {
			case err != nil:
				digest, size = "unreadable", 0
			case digest == "":
				continue // no regular file
			case size > room || len(files) == maxInputs:
				return nil, failf(codeTooLarge, "Name fewer or smaller files.",
					"the arguments name more than %d files, or more than %d bytes in them, which is more than can be approved", maxInputs, maxInputBytes)
			}
			room -= size
			files = append(files, gate.File{Path: resolved, Digest: digest})
		}
	}
	return files, nil
}

// digestFile returns the digest of a regular file, and its size; of one with
// more than max bytes, the size alone counts. No digest: it is another thing.
func digestFile(path string, max int64) (digest string, size int64, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", 0, err // opening a pipe or a device would wait, or do something
	}
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", 0, err
	}
	h := sha256.New()
	size, err = io.Copy(h, io.LimitReader(f, max+1))
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), size, err
}

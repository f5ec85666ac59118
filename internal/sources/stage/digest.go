package stage

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
)

// A Tree has the files and links that came in, sorted by path.
type Tree struct {
	Files []Stored `json:"files"`
	Bytes int64    `json:"bytes"`
}

// Digest returns the digest that package packfs computes for these files on a disk
// that keeps modes: "sha256:" and 64 hexadecimal digits. It is the same on every
// system, since the source, not the disk, says which files are executable.
func (t *Tree) Digest() string {
	lines := make([]string, 0, len(t.Files))
	for _, f := range t.Files {
		switch {
		case f.Digest == "":
			lines = append(lines, f.Path+"\x00link\x00"+f.Target+"\n")
		case f.Exec:
			lines = append(lines, f.Path+"\x001\x00"+f.Digest+"\n")
		default:
			lines = append(lines, f.Path+"\x000\x00"+f.Digest+"\n")
		}
	}
	slices.Sort(lines)
	return sum(lines)
}

// ContentDigest returns the digest that ToolHive's lock file has for a skill: only of
// the files' paths and bytes, without links and modes.
func (t *Tree) ContentDigest() string {
	var lines []string
	for _, f := range t.Files {
		if raw, err := hex.DecodeString(f.Digest); err == nil && f.Digest != "" {
			lines = append(lines, f.Path+"\x00"+string(raw)+"\n")
		}
	}
	return sum(lines)
}

func sum(lines []string) string {
	h := sha256.New()
	for _, l := range lines {
		_, _ = io.WriteString(h, l) // a hash never fails
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Package byname says what a name tells about a file or a folder in a folder of packs:
// whether it is a document, declares tools, belongs to a plugin of another program, or
// is skipped.
//
// It opens nothing. Package packs decides whether a document makes a pack.
package byname

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
)

// IsSkill reports whether a document with this name makes its folder a pack, whatever
// the document says.
func IsSkill(name string) bool { return strings.EqualFold(name, "SKILL.md") }

// IsDocument reports whether a file with this name is a document.
func IsDocument(name string) bool {
	i := strings.LastIndexByte(name, '.')
	return i >= 0 && strings.EqualFold(name[i:], ".md")
}

// IsToolFile reports whether a file with this name declares tools, in any format.
func IsToolFile(name string) bool {
	return formats.Of(name) != ""
}

// IsToolPack reports whether a file with this name declares one tool, and is a pack by
// itself in a folder of tools.
func IsToolPack(name string) bool {
	name, isOne := formats.CutToolPack(name)
	return name != "" && isOne
}

// IsManifest reports whether a file or folder of that name says that it is in a
// plugin of another program, such as .claude-plugin.
func IsManifest(name string) bool {
	return name == "plugin.json" || strings.HasPrefix(name, ".") && strings.HasSuffix(name, "-plugin")
}

// IsOfPlugin reports whether a folder beside the manifest of a plugin holds something
// other than packs. Its documents have frontmatter like those of packs. Letter case does
// not matter, since some file systems ignore it.
func IsOfPlugin(name string) bool {
	switch strings.ToLower(name) {
	case "agents", "commands", "output-styles", "hooks":
		return true
	}
	return false
}

// IsSkipped reports whether scans skip directories of that name.
func IsSkipped(name string) bool { return strings.HasPrefix(name, ".") || name == "node_modules" }

// IsStrange reports whether the rules of packfs refuse every path that contains
// this name.
func IsStrange(name string) bool {
	_, err := packfs.Clean(name)
	return err != nil
}

// Counts reports whether an entry may be part of a pack, or lead to one.
func Counts(name string, mode fs.FileMode) bool {
	if mode.IsDir() || mode&fs.ModeSymlink != 0 {
		return !IsSkipped(name) || IsDocument(name) || IsToolFile(name) || IsManifest(name)
	}
	return IsDocument(name) || IsToolFile(name) || IsManifest(name)
}

// Matters reports whether a file, whose path has slashes, can change what a scan
// finds, unless the configuration names documents. Other files need not exist. inPack
// says that a folder above the file's folder has a SKILL.md.
func Matters(name string, inPack bool) bool {
	dir, base := path.Split(name)
	return IsDocument(base) && (!inPack || IsSkill(base)) || IsToolFile(base) || IsManifest(base) || slices.ContainsFunc(strings.Split(dir, "/"), IsManifest)
}

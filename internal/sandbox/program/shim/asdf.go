package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/file"
)

// An asdfTool is a tool behind a shim of asdf, with its versions that have the program.
type asdfTool struct {
	name     string
	versions []string
}

// asdfTools returns the tools that the comments of an asdf shim name. Both the Bash and
// the Go version of asdf write them.
func asdfTools(text string) []asdfTool {
	var tools []asdfTool
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "# asdf-plugin: ")
		words := strings.Fields(rest)
		if !ok || len(words) < 2 {
			continue
		}
		if i := slices.IndexFunc(tools, func(t asdfTool) bool { return t.name == words[0] }); i >= 0 {
			tools[i].versions = append(tools[i].versions, words[1])
		} else {
			tools = append(tools, asdfTool{words[0], words[1:2]})
		}
	}
	return tools
}

// asdf looks for a version of each tool in ASDF_TOOL_VERSION, the nearest
// .tool-versions that has the tool, and the one of the home. Only a tool's plugin knows
// where its programs are; this looks in the usual places.
func (s *Shim) asdf() (string, error) {
	var wanted []string
	for _, tool := range asdfTools(s.text) {
		if err := checkName("tool", tool.name, "the shim"); err != nil {
			return "", err
		}
		versions, source, err := s.asdfVersions(tool.name)
		if err != nil {
			return "", err
		}
		for _, version := range versions {
			if version == "system" {
				return "", ErrOnPath
			}
			plain := strings.Replace(version, "ref:", "ref-", 1)
			if err := checkName("version", plain, source); err != nil {
				return "", err
			}
			wanted = append(wanted, fmt.Sprintf("%s %s (%s)", tool.name, version, source))
			if !slices.Contains(tool.versions, version) {
				continue
			}
			for _, bin := range []string{"bin", "go/bin", "packages/bin", ".npm/bin", "."} {
				if path := filepath.Join(s.root, "installs", tool.name, plain, bin, s.Name); file.Runnable(path) {
					return path, nil
				}
			}
		}
	}
	if len(wanted) == 0 {
		return "", errors.New("no version of its tool is set")
	}
	return "", fmt.Errorf("%q is in none of the versions that are set: %s", s.Name, strings.Join(wanted, ", "))
}

func (s *Shim) asdfVersions(tool string) (versions []string, source string, err error) {
	variable := "ASDF_" + strings.ToUpper(strings.ReplaceAll(tool, "-", "_")) + "_VERSION"
	if v := strings.Fields(s.o.Environ.Get(variable)); len(v) > 0 {
		return v, variable, nil
	}
	name := ".tool-versions"
	for _, variable := range []string{"ASDF_DEFAULT_TOOL_VERSIONS_FILENAME", "ASDF_TOOL_VERSIONS_FILENAME"} {
		if v := s.o.Environ.Get(variable); v != "" {
			name = v
		}
	}
	if name != filepath.Base(name) {
		return nil, "", errors.New("its files of versions have a name that is a path")
	}
	legacy, err := s.asdfLegacy(tool)
	if err != nil {
		return nil, "", err
	}
	dirs := s.versionDirs()
	if home := s.o.Environ.Home(); home != "" {
		dirs = append(dirs, home)
	}
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		text, err := s.read(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, "", err
		}
		if versions = toolVersions(text)[tool]; len(versions) > 0 {
			return versions, fmt.Sprintf("%q", file), nil
		}
		for _, name := range legacy {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				return nil, "", fmt.Errorf("only a plugin can read %q", filepath.Join(dir, name))
			}
		}
	}
	return nil, "", nil
}

// asdfLegacy returns the names of other tools' version files, which count too if the
// user has set legacy_version_file.
func (s *Shim) asdfLegacy(tool string) ([]string, error) {
	file := s.o.Environ.path("ASDF_CONFIG_FILE")
	if file == "" {
		if file = s.o.Environ.inHome(".asdfrc"); file == "" {
			return nil, nil
		}
	}
	text, err := s.read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, "=")
		if strings.TrimSpace(key) == "legacy_version_file" && strings.TrimSpace(value) == "yes" {
			return map[string][]string{
				"golang": {".go-version"}, "java": {".java-version", ".sdkmanrc"}, "nodejs": {".nvmrc", ".node-version"},
				"python": {".python-version"}, "ruby": {".ruby-version", "Gemfile"}, "terraform": {".terraform-version"},
			}[tool], nil
		}
	}
	return nil, nil
}

// toolVersions parses a .tool-versions file: tool → its versions. The first line for
// a tool counts.
func toolVersions(text string) map[string][]string {
	tools := map[string][]string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 1 && tools[words[0]] == nil {
			tools[words[0]] = words[1:]
		}
	}
	return tools
}

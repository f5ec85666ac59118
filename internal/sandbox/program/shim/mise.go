package shim

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/file"
)

// miseRoot returns mise's folder of data for a shim in dir.
func (e Environ) miseRoot(dir string) string {
	if filepath.Base(dir) == "shims" {
		return filepath.Dir(dir)
	}
	root := e.path("MISE_DATA_DIR")
	if data := e.path("XDG_DATA_HOME"); root == "" && data != "" {
		root = filepath.Join(data, "mise")
	}
	return cmp.Or(root, e.inHome(".local/share/mise"))
}

// A miseTool is what mise's files say about a tool.
type miseTool struct {
	name     string
	versions []string
	simple   bool // the tool has nothing but versions
	source   string
}

// mise looks for the program in the tools named by MISE_TOOL_VERSION, by the files in
// Dir and above, and by the user's own files. In TOML it understands only TOOL =
// "VERSION" and lists of versions. A tool with other settings that may have the
// program is an error. It does not read mise's own settings.
func (s *Shim) mise() (string, error) {
	for _, name := range []string{
		"MISE_ENV", "MISE_PROFILE", "MISE_NO_CONFIG", "MISE_CONFIG_FILE", "MISE_DEFAULT_CONFIG_FILENAME",
		"MISE_DEFAULT_TOOL_VERSIONS_FILENAME", "MISE_OVERRIDE_CONFIG_FILENAMES", "MISE_OVERRIDE_TOOL_VERSIONS_FILENAMES",
	} {
		if s.o.Environ.Get(name) != "" {
			return "", fmt.Errorf("%s is set, which is not understood here", name)
		}
	}
	tools, err := s.miseTools()
	if err != nil {
		return "", err
	}
	installs := cmp.Or(s.o.Environ.path("MISE_INSTALLS_DIR"), filepath.Join(s.root, "installs"))
	var paths, owners []string
	for _, tool := range tools {
		dir := filepath.Join(installs, miseFolder(tool.name))
		path, err := s.miseProgram(dir, tool)
		if err != nil {
			return "", err
		}
		if path != "" {
			paths, owners = append(paths, path), append(owners, tool.name)
		}
	}
	switch len(paths) {
	case 0:
		return "", ErrOnPath
	case 1:
		return paths[0], nil
	}
	return "", fmt.Errorf("more than one of its tools has %q: %q", s.Name, owners)
}

// miseProgram returns the program's path in the tool's folder dir. It returns "" if the
// tool does not have the program, or uses the system's.
func (s *Shim) miseProgram(dir string, tool miseTool) (string, error) {
	mayHave := func() bool {
		entries, _ := os.ReadDir(dir)
		return tool.name == s.Name || slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
			return miseFind(filepath.Join(dir, e.Name()), s.Name) != ""
		})
	}
	if !tool.simple {
		if mayHave() {
			return "", fmt.Errorf("%s says of %q more than a version", tool.source, tool.name)
		}
		return "", nil
	}
	for _, version := range tool.versions {
		if version == "system" {
			return "", nil
		}
		plain := strings.Replace(strings.TrimPrefix(version, "prefix:"), "ref:", "ref-", 1)
		installed, ok := "", false
		err := checkName("version", plain, tool.source)
		if err == nil {
			installed, ok = latest(dir, plain)
		}
		switch {
		case ok:
			if path := miseFind(filepath.Join(dir, installed), s.Name); path != "" {
				return path, nil
			}
		case !mayHave():
		case err != nil:
			return "", err
		default:
			return "", fmt.Errorf("version %q of %q, which %s names, is not installed", version, tool.name, tool.source)
		}
	}
	return "", nil
}

// miseFind returns the path of the program name in a version's folder, or "".
func miseFind(dir, name string) string {
	for _, bin := range []string{"bin", ".mise-bins", "."} {
		if path := filepath.Join(dir, bin, name); file.Runnable(path) {
			return path
		}
	}
	// Archives from elsewhere may have one more folder at the top.
	entries, _ := os.ReadDir(dir)
	for _, e := range entries[:min(len(entries), 64)] {
		for _, bin := range []string{"bin", "."} {
			if path := filepath.Join(dir, e.Name(), bin, name); e.IsDir() && file.Runnable(path) {
				return path
			}
		}
	}
	return ""
}

// miseFolder returns the name of a tool's folder: "npm-scope-tool" for
// "npm:@scope/tool".
func miseFolder(tool string) string {
	words := strings.FieldsFunc(tool, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9')
	})
	return strings.ToLower(strings.Join(words, "-"))
}

// miseTools returns the configured tools, each from the file with the highest
// precedence.
func (s *Shim) miseTools() ([]miseTool, error) {
	var tools []miseTool
	add := func(found []miseTool) {
		for _, t := range found {
			t.name = strings.TrimPrefix(t.name, "core:")
			if alias := map[string]string{"nodejs": "node", "golang": "go"}[t.name]; alias != "" {
				t.name = alias
			}
			if miseFolder(t.name) != "" && !slices.ContainsFunc(tools, func(have miseTool) bool { return have.name == t.name }) {
				tools = append(tools, t)
			}
		}
	}
	for _, kv := range slices.Backward(s.o.Environ) {
		name, value, _ := strings.Cut(kv, "=")
		tool, ok := strings.CutPrefix(name, "MISE_")
		tool, ok2 := strings.CutSuffix(tool, "_VERSION")
		if versions := strings.Fields(value); ok && ok2 && tool != "" && len(versions) > 0 {
			add([]miseTool{{strings.ToLower(strings.ReplaceAll(tool, "_", "-")), versions, true, name}})
		}
	}
	for _, file := range s.miseFiles() {
		text, err := s.read(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		found, err := miseParse(file, text)
		if err != nil {
			return nil, fmt.Errorf("%q cannot be understood: %w", file, err)
		}
		add(found)
	}
	return tools, nil
}

// miseFiles returns the paths of configuration files, highest precedence first.
func (s *Shim) miseFiles() []string {
	fragments := func(dir string) []string {
		files, _ := filepath.Glob(filepath.Join(globEscape(dir), "conf.d", "[^.]*.toml"))
		slices.Sort(files)
		slices.Reverse(files)
		return files
	}
	var files []string
	for _, dir := range s.versionDirs() {
		for _, name := range []string{
			".mise.local.toml", "mise.local.toml", "mise/config.local.toml", ".mise/config.local.toml",
			".config/mise.local.toml", ".config/mise/mise.local.toml", ".config/mise/config.local.toml",
			".mise.toml", "mise.toml", "mise/config.toml", ".mise/config.toml",
		} {
			files = append(files, filepath.Join(dir, name))
		}
		files = append(files, fragments(filepath.Join(dir, ".mise"))...)
		for _, name := range []string{".config/mise.toml", ".config/mise/mise.toml", ".config/mise/config.toml"} {
			files = append(files, filepath.Join(dir, name))
		}
		files = append(files, fragments(filepath.Join(dir, ".config/mise"))...)
		files = append(files, filepath.Join(dir, ".tool-versions"))
	}
	if file := s.o.Environ.path("MISE_GLOBAL_CONFIG_FILE"); file != "" {
		files = append(files, file)
	} else {
		dir := s.o.Environ.path("MISE_CONFIG_DIR")
		if config := s.o.Environ.path("XDG_CONFIG_HOME"); dir == "" && config != "" {
			dir = filepath.Join(config, "mise")
		}
		if dir = cmp.Or(dir, s.o.Environ.inHome(".config/mise")); dir != "" {
			for _, name := range []string{"mise.local.toml", "config.local.toml", "mise.toml", "config.toml"} {
				files = append(files, filepath.Join(dir, name))
			}
			files = append(files, fragments(dir)...)
		}
		if file := s.o.Environ.inHome(".tool-versions"); file != "" {
			files = append(files, file)
		}
	}
	system := cmp.Or(s.o.Environ.path("MISE_SYSTEM_CONFIG_DIR"), "/etc/mise")
	return append(append(files, filepath.Join(system, "mise.toml"), filepath.Join(system, "config.toml")), fragments(system)...)
}

func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// miseParse returns the tools that one file names, in its order.
func miseParse(file, text string) ([]miseTool, error) {
	source := fmt.Sprintf("%q", file)
	var tools []miseTool
	if filepath.Ext(file) != ".toml" {
		versions := toolVersions(text)
		for line := range strings.Lines(text) {
			if words := strings.Fields(line); len(words) > 1 && versions[words[0]] != nil {
				tools = append(tools, miseTool{words[0], versions[words[0]], true, source})
			}
		}
		return tools, nil
	}
	entries, err := parseTOML(text)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.key[0] != "tools" {
			continue
		}
		if len(e.key) == 1 {
			if !e.table {
				return nil, errors.New("its tools are not a table")
			}
			continue
		}
		if i := slices.IndexFunc(tools, func(t miseTool) bool { return t.name == e.key[1] }); i >= 0 {
			tools[i].simple = false
			continue
		}
		tools = append(tools, miseTool{e.key[1], e.values, e.simple && len(e.key) == 2, source})
	}
	return tools, nil
}

package sources

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// marketplaceFile is where a repository lists its plugins for Claude Code.
const marketplaceFile = ".claude-plugin/marketplace.json"

// maxMarketplace is the largest such file that is read, in bytes.
const maxMarketplace = 4 << 20

// marketplace has the parts of that file that are read.
type marketplace struct {
	Metadata struct {
		PluginRoot string `json:"pluginRoot"`
	} `json:"metadata"`
	Plugins []plugin `json:"plugins"`
}

type plugin struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Source      json.RawMessage `json:"source"`
	Skills      json.RawMessage `json:"skills"`
}

// merge adds information from a repository's list of plugins to the packs found in it:
// a pack's plugin, a description if the pack has none, and plugins that are elsewhere.
// The list does not change where packs are.
func merge(files *packfs.Memory, found []Pack) []Pack {
	m, err := readMarketplace(files)
	if errors.Is(err, packfs.ErrNotFound) {
		return found
	}
	if err != nil {
		return append(found, Pack{Name: marketplaceFile, Elsewhere: true, Problems: []string{"the list of plugins cannot be read: " + err.Error()}})
	}
	folders := make([]string, len(found)) // of the plugins that have them
	var others []Pack
	for _, p := range m.Plugins {
		at, err := p.inside(m.Metadata.PluginRoot)
		if err != nil {
			others = append(others, Pack{Name: p.Name, Plugin: p.Name, Description: p.Description, Elsewhere: true, Problems: []string{err.Error()}})
			continue
		}
		if !p.claim(found, folders, at) {
			others = append(others, Pack{Name: p.Name, Plugin: p.Name, Description: p.Description, Elsewhere: true, Problems: []string{"there is no pack in its folder " + at}})
		}
	}
	return append(found, others...)
}

func readMarketplace(files *packfs.Memory) (*marketplace, error) {
	dir, err := files.Open(files.At)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	data, err := dir.ReadAll(marketplaceFile, maxMarketplace)
	if err != nil {
		return nil, err
	}
	m := &marketplace{}
	return m, strictjson.Unmarshal(data, m)
}

// claim records the plugin in its packs: those that it names, or all below its folder
// except those of plugins further down. It reports whether there are any.
func (p *plugin) claim(found []Pack, folders []string, at string) bool {
	named := p.named(at)
	has := false
	for i := range found {
		f := &found[i]
		if _, inside := Below(f.Path, at); !inside && f.Path != at {
			continue
		}
		has = true
		further := f.Plugin != "" && (len(folders[i]) > len(at) || len(folders[i]) == len(at) && named == nil)
		if further || named != nil && !slices.Contains(named, f.Path) {
			continue
		}
		f.Plugin, folders[i] = p.Name, at
		if f.Description == "" {
			f.Description = p.Description
		}
	}
	return has
}

// named returns the folders that a plugin names as its skills; nil: it names none.
func (p *plugin) named(at string) []string {
	var list []string
	if json.Unmarshal(p.Skills, &list) != nil {
		var one string
		if json.Unmarshal(p.Skills, &one) != nil {
			return nil
		}
		list = []string{one}
	}
	for i, s := range list {
		list[i] = strings.TrimPrefix(path.Join("/", at, s), "/")
	}
	return list
}

// inside returns the folder of a plugin in the repository itself. For a plugin
// elsewhere, the error says where.
func (p *plugin) inside(root string) (string, error) {
	var at string
	if json.Unmarshal(p.Source, &at) == nil {
		if !strings.HasPrefix(at, "./") && at != "." && !path.IsAbs(at) {
			at = path.Join(root, at)
		}
		clean := path.Clean(at)
		if at == "" || path.IsAbs(at) || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsAny(at, `\:`) {
			return "", fmt.Errorf("its folder %q is not in the repository", at)
		}
		if clean == "." {
			clean = ""
		}
		return clean, nil
	}
	var far struct {
		Source, Repo, URL, Path, Ref, SHA, Package string
	}
	if err := json.Unmarshal(p.Source, &far); err != nil {
		return "", errors.New("the list does not say where it is")
	}
	ref := far.SHA
	if ref == "" {
		ref = far.Ref
	}
	source := ""
	switch far.Source {
	case "github":
		source = far.Repo + suffix("/", far.Path) + suffix("@", ref)
	case "url", "git-subdir":
		source = far.URL
		if strings.HasPrefix(source, "https://") && !strings.HasSuffix(source, ".git") {
			source += ".git"
		}
		source += suffix("@", ref) + suffix("#", far.Path)
	case "archive":
		source = far.URL
	case "npm":
		return "", fmt.Errorf("it is the npm package %q, which is not supported", far.Package)
	default:
		return "", fmt.Errorf("it comes from a %q, which is not supported", far.Source)
	}
	if _, err := address.Parse(source); err != nil {
		return "", fmt.Errorf("it is elsewhere, and %w", err)
	}
	return "", fmt.Errorf("it is elsewhere, and can be added by itself: %s", source)
}

func suffix(mark, s string) string {
	if s == "" {
		return ""
	}
	return mark + strings.TrimPrefix(s, "./")
}

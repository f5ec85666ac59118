package sources

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// siteMark is a file beside the index that says who wrote the folder, and so that it
// may be replaced.
const siteMark = ".packs-mcp"

// WriteIndex writes a static site for the packs of a source: in out, below
// .well-known/agent-skills, an index of discovery 0.2, and one file for each pack. The
// same packs give the same bytes. It replaces what it wrote before, and returns the
// packs.
func WriteIndex(ctx context.Context, s Snapshot, out string) (_ []Pack, err error) {
	found, err := Survey(ctx, s, "")
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(p Pack) bool { return p.Elsewhere })
	if len(found) == 0 {
		return nil, fmt.Errorf("there is no pack in %s", s.Resolved())
	}
	if p, ok := holds(s, found, out); ok {
		return nil, fmt.Errorf("the site at %q would be inside the pack %q; write it elsewhere", out, p.Name)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(out)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := ours(root); err != nil {
		return nil, err
	}
	next := wellKnown + ".new"
	if err := root.RemoveAll(next); err != nil {
		return nil, err
	}
	if err := root.MkdirAll(next, 0o755); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.RemoveAll(next))
		}
	}()
	if err := writeSite(ctx, s, found, root, next); err != nil {
		return nil, err
	}
	if err := root.RemoveAll(wellKnown); err != nil {
		return nil, err
	}
	return found, root.Rename(next, wellKnown)
}

// holds returns the pack of a folder here that has another folder in it.
func holds(s Snapshot, found []Pack, out string) (Pack, bool) {
	f, ok := s.(*folder)
	if !ok {
		return Pack{}, false
	}
	at, err := filepath.Abs(f.at)
	to, err2 := filepath.Abs(out)
	if err != nil || err2 != nil {
		return Pack{}, false
	}
	for _, p := range found {
		rel, err := filepath.Rel(filepath.Join(at, filepath.FromSlash(p.Path)), to)
		if err == nil && filepath.IsLocal(rel) {
			return p, true
		}
	}
	return Pack{}, false
}

// ours refuses a folder that somebody else wrote.
func ours(root *os.Root) error {
	dir, err := root.Open(wellKnown)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	if len(names) > 0 && !slices.Contains(names, siteMark) {
		return fmt.Errorf("%q has files that packs-mcp did not write; move them away", path.Join(root.Name(), wellKnown))
	}
	return nil
}

func writeSite(ctx context.Context, s Snapshot, found []Pack, root *os.Root, dir string) error {
	type entry struct {
		Name        string `json:"name"`
		Type        string `json:"type"`
		Description string `json:"description"`
		URL         string `json:"url"`
		Digest      string `json:"digest"`
	}
	list := struct {
		Schema string  `json:"$schema"`
		Skills []entry `json:"skills"`
	}{Schema: discoverySchema}
	paths := map[string]string{} // :: name → the path of the pack that has it
	for i := range found {
		b, err := newBundle(ctx, s, found[i].Path)
		if err != nil {
			return err
		}
		p := b.pack // by the name that it says itself, whatever its folder's
		if !isSkillName(p.Name) {
			return fmt.Errorf("the pack at %q has the name %q, and a site's skills have names of lower-case letters, digits and hyphens", p.Path, p.Name)
		}
		if other, ok := paths[p.Name]; ok {
			return fmt.Errorf("the packs at %q and %q have the same name, %q", other, p.Path, p.Name)
		}
		paths[p.Name] = p.Path
		found[i] = p
		e := entry{Name: p.Name, Type: "archive", Description: p.Description, URL: p.Name + ".tar.gz"}
		data := b.tgz
		if b.single != nil {
			e.Type, e.URL, data = "skill-md", p.Name+"/SKILL.md", b.single
			if err := root.Mkdir(path.Join(dir, p.Name), 0o755); err != nil {
				return err
			}
		}
		e.Digest = digestOf(data)
		if err := root.WriteFile(path.Join(dir, e.URL), data, 0o644); err != nil {
			return err
		}
		list.Skills = append(list.Skills, e)
	}
	slices.SortFunc(list.Skills, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	var index bytes.Buffer
	enc := json.NewEncoder(&index)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(list); err != nil {
		return err
	}
	return errors.Join(
		root.WriteFile(path.Join(dir, siteMark), nil, 0o644),
		root.WriteFile(path.Join(dir, indexName), index.Bytes(), 0o644))
}

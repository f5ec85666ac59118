package site

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/archive"
)

// siteMark is a file beside the index that says that this program wrote the folder,
// so that it may be replaced.
const siteMark = ".packs-mcp"

// An Entry is one pack in a static site's index.
type Entry struct {
	Name   string
	Type   string // "archive", or "skill-md" for a single document
	Digest string // of the pack's file on the site
}

// A Signature is a file beside the archive of a pack.
type Signature struct {
	Suffix string // of its name, behind that of the archive
	Data   []byte
}

// Write writes a static site for packs of a source: in out, below
// .well-known/agent-skills, an index of discovery 0.2, and one file for each pack. The
// same packs give the same bytes. It replaces what it wrote before, and returns the
// index. signatures are empty, or one for each pack, of what [archive.Write] makes of
// it; then every pack is an archive, since nothing is beside a document.
func Write(s sources.Snapshot, all []*sources.Bundle, signatures []Signature, out string) (_ []Entry, err error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no pack in %s", s.Resolved())
	}
	var found []sources.Pack
	for _, b := range all {
		found = append(found, b.Pack)
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
	written, err := writeSite(all, signatures, root, next)
	if err != nil {
		return nil, err
	}
	if err := root.RemoveAll(wellKnown); err != nil {
		return nil, err
	}
	return written, root.Rename(next, wellKnown)
}

// holds returns the pack of a local folder that contains the folder out.
func holds(s sources.Snapshot, found []sources.Pack, out string) (sources.Pack, bool) {
	f, ok := s.(*sources.Folder)
	if !ok {
		return sources.Pack{}, false
	}
	at, err := filepath.Abs(f.Resolved())
	to, err2 := filepath.Abs(out)
	if err != nil || err2 != nil {
		return sources.Pack{}, false
	}
	for _, p := range found {
		rel, err := filepath.Rel(filepath.Join(at, filepath.FromSlash(p.Path)), to)
		if err == nil && filepath.IsLocal(rel) {
			return p, true
		}
	}
	return sources.Pack{}, false
}

// ours refuses a folder that this program did not write.
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

func writeSite(all []*sources.Bundle, signatures []Signature, root *os.Root, dir string) ([]Entry, error) {
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
	}{Schema: schema}
	paths := map[string]string{} // :: name → the path of the pack that has it
	var written []Entry
	for i, b := range all {
		p := b.Pack
		if !isSkillName(p.Name) {
			return nil, fmt.Errorf("the pack at %q has the name %q, and a site's skills have names of lower-case letters, digits and hyphens", p.Path, p.Name)
		}
		if other, ok := paths[p.Name]; ok {
			return nil, fmt.Errorf("the packs at %q and %q have the same name, %q", other, p.Path, p.Name)
		}
		paths[p.Name] = p.Path
		e := entry{Name: p.Name, Type: "archive", Description: p.Description, URL: p.Name + ".tar.gz"}
		var data []byte
		var err error
		if len(signatures) == 0 {
			data, err = single(b)
		}
		switch {
		case err != nil:
		case data == nil:
			data, err = archive.Write(b.Dir, b.Tree)
		default:
			e.Type, e.URL = "skill-md", p.Name+"/SKILL.md"
			err = root.Mkdir(path.Join(dir, p.Name), 0o755)
		}
		if err != nil {
			return nil, err
		}
		e.Digest = sources.Digest(data)
		if err := root.WriteFile(path.Join(dir, e.URL), data, 0o644); err != nil {
			return nil, err
		}
		if len(signatures) > 0 {
			if err := root.WriteFile(path.Join(dir, e.URL+signatures[i].Suffix), signatures[i].Data, 0o644); err != nil {
				return nil, err
			}
		}
		list.Skills = append(list.Skills, e)
		written = append(written, Entry{e.Name, e.Type, e.Digest})
	}
	slices.SortFunc(list.Skills, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	var index bytes.Buffer
	enc := json.NewEncoder(&index)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(list); err != nil {
		return nil, err
	}
	return written, errors.Join(
		root.WriteFile(path.Join(dir, siteMark), nil, 0o644),
		root.WriteFile(path.Join(dir, indexName), index.Bytes(), 0o644))
}

// single returns the bytes of SKILL.md, if the pack has no other file.
func single(b *sources.Bundle) ([]byte, error) {
	if len(b.Tree.Files) != 1 || b.Tree.Files[0].Path != "SKILL.md" || b.Tree.Files[0].Target != "" || b.Tree.Files[0].Exec {
		return nil, nil
	}
	return os.ReadFile(filepath.Join(b.Dir, "SKILL.md"))
}

package churn_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// A kind is the way in which a writer changes its packs.
type kind byte

const (
	whole  kind = 'a' // its folder is replaced at once, so that no client sees two generations of one pack
	linked kind = 'l' // a symbolic link that is redirected; its old target is removed file by file
	edited kind = 'e' // file by file, and byte by byte
)

// A pack is changed by one writer. Everything in it names its generation, so that
// mixed generations show.
type pack struct {
	id   string // "w0/a3w0"
	name string
	kind kind
	home string // the folder that its writer owns
	dir  string // its current or last location
	gen  int    // the last generation that was written

	mu      sync.Mutex
	opened  map[string]int    // :: parts of an entry document that may be opened → generation
	told    map[string]int    // :: description → its generation
	data    map[string]bool   // possible contents of data.txt
	outputs map[string]string // :: digest of all files → what the script prints then
}

func newPack(home, name string, k kind) *pack {
	p := &pack{
		id: filepath.Base(home) + "/" + name, name: name, kind: k, home: home, dir: filepath.Join(home, name),
		opened: make(map[string]int), told: make(map[string]int), data: make(map[string]bool), outputs: make(map[string]string),
	}
	if k == edited {
		p.opened[""] = 0 // before its body was written
	}
	return p
}

// lines returns enough lines that half of them make half a file.
func lines(what string, gen int) string {
	return strings.Repeat(what+" of generation "+strconv.Itoa(gen)+"\n", 60)
}

func (p *pack) description(gen int) string {
	return fmt.Sprintf("This is generation %d of %s, to the end.", gen, p.name)
}

func (p *pack) head(gen int) string {
	return fmt.Sprintf("---\nname: %s\ndescription: %s\n---\n", p.name, p.description(gen))
}

// document records what clients may see of a generation from now on.
func (p *pack) document(gen int) string {
	body := lines("The body", gen)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told[p.description(gen)] = gen
	p.opened[body] = gen
	return p.head(gen) + body
}

func (p *pack) content(gen int) string {
	text := lines("The data", gen)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.data[text] = true
	return text
}

// script returns a script that is the same for some generations, so that running a
// different generation than the allowed one shows even if only the data differs.
func script(gen int) string {
	gen -= gen % 8
	return fmt.Sprintf("#!/bin/sh\necho script %d\ncat \"${0%%/*}/data.txt\"\n", gen)
}

// hasTools and hasMore report which tools a generation has.
func hasTools(gen int) bool { return gen%5 != 0 }
func hasMore(gen int) bool  { return hasTools(gen) && gen%2 == 0 }

func says(gen int) string { return fmt.Sprintf("Says generation %d.", gen) }

func toolsJSON(gen int) string {
	return fmt.Sprintf(`{"tools": [{"name": "say", "description": %q, "inputSchema": {"type": "object", "properties": {}}, "command": {"program": "./say.sh"}}]}`, says(gen))
}

func moreTool(gen int) string {
	return fmt.Sprintf(`{"name": "more", "description": %q, "command": {"program": "./say.sh"}}`, says(gen))
}

// everHad reports whether a generation or a later one had tools or, without tools, had none.
// What a client is told about a pack comes from the Catalog, but whether it has tools comes
// from its current files: a folder that was put in its place is noticed, unless the file
// system gave it the same inode.
func (p *pack) everHad(tools bool, gen int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.told {
		if g >= gen && hasTools(g) == tools {
			return true
		}
	}
	return false
}

// build writes a generation into a folder, file by file.
func (p *pack) build(dir string, gen int) error {
	err := os.MkdirAll(dir, 0o755)
	put := func(name, text string, mode os.FileMode) {
		if err == nil {
			err = p.save(dir, name, text, mode)
		}
	}
	put("say.sh", script(gen), 0o755)
	put("data.txt", p.content(gen), 0o644)
	if hasTools(gen) {
		put("tools.json", toolsJSON(gen), 0o644)
	}
	if hasMore(gen) {
		put("more.tool.json", moreTool(gen), 0o644)
	}
	put("SKILL.md", p.document(gen), 0o644)
	return err
}

// note records the output of a run that is allowed in the pack's present state.
func (p *pack) note(dir string) error {
	d, err := packfs.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	tree, err := d.Digest(context.Background(), nil)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "say.sh"))
	data, other := os.ReadFile(filepath.Join(dir, "data.txt"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(other, fs.ErrNotExist) {
		return nil // it does not run
	}
	if err := errors.Join(err, other); err != nil {
		return err
	}
	said, _, _ := strings.Cut(strings.TrimPrefix(string(text), "#!/bin/sh\necho "), "\n")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outputs[tree.Digest] = said + "\n" + string(data)
	return nil
}

// there reports whether the pack still exists at its last place.
func (p *pack) there() bool {
	_, err := os.Lstat(p.dir)
	return err == nil
}

// replace replaces the whole pack with the next generation, atomically if it exists.
func (p *pack) replace(exchange bool) error {
	p.gen++
	if p.kind == linked {
		return p.relink()
	}
	next, old := filepath.Join(p.home, ".next-"+p.name), filepath.Join(p.home, ".old-"+p.name)
	if err := p.build(next, p.gen); err != nil {
		return err
	}
	switch {
	case !p.there():
		return os.Rename(next, p.dir)
	case exchange:
		if err := unix.Renameat2(unix.AT_FDCWD, next, unix.AT_FDCWD, p.dir, unix.RENAME_EXCHANGE); err == nil {
			return os.RemoveAll(next)
		}
		fallthrough // this file system cannot
	default:
		return errors.Join(os.Rename(p.dir, old), os.Rename(next, p.dir), os.RemoveAll(old))
	}
}

// relink redirects the link to a new hidden folder beside it.
func (p *pack) relink() error {
	store := filepath.Join(p.home, ".store")
	to := fmt.Sprintf("%s-%d", p.name, p.gen)
	if err := p.build(filepath.Join(store, to), p.gen); err != nil {
		return err
	}
	next := filepath.Join(p.home, ".next-"+p.name)
	if err := errors.Join(os.Symlink(filepath.Join(".store", to), next), os.Rename(next, p.dir)); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(store, p.name+"-*"))
	for _, dir := range old {
		if filepath.Base(dir) != to {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

// remove removes the pack: one that is replaced whole goes whole.
func (p *pack) remove() error {
	if p.kind == edited || p.kind == linked {
		return os.RemoveAll(p.dir)
	}
	old := filepath.Join(p.home, ".old-"+p.name)
	if err := os.Rename(p.dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(old)
}

// rename gives the folder another name, or its own again. The pack keeps its name,
// which is in the frontmatter.
func (p *pack) rename() error {
	to := filepath.Join(p.home, p.name)
	if p.dir == to {
		to = filepath.Join(p.home, "z-"+p.name)
	}
	if err := os.Rename(p.dir, to); err != nil {
		return err
	}
	p.dir = to
	return nil
}

// writeHalves writes a file as slow programs do: first nothing, then the first
// half, then the rest.
func (p *pack) writeHalves(name, text string, cut int) error {
	f, err := os.Create(filepath.Join(p.dir, name))
	if err != nil {
		return err
	}
	err = p.note(p.dir)
	for _, part := range []string{text[:cut], text[cut:]} {
		if err == nil {
			_, err = f.WriteString(part)
		}
		if err == nil {
			err = p.note(p.dir)
		}
	}
	return errors.Join(err, f.Close())
}

// save replaces a file atomically, as editors do.
func (p *pack) save(dir, name, text string, mode os.FileMode) error {
	next := filepath.Join(dir, "."+name+".swp")
	if err := errors.Join(os.WriteFile(next, []byte(text), mode), p.note(dir)); err != nil {
		return err
	}
	return errors.Join(os.Rename(next, filepath.Join(dir, name)), p.note(dir))
}

// allow records that a part of a document may be opened, too: a document that was
// complete during the scan can be half written when it is opened.
func (p *pack) allow(part string, gen int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened[part], p.opened[strings.TrimPrefix(part, p.head(gen))] = gen, gen
}

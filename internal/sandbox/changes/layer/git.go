package layer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/gitdata"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// sameIndex reports whether an op only refreshes an index.
func (r *reading) sameIndex(o *record.Op) bool {
	now, err := tree.ReadAll(gitdata.MaxIndex, o.Open)
	if err != nil {
		return false
	}
	was, err := tree.ReadAll(gitdata.MaxIndex, func() (*os.File, error) { return r.folder.Dir.ReadAt(o.Path) })
	return err == nil && gitdata.SameIndex(was, now)
}

// A view reads a plain folder.
type view struct{ dir *tree.Dir }

func (v view) Open(at string) (*os.File, error) { return v.dir.ReadAt(at) }

func (v view) Names(at string) ([]gitdata.Entry, error) {
	d, err := v.dir.Walk(at)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Names()
	var entries []gitdata.Entry
	for _, name := range names {
		if m, err := d.Lstat(name); err == nil {
			entries = append(entries, gitdata.Entry{Name: name, Type: m.Type})
		}
	}
	return entries, err
}

// A merged reads an overlay's merged view: the upper folder over the lower one.
type merged struct{ up, low view }

// shows reports whether the lower folder's path is visible, and whether the upper
// folder has the path.
func (m merged) shows(at string) (low, up bool) {
	d, err := m.up.dir.Sub(".")
	if err != nil {
		return false, false
	}
	defer func() { _ = d.Close() }()
	low = true
	parts := strings.Split(at, "/")
	for i, name := range parts {
		meta, err := d.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return low, false
		}
		if err != nil || meta.IsWhiteout() || !meta.IsDir() && i < len(parts)-1 {
			return false, false
		}
		if !meta.IsDir() {
			f, err := d.Read(name)
			if err != nil {
				return false, true
			}
			defer f.Close()
			attrs, err := tree.ReadAttrs(f)
			_, out := attrs.Split()["whiteout"]
			return false, err == nil && !out
		}
		next, err := d.Sub(name)
		if err != nil {
			return false, false
		}
		_ = d.Close()
		d = next
		attrs, err := tree.ReadAttrs(d.File())
		if err != nil || attrs.Split()["opaque"] == "y" {
			low = false
		}
	}
	return low, true
}

func (m merged) Open(at string) (*os.File, error) {
	switch low, up := m.shows(at); {
	case up:
		return m.up.Open(at)
	case low:
		return m.low.Open(at)
	}
	return nil, fs.ErrNotExist
}

func (m merged) Names(at string) ([]gitdata.Entry, error) {
	low, up := m.shows(at)
	var list []gitdata.Entry
	err := error(fs.ErrNotExist)
	if up {
		list, err = m.up.Names(at)
		if err != nil {
			return nil, err
		}
	}
	if low {
		below, lowErr := m.low.Names(at)
		if lowErr != nil && !errors.Is(lowErr, fs.ErrNotExist) {
			return nil, lowErr
		}
		if lowErr == nil {
			err = nil
		}
		for _, e := range below {
			if !slices.ContainsFunc(list, func(o gitdata.Entry) bool { return o.Name == e.Name }) {
				list = append(list, e)
			}
		}
	}
	list = slices.DeleteFunc(list, func(e gitdata.Entry) bool {
		l, u := m.shows(path.Join(at, e.Name))
		return !l && !u
	})
	slices.SortFunc(list, func(a, b gitdata.Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// commits turns the run's commits into ops on git's data, and drops the files that
// these ops account for. Files that it does not understand stay, and are held with
// the reason.
func (r *reading) commits() {
	g := r.folder.Git
	if g == nil {
		m, err := r.folder.Dir.Lstat(".git")
		if err != nil || !m.IsDir() {
			return
		}
		g = &GitFolder{Dir: ".git", Common: ".git"}
	}
	in := func(at string) bool { return g.Common == "." || strings.HasPrefix(at, g.Common+"/") }
	if !r.end.GitWrite || !slices.ContainsFunc(r.ops, func(o record.Op) bool { return in(o.Path) }) {
		return
	}
	user := view{r.folder.Dir}
	s := &gitdata.Source{Base: user, After: view{r.up}, Dir: g.Dir, Common: g.Common, Protected: r.folder.Names.Reason}
	if r.copy == nil {
		s.After = merged{view{r.up}, user}
	}
	c := &classifier{reading: r}
	s.Link = c.committedLink
	if r.folder.Git == nil {
		s.File = user.Open
		c.findAims()
		s.Protected = func(at string) string { return cmp.Or(c.guarded(at), c.aimed(at, false)) }
	}
	imp, err := gitdata.Read(r.ctx, s)
	if err != nil {
		r.gitWhy = "its commits could not be taken over: " + err.Error()
		return
	}
	if imp == nil {
		return
	}
	ops, why := r.gitOps(imp, g)
	r.ops = slices.DeleteFunc(r.ops, func(o record.Op) bool { return o.State != record.Refused && accounted(imp, g, &o) })
	for i := range ops {
		if why != "" {
			ops[i].State, ops[i].Why, ops[i].Reason = record.Held, record.WhyConflict, why
		}
	}
	r.ops = append(r.ops, ops...)
}

// committedLink returns why a commit may not contain a link, which a checkout would
// make, or "".
func (c *classifier) committedLink(at, target string) string {
	o := &record.Op{Change: record.Change{Path: at, Kind: record.KindSymlink, Link: target}}
	if _, why := c.refused(o); why != "" {
		return why
	}
	to, _ := c.leads(o)
	return cmp.Or(c.folder.Names.Above(at), c.folder.Names.Reason(to))
}

// accounted reports whether the import has the op's effect, or git writes the file at
// each commit anyway.
func accounted(imp *gitdata.Import, g *GitFolder, o *record.Op) bool {
	makes := o.Kind == record.KindCreate || o.Kind == record.KindMkdir
	common := func(dir string) bool { return strings.HasPrefix(o.Path, path.Join(g.Common, dir)+"/") }
	log := func(dir string) bool {
		at := path.Join(dir, "logs")
		return o.Path == at || strings.HasPrefix(o.Path, at+"/")
	}
	switch {
	case o.Kind == record.KindMeta, common("objects"), o.Kind == record.KindMkdir && common("refs"):
		return makes
	case slices.ContainsFunc(imp.Refs, func(ref gitdata.Ref) bool { return ref.Path == o.Path }),
		log(g.Dir), log(g.Common),
		o.Path == path.Join(g.Dir, "COMMIT_EDITMSG"), o.Path == path.Join(g.Dir, "ORIG_HEAD"):
		return makes || o.Kind == record.KindReplace
	}
	return o.Path == imp.IndexPath && imp.Index != nil && (makes || o.Kind == record.KindReplace)
}

// gitOps returns the ops of an import: objects, then references, then the index. why
// is not empty if the user moved a reference meanwhile.
func (r *reading) gitOps(imp *gitdata.Import, g *GitFolder) (ops []record.Op, why string) {
	now := time.Now().UnixNano()
	made := map[string]bool{}
	mkdirs := func(at string) {
		var missing []string
		for dir := path.Dir(at); dir != "." && !made[dir]; dir = path.Dir(dir) {
			made[dir] = true
			if d, err := r.folder.Dir.Walk(dir); err == nil {
				_ = d.Close()
				break
			}
			missing = append(missing, dir)
		}
		for _, dir := range slices.Backward(missing) {
			ops = append(ops, record.Op{
				Change: record.Change{Path: dir, Kind: record.KindMkdir}, Git: true, Internal: true,
				Meta: tree.Meta{Type: fs.ModeDir, Perm: 0o755, Mtime: now},
			})
		}
	}
	file := func(at string, kind record.Kind, perm uint32, content []byte, internal bool) *record.Op {
		mkdirs(at)
		o := record.Op{
			Change: record.Change{Path: at, Kind: kind, Size: int64(len(content)), Mode: fs.FileMode(perm), New: digestOf(content)},
			Meta:   tree.Meta{Perm: perm, Size: int64(len(content)), Mtime: now, Blocks: int64(len(content))},
			Git:    true, Internal: internal, Data: content,
		}
		dir, name := tree.Split(at)
		if d, err := r.folder.Dir.Walk(dir); err == nil {
			if m, err := d.Lstat(name); err == nil {
				o.Was, o.Meta.Perm, o.Mode = &m, m.Perm, fs.FileMode(m.Perm&0o777)
				if data, err := tree.ReadAll(gitdata.MaxIndex, func() (*os.File, error) { return d.Read(name) }); err == nil {
					o.Old = digestOf(data)
				}
			}
			_ = d.Close()
		}
		ops = append(ops, o)
		return &ops[len(ops)-1]
	}
	for _, at := range slices.Sorted(maps.Keys(imp.Objects)) {
		file(at, record.KindCreate, 0o444, imp.Objects[at], true)
	}
	for _, ref := range imp.Refs {
		o := file(ref.Path, record.KindGit, 0o644, []byte(ref.New+"\n"), false)
		o.Old, o.Link, o.Size = ref.Old, ref.New, 0
		o.Files, o.MoreFiles = ref.Files, ref.More
		packed, err := r.folder.Dir.Walk(g.Common)
		if err == nil {
			m, err := packed.Lstat("packed-refs")
			if o.Was == nil && err == nil && r.since(&m) {
				why = record.ChangedMeanwhile
			}
			_ = packed.Close()
		}
		if o.Was != nil && r.since(o.Was) {
			why = record.ChangedMeanwhile
		}
		r.locks = append(r.locks, ref.Path+".lock")
	}
	if imp.Index != nil {
		o := file(imp.IndexPath, record.KindReplace, 0o644, imp.Index, true)
		if o.Was == nil {
			o.Kind = record.KindCreate
		}
	}
	r.locks = append(r.locks, imp.IndexPath+".lock")
	return ops, why
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

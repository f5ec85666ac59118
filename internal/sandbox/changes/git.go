package changes

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/gitdata"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/protect"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// maxIndex is the largest index that is compared with another.
const maxIndex = 64 << 20

// sameIndex reports whether an op only refreshes an index.
func (r *reading) sameIndex(o *op) bool {
	now, err := readAll(o.open)
	if err != nil {
		return false
	}
	was, err := readAll(func() (*os.File, error) { return (view{r.folder.dir}).Open(o.Path) })
	return err == nil && gitdata.SameIndex(was, now)
}

func readAll(open func() (*os.File, error)) ([]byte, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxIndex+1))
	if len(data) > maxIndex {
		err = errors.New("it is too large")
	}
	return data, err
}

// A view reads a plain folder.
type view struct{ dir *tree.Dir }

func (v view) Open(at string) (*os.File, error) {
	dir, name := split(at)
	d, err := v.dir.Walk(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Read(name)
}

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

// A merged reads what an overlay shows: the upper folder over the lower one.
type merged struct{ up, low view }

// shows reports whether the lower folder's path shows, and whether the upper
// one has something at the path.
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

// commits turns what the run committed into ops on git's data, and drops the
// files that these ops account for. What it does not understand stays as files,
// which are held with the reason.
func (r *reading) commits() {
	g := r.folder.git
	if g == nil {
		m, err := r.folder.dir.Lstat(".git")
		if err != nil || !m.IsDir() {
			return
		}
		g = &GitFolder{Dir: ".git", Common: ".git"}
	}
	in := func(at string) bool { return g.Common == "." || strings.HasPrefix(at, g.Common+"/") }
	if !r.end.GitWrite || !slices.ContainsFunc(r.ops, func(o op) bool { return in(o.Path) }) {
		return
	}
	user := view{r.folder.dir}
	s := &gitdata.Source{Base: user, After: view{r.up}, Dir: g.Dir, Common: g.Common, Protected: r.names.Reason}
	if r.copy == nil {
		s.After = merged{view{r.up}, user}
	}
	c := &classifier{reading: r}
	s.Link = c.committedLink
	if r.folder.git == nil {
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
	r.ops = slices.DeleteFunc(r.ops, func(o op) bool { return o.State != Refused && accounted(imp, g, &o) })
	for i := range ops {
		if why != "" {
			ops[i].State, ops[i].Why, ops[i].Reason = Held, WhyConflict, why
		}
	}
	r.ops = append(r.ops, ops...)
}

// committedLink returns why a commit may not have a link, which a checkout would
// make, or "".
func (c *classifier) committedLink(at, target string) string {
	o := &op{Change: Change{Path: at, Kind: KindSymlink, Link: target}}
	if _, why := c.refused(o); why != "" {
		return why
	}
	to, _ := c.leads(o)
	return cmp.Or(c.names.Above(at), c.names.Reason(to))
}

// accounted reports whether the import brings what the op would, or git writes
// it by the way at each commit.
func accounted(imp *gitdata.Import, g *GitFolder, o *op) bool {
	makes := o.Kind == KindCreate || o.Kind == KindMkdir
	common := func(dir string) bool { return strings.HasPrefix(o.Path, path.Join(g.Common, dir)+"/") }
	log := func(dir string) bool {
		at := path.Join(dir, "logs")
		return o.Path == at || strings.HasPrefix(o.Path, at+"/")
	}
	switch {
	case o.Kind == KindMeta, common("objects"), o.Kind == KindMkdir && common("refs"):
		return makes
	case slices.ContainsFunc(imp.Refs, func(ref gitdata.Ref) bool { return ref.Path == o.Path }),
		log(g.Dir), log(g.Common),
		o.Path == path.Join(g.Dir, "COMMIT_EDITMSG"), o.Path == path.Join(g.Dir, "ORIG_HEAD"):
		return makes || o.Kind == KindReplace
	}
	return o.Path == imp.IndexPath && imp.Index != nil && (makes || o.Kind == KindReplace)
}

// gitOps returns the ops of an import: objects, then references, then the
// index. why says that the user moved a reference meanwhile.
func (r *reading) gitOps(imp *gitdata.Import, g *GitFolder) (ops []op, why string) {
	now := time.Now().UnixNano()
	made := map[string]bool{}
	mkdirs := func(at string) {
		var missing []string
		for dir := path.Dir(at); dir != "." && !made[dir]; dir = path.Dir(dir) {
			made[dir] = true
			if d, err := r.folder.dir.Walk(dir); err == nil {
				_ = d.Close()
				break
			}
			missing = append(missing, dir)
		}
		for _, dir := range slices.Backward(missing) {
			ops = append(ops, op{
				Change: Change{Path: dir, Kind: KindMkdir}, Git: true, Internal: true,
				Meta: tree.Meta{Type: fs.ModeDir, Perm: 0o755, Mtime: now},
			})
		}
	}
	file := func(at string, kind Kind, perm uint32, content []byte, internal bool) *op {
		mkdirs(at)
		o := op{
			Change: Change{Path: at, Kind: kind, Size: int64(len(content)), Mode: fs.FileMode(perm), New: digestOf(content)},
			Meta:   tree.Meta{Perm: perm, Size: int64(len(content)), Mtime: now, Blocks: int64(len(content))},
			Git:    true, Internal: internal, data: content,
		}
		dir, name := split(at)
		if d, err := r.folder.dir.Walk(dir); err == nil {
			if m, err := d.Lstat(name); err == nil {
				o.Was, o.Meta.Perm, o.Mode = &m, m.Perm, fs.FileMode(m.Perm&0o777)
				if data, err := readAll(func() (*os.File, error) { return d.Read(name) }); err == nil {
					o.Old = digestOf(data)
				}
			}
			_ = d.Close()
		}
		ops = append(ops, o)
		return &ops[len(ops)-1]
	}
	for _, at := range slices.Sorted(maps.Keys(imp.Objects)) {
		file(at, KindCreate, 0o444, imp.Objects[at], true)
	}
	marker := r.folder.marker
	for _, ref := range imp.Refs {
		o := file(ref.Path, KindGit, 0o644, []byte(ref.New+"\n"), false)
		o.Old, o.Link, o.Size = ref.Old, ref.New, 0
		packed, err := r.folder.dir.Walk(g.Common)
		if err == nil {
			m, err := packed.Lstat("packed-refs")
			if o.Was == nil && err == nil && marker != 0 && m.Ctime >= marker {
				why = changedMeanwhile
			}
			_ = packed.Close()
		}
		if o.Was != nil && marker != 0 && o.Was.Ctime >= marker {
			why = changedMeanwhile
		}
		r.locks = append(r.locks, ref.Path+".lock")
	}
	if imp.Index != nil {
		o := file(imp.IndexPath, KindReplace, 0o644, imp.Index, true)
		if o.Was == nil {
			o.Kind = KindCreate
		}
	}
	r.locks = append(r.locks, imp.IndexPath+".lock")
	return ops, why
}

// takeLocks takes git's own locks for the ops on git's data. Where git is at
// work, these ops are held.
func (f *folder) takeLocks(r *record, stage *tree.Dir) error {
	if !slices.ContainsFunc(r.Ops, func(o op) bool { return o.Git && o.State == Applied }) {
		r.Locks = nil
		return nil
	}
	for i, at := range r.Locks {
		err := f.takeLock(at, r.ID, stage, "lock-"+strconv.Itoa(i))
		if errors.Is(err, fs.ErrExist) {
			for _, taken := range r.Locks[:i] {
				if err := f.unlock(taken, r.ID); err != nil {
					return err
				}
			}
			r.Locks = nil
			holdGit(r, WhyConflict, "git is at work in this folder, or left the lock "+at)
			return nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a folder that is only made now has no locks
			return err
		}
	}
	return nil
}

// takeLock makes a lock file that says whose it is from the first moment, so
// that one of a killed program is told from one of git's.
func (f *folder) takeLock(at, id string, stage *tree.Dir, slot string) error {
	dir, name := split(at)
	d, err := f.dir.Walk(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	file, err := stage.Create(slot)
	if err != nil {
		return err
	}
	_, err = file.WriteString(lockText(id))
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return stage.Move(slot, d, name)
}

func holdGit(r *record, why Why, reason string) {
	for i := range r.Ops {
		if o := &r.Ops[i]; o.Git && o.State == Applied {
			o.State, o.Why, o.Reason = Held, why, reason
		}
	}
}

// group carries out the ops on git's data, all or none. Objects that came to
// be stay: nothing names them.
func (x *execution) group() {
	for i := range x.record.Ops {
		o := &x.record.Ops[i]
		if !o.Git || o.State != Applied {
			continue
		}
		err := x.do(o)
		if err == nil {
			x.result(o, nil)
			continue
		}
		for j := range i {
			if p := &x.record.Ops[j]; p.Git && p.State == Applied {
				err = errors.Join(err, x.revert(p))
			}
		}
		x.result(o, err)
		holdGit(x.record, o.Why, o.Reason)
		return
	}
}

// revert takes an op back that was carried out. What is not the set's any more
// stays.
func (x *execution) revert(o *op) error {
	if o.Kind == KindMkdir || o.Internal && o.Kind == KindCreate {
		return nil
	}
	dir, name := split(o.Path)
	d, err := x.folder.dir.Walk(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if o.Kind == KindRemove {
		return x.stage.Move(o.Slot, d, name)
	}
	now, err := d.Lstat(name)
	if err != nil || now.Ino != o.Staged {
		return err
	}
	if o.Was == nil {
		return d.Move(name, x.stage, o.Slot)
	}
	if x.moved(o) {
		if err := d.Move(name, x.stage, o.Slot); err != nil {
			return err
		}
		return x.stage.Move(aside(o), d, name)
	}
	return x.stage.Swap(o.Slot, d, name)
}

// isIndex reports whether the op replaces the index for commits that came back.
func (o *op) isIndex() bool { return o.Git && o.Internal && path.Base(o.Path) == "index" }

// refreshed reports whether the user's index still says what a set made it say:
// git writes it anew whenever it looks at files.
func (s *Store) refreshed(f *folder, from *record, o *op) bool {
	made, err1 := readAll(func() (*os.File, error) { return s.content(from, newName, o) })
	now, err2 := readAll(func() (*os.File, error) { return (view{f.dir}).Open(o.Path) })
	return err1 == nil && err2 == nil && gitdata.SameIndex(made, now)
}

// gitPath reports whether the path names a git folder or something in one.
func gitPath(at string) bool {
	return slices.ContainsFunc(strings.Split(at, "/"), protect.IsDotGit)
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

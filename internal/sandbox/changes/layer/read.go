package layer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// Bounds of one layer. Deeper changes are refused; too many changes are an error.
const (
	maxDepth   = 200
	maxPath    = 4095 // bytes; the system opens no longer paths
	maxChanges = 250_000
	// maxText is how many bytes the paths, links and attributes of all changes may
	// take in the journal: a layer of 100,000 names could hold gigabytes of them.
	maxText = 64 << 20
	// maxHoles bounds the total size of holes in all new files. Holes take no space in a
	// layer, but are read and hashed like data.
	maxHoles = 1 << 30
)

// Reasons for conflicts, besides those of package record.
const (
	madeMeanwhile  = "you made it while the run was going on"
	movedMeanwhile = "the folder it is in was moved while the run was going on"
	clockless      = "the system's clock was set while the run was going on, so nobody can tell whether you changed it meanwhile"
)

// A reading compares a layer with the folder and collects the differences, in
// an order in which they can be carried out.
type reading struct {
	ctx    context.Context // of one call of Finish
	folder *Folder
	up     *tree.Dir
	copy   *Copy // nil: up is an overlay's upper folder
	end    Ending
	ops    []record.Op
	gitWhy string      // why commits were not taken over
	locks  []string    // lock files of git's that the ops need
	dirs   []record.Op // permissions of folders, set after their contents
	text   int64       // see maxText
	holes  int64       // see maxHoles
}

// A place is one folder in the layer, with the folder at the same path in the user's
// folder.
type place struct {
	path  string
	up    *tree.Dir
	low   *tree.Dir // nil: the user has no such folder
	meta  tree.Meta // of low
	alone bool      // up hides low completely
	moved bool      // low is not the folder that the run saw
	depth int
}

func (r *reading) read() error {
	meta, err := r.folder.Dir.Stat()
	if err != nil {
		return err
	}
	if err := r.below(&place{up: r.up, low: r.folder.Dir, meta: meta}); err != nil {
		return err
	}
	r.ops = append(r.ops, r.dirs...)
	for i := range r.ops {
		if o := &r.ops[i]; r.folder.Clockless && o.Why == record.WhyConflict {
			o.Reason = clockless
		}
	}
	return nil
}

// below reads the contents of one folder.
func (r *reading) below(p *place) error {
	names, err := p.up.Names()
	if err != nil {
		return err
	}
	switch {
	case p.low == nil:
	case r.copy != nil:
		names = append(names, r.copy.kids[p.path]...)
	case p.alone:
		low, err := p.low.Names()
		if err != nil {
			return err
		}
		names = append(names, low...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := r.ctx.Err(); err != nil {
			return context.Cause(r.ctx)
		}
		if err := r.name(p, name); err != nil {
			return fmt.Errorf("%q: %w", path.Join(p.path, name), err)
		}
	}
	return nil
}

// A pair is one name in the layer and in the user's folder.
type pair struct {
	*place
	name, at string
	up, low  *tree.Meta // nil: not there
	base     *copied    // the copy's original state; nil: nothing, or no copy
}

func (r *reading) name(p *place, name string) error {
	n := &pair{place: p, name: name, at: path.Join(p.path, name)}
	if m, err := p.up.Lstat(name); err == nil {
		n.up = &m
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if p.low != nil {
		if m, err := p.low.Lstat(name); err == nil {
			n.low = &m
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if r.copy != nil {
		n.base = r.copy.entries[n.at]
		if n.up == nil && n.base == nil {
			return nil // it is new in the user's folder
		}
		if n.up != nil && n.base != nil && !n.up.IsDir() && n.base.copy.Ctime != 0 && n.up.Same(&n.base.copy) {
			return nil
		}
	}
	switch {
	case n.up == nil || r.copy == nil && n.up.IsWhiteout():
		if n.low == nil {
			return nil
		}
		return r.removed(n)
	case n.up.IsDir():
		return r.dir(n)
	case n.up.IsLink():
		return r.link(n)
	case n.up.IsFile():
		return r.file(n)
	}
	return r.add(n, record.Op{Change: record.Change{Kind: record.KindSpecial, State: record.Refused, Why: record.WhySpecial, Reason: "devices, pipes and sockets are never applied"}})
}

// add adds an op for the name. Its State is decided later unless it is Refused.
func (r *reading) add(n *pair, o record.Op) error {
	o.Path, o.Was = n.at, n.low
	switch {
	case o.State != "":
	case len(o.Path) > maxPath:
		o.State, o.Why, o.Reason = record.Refused, record.WhyName, "its path is too long"
	default:
		if why := r.conflict(n); why != "" {
			o.Why, o.Reason = record.WhyConflict, why
		}
	}
	r.ops = append(r.ops, o)
	return r.count(&o)
}

// count returns an error if this change makes the changes too many or too long.
func (r *reading) count(o *record.Op) error {
	r.text += int64(jsonSize(o.Path) + jsonSize(o.Link) + jsonSize(o.WasLink))
	for _, attrs := range []tree.Attrs{o.Attrs, o.WasAttrs} {
		for name, value := range attrs {
			r.text += int64(jsonSize(name) + len(value)*4/3)
		}
	}
	switch {
	case len(r.ops)+len(r.dirs) > maxChanges:
		return fmt.Errorf("more than %d changes", maxChanges)
	case r.text > maxText:
		return fmt.Errorf("the names, links and attributes of its changes take more than %d MiB", maxText>>20)
	}
	return nil
}

// jsonSize returns about how many bytes a string takes in a record.
func jsonSize(s string) int {
	if !utf8.ValidString(s) {
		return 8 * len(s) // escaped, and again in base64
	}
	n := len(s)
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '<' || c == '>' || c == '&' {
			n += len(`\u0000`) - 1
		}
	}
	return n
}

// since reports whether something in the user's folder may have changed since the
// turn began.
func (r *reading) since(m *tree.Meta) bool {
	return r.folder.Marker != 0 && (r.folder.Clockless || m.Ctime >= r.folder.Marker)
}

// conflict says how the user's folder differs at the name from what the run saw, or
// "".
func (r *reading) conflict(n *pair) string {
	switch {
	case n.moved:
		return movedMeanwhile
	case r.copy != nil && n.base == nil && n.low != nil:
		return madeMeanwhile
	case r.copy != nil && n.base != nil && n.low == nil:
		return record.GoneMeanwhile
	case n.low == nil:
		return ""
	case n.low.IsDir():
		if r.copy != nil && (!n.base.user.IsDir() || n.base.user.Ino != n.low.Ino) {
			return record.ChangedMeanwhile
		}
		return ""
	case r.copy != nil && !n.low.Same(&n.base.user), r.since(n.low):
		return record.ChangedMeanwhile
	}
	return ""
}

// dir compares a folder of the layer.
func (r *reading) dir(n *pair) error {
	if len(n.at) > maxPath {
		return r.add(n, record.Op{Change: record.Change{Kind: record.KindMkdir}})
	}
	if n.depth >= maxDepth {
		return r.add(n, record.Op{Change: record.Change{Kind: record.KindMkdir, State: record.Refused, Why: record.WhyName, Reason: fmt.Sprintf("more than %d folders below each other are never applied", maxDepth)}})
	}
	up, err := r.sub(n)
	if err != nil {
		return err
	}
	defer up.Close()
	attrs, overlay, err := r.attrs(up.File())
	if err != nil {
		return err
	}
	if why := r.odd(overlay); why != "" {
		return r.add(n, record.Op{Change: record.Change{Kind: record.KindMkdir, State: record.Refused, Why: record.WhyLayer, Reason: why}})
	}
	o := record.Op{Change: record.Change{Kind: record.KindMkdir}, Meta: *n.up, Attrs: attrs}
	o.Meta.Perm = usable(n)
	o.Mode = fs.FileMode(o.Meta.Perm & 0o777)
	if n.up.Perm&tree.SetUID != 0 {
		o.State, o.Why, o.Reason = record.Refused, record.WhySetID, "set-user-ID and set-group-ID are never applied"
		return r.add(n, o)
	}
	next := &place{path: n.at, up: up, depth: n.depth + 1, alone: n.alone || overlay["opaque"] == "y", moved: n.moved}
	if n.low == nil || !n.low.IsDir() {
		if n.low != nil {
			if err := r.removed(n); err != nil {
				return err
			}
		} else if r.gone(n, overlay) {
			o.Why, o.Reason = record.WhyConflict, record.GoneMeanwhile
		}
		if err := r.add(&pair{place: n.place, name: n.name, at: n.at, base: baseIfGone(n)}, o); err != nil {
			return err
		}
		return r.below(next)
	}
	low, err := enter(n.place.low, n.name)
	if errors.Is(err, fs.ErrPermission) {
		return r.add(n, record.Op{Change: record.Change{Kind: record.KindMeta, State: record.Refused, Why: record.WhyFailed, Reason: closedFolder}})
	}
	if err != nil {
		return err
	}
	defer low.Close()
	next.low, next.meta = low, *n.low
	if r.copy != nil {
		next.moved = next.moved || n.base == nil || n.base.user.Ino != n.low.Ino
	} else if r.since(n.low) && r.since(&n.place.meta) {
		// Both the folder and its parent changed. It may have been moved here, with files
		// that are older than the run.
		next.moved = true
	}
	was, err := tree.ReadAttrs(low.File())
	if err != nil {
		return err
	}
	was.Split()
	const counts, write = 0o1777, 0o200
	if n.low.Perm&counts == o.Meta.Perm&counts && was.Equal(attrs) ||
		n.base != nil && n.base.copy.Perm&counts == n.up.Perm&counts && n.base.copy.Ctime == n.up.Ctime {
		return r.below(next)
	}
	o.Kind, o.Path, o.Was, o.WasAttrs = record.KindMeta, n.at, n.low, was
	if why := r.conflict(n); why != "" {
		o.Why, o.Reason = record.WhyConflict, why
	} else if r.since(n.low) && n.low.Ctime != n.low.Mtime {
		o.Why, o.Reason = record.WhyConflict, record.ChangedMeanwhile
	}
	if n.low.Perm&write == 0 && o.Meta.Perm&write != 0 { // needed to change files in it
		r.ops = append(r.ops, o)
	} else {
		r.dirs = append(r.dirs, o)
	}
	if err := r.count(&o); err != nil {
		return err
	}
	return r.below(next)
}

// usable returns the mode for a folder. A run cannot remove the owner's rights to
// read and enter it: without them nothing can be undone, and no later run could
// change it.
func usable(n *pair) uint32 {
	need := uint32(0o500)
	if n.low != nil && n.low.IsDir() {
		need &= n.low.Perm
	}
	return n.up.Perm | need
}

// closedFolder is the reason why nothing in a folder is changed.
const closedFolder = "you have no right to read or enter this folder"

// enter opens one of the user's folders if its names can be looked up.
func enter(d *tree.Dir, name string) (*tree.Dir, error) {
	sub, err := d.Sub(name)
	if err != nil {
		return nil, err
	}
	if _, err := sub.Lstat("."); err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	return sub, nil
}

// baseIfGone returns the copy's original state if the user no longer has the name.
func baseIfGone(n *pair) *copied {
	if n.low == nil {
		return n.base
	}
	return nil
}

// gone reports whether the user removed a file during the run that the overlay had
// copied up. It cannot recognize a file that the run made again in its place.
func (r *reading) gone(n *pair, overlay map[string]string) bool {
	_, copiedUp := overlay["origin"]
	return r.copy == nil && copiedUp && n.place.low != nil && r.since(&n.place.meta)
}

// sub opens a folder of the layer, which we own, whatever its mode.
func (r *reading) sub(n *pair) (*tree.Dir, error) {
	d, err := n.place.up.Sub(n.name)
	if errors.Is(err, fs.ErrPermission) || err == nil && n.up.Perm&0o700 != 0o700 {
		if d != nil {
			_ = d.Close()
		}
		if err := n.place.up.Chmod(n.name, n.up.Perm|0o700); err != nil {
			return nil, err
		}
		return n.place.up.Sub(n.name)
	}
	return d, err
}

// open opens a file of the layer, whatever its mode.
func (r *reading) open(n *pair) (*os.File, error) {
	f, err := n.place.up.Read(n.name)
	if errors.Is(err, fs.ErrPermission) {
		if err := n.place.up.Chmod(n.name, n.up.Perm|0o400); err != nil {
			return nil, err
		}
		return n.place.up.Read(n.name)
	}
	return f, err
}

func (r *reading) attrs(f *os.File) (attrs tree.Attrs, overlay map[string]string, err error) {
	attrs, err = tree.ReadAttrs(f)
	overlay = attrs.Split() // in a copy, the run set them: they mean nothing and are not applied
	if r.copy != nil {
		overlay = nil
	}
	return attrs, overlay, err
}

// odd returns an attribute that an overlay with our mount options never sets, or "".
func (r *reading) odd(overlay map[string]string) string {
	for _, name := range []string{"redirect", "metacopy"} {
		if _, ok := overlay[name]; ok {
			return fmt.Sprintf("the layer has the attribute %q of it, which it never should", name)
		}
	}
	return ""
}

func (r *reading) file(n *pair) error {
	f, err := r.open(n)
	if err != nil {
		return err
	}
	defer f.Close()
	attrs, overlay, err := r.attrs(f)
	if err != nil {
		return err
	}
	if _, ok := overlay["whiteout"]; ok && n.up.Size == 0 {
		if n.low == nil {
			return nil
		}
		return r.removed(n)
	}
	o := record.Op{
		Change: record.Change{Kind: record.KindCreate, Size: n.up.Size, Mode: fs.FileMode(n.up.Perm & 0o777)},
		Meta:   *n.up, Attrs: attrs, Open: r.opener(n.at),
	}
	holes := max(0, n.up.Size-n.up.Blocks)
	switch {
	case r.odd(overlay) != "":
		o.State, o.Why, o.Reason = record.Refused, record.WhyLayer, r.odd(overlay)
	case r.holes+holes > maxHoles:
		o.State, o.Why, o.Reason = record.Refused, record.WhySpecial, "the files that the run made have too many holes"
	}
	if o.State == record.Refused {
		return r.add(n, o)
	}
	r.holes += holes
	if o.New, err = tree.Digest(f, n.up.Size); err != nil {
		return err
	}
	if n.up.Nlink > 1 {
		o.Note = "it was one of several names of a file, and became a file of its own"
	}
	if err := r.old(n, &o); err != nil {
		return err
	}
	if n.low != nil && n.low.IsFile() && o.Old == o.New && o.Old != "" {
		if n.low.Perm == n.up.Perm && n.low.Mtime == n.up.Mtime && o.WasAttrs.Equal(attrs) {
			return nil
		}
		// If the file has another name, perhaps a protected one, it would change under that
		// name, too. Then it is replaced instead.
		if n.low.Nlink <= 1 {
			o.Kind, o.Note = record.KindMeta, ""
		}
	}
	if n.up.Perm&(tree.SetUID|tree.SetGID) != 0 {
		o.State, o.Why, o.Reason = record.Refused, record.WhySetID, "set-user-ID and set-group-ID are never applied"
		return r.add(n, o)
	}
	switch {
	case n.low == nil:
		if r.gone(n, overlay) {
			o.Why, o.Reason = record.WhyConflict, record.GoneMeanwhile
		}
	case n.low.IsDir():
		if err := r.removed(n); err != nil {
			return err
		}
		n = &pair{place: n.place, name: n.name, at: n.at}
	case o.Kind == record.KindCreate:
		o.Kind = record.KindReplace
	}
	if n.low != nil && n.low.Nlink > 1 && o.Note == "" && o.Kind == record.KindReplace {
		o.Note = "it was one of several names of a file; the others stay as they are"
	}
	return r.add(n, o)
}

// opener returns a function that opens the content at a path of the layer again.
func (r *reading) opener(at string) func() (*os.File, error) {
	return func() (*os.File, error) {
		dir, name := tree.Split(at)
		d, err := r.up.Walk(dir)
		if err != nil {
			return nil, err
		}
		defer d.Close()
		return d.Read(name)
	}
}

// old records the user's file at the name.
func (r *reading) old(n *pair, o *record.Op) error {
	if n.low == nil {
		return nil
	}
	if err := o.Found(n.place.low, n.name, n.low); err != nil {
		return err
	}
	if n.base != nil && n.base.digest != "" && o.Old != n.base.digest {
		o.Why, o.Reason = record.WhyConflict, record.ChangedMeanwhile
	}
	return nil
}

func (r *reading) link(n *pair) error {
	target, err := n.place.up.Readlink(n.name)
	if err != nil {
		return err
	}
	o := record.Op{Change: record.Change{Kind: record.KindSymlink, Link: target, Size: int64(len(target))}, Meta: *n.up}
	if err := r.old(n, &o); err != nil {
		return err
	}
	if n.low != nil && n.low.IsLink() && o.WasLink == target {
		return nil
	}
	if n.low != nil && n.low.IsDir() {
		if err := r.removed(n); err != nil {
			return err
		}
		n = &pair{place: n.place, name: n.name, at: n.at}
	}
	return r.add(n, o)
}

// removed adds the removal of the user's file at the name, and of everything below.
func (r *reading) removed(n *pair) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if !n.low.IsDir() {
		o := record.Op{Change: record.Change{Kind: record.KindRemove}}
		if err := r.old(n, &o); err != nil {
			return err
		}
		if !n.low.IsFile() && !n.low.IsLink() {
			o.State, o.Why, o.Reason = record.Refused, record.WhySpecial, "devices, pipes and sockets are never removed"
		}
		return r.add(n, o)
	}
	low, err := enter(n.place.low, n.name)
	if errors.Is(err, fs.ErrPermission) {
		return r.add(n, record.Op{Change: record.Change{Kind: record.KindRmdir, State: record.Refused, Why: record.WhyFailed, Reason: closedFolder}})
	}
	if err != nil {
		return err
	}
	defer low.Close()
	p := &place{path: n.at, low: low, meta: *n.low, moved: n.moved, depth: n.depth + 1}
	if r.copy == nil && r.since(n.low) && r.since(&n.place.meta) {
		p.moved = true
	}
	var names []string
	if r.copy != nil {
		names = r.copy.kids[n.at]
	} else if names, err = low.Names(); err != nil {
		return err
	}
	for _, name := range names {
		m, err := low.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		below := &pair{place: p, name: name, at: path.Join(n.at, name), low: &m}
		if r.copy != nil {
			below.base = r.copy.entries[below.at]
		}
		if err := r.removed(below); err != nil {
			return err
		}
	}
	attrs, err := tree.ReadAttrs(low.File())
	if err != nil {
		return err
	}
	attrs.Split()
	o := record.Op{Change: record.Change{Kind: record.KindRmdir, Mode: fs.FileMode(n.low.Perm & 0o777)}, WasAttrs: attrs}
	if r.since(n.low) { // its mode, attributes or contents
		o.Why, o.Reason = record.WhyConflict, record.ChangedMeanwhile
	}
	return r.add(n, o)
}

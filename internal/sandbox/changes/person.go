package changes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/gitdata"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/protect"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// Bounds of a view.
const (
	maxShownFile = 256 << 10
	maxShown     = 1 << 20
)

// A View is what a person sees of the held changes of a set.
type View struct {
	Set   *Set
	Parts []Part // in the order of the changes; bounded: Cut says that some are not complete
	Cut   bool
	// Token identifies exactly this view. Apply with it may also replace files that the
	// view showed as changed by the user since the run.
	Token string
}

// Text returns the text of all parts.
func (v *View) Text() string {
	var b strings.Builder
	for _, p := range v.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// A Part is one change as a view shows it.
type Part struct {
	Path string // not escaped: escape it to show it
	// Text describes the change in lines, escaped for terminals. It ends with a unified
	// diff, which begins with "diff ", if both files are small texts, or else with sizes
	// and digests.
	Text string
	Cut  bool // not shown, since the view is too long; shown if asked for alone
}

// Show returns a view of a set's held changes, compared with the folder as it is now.
// With paths, it shows only the changes at and below these.
func (s *Store) Show(ctx context.Context, id string, paths ...string) (*View, error) {
	r, err := s.find(id)
	if err != nil {
		return nil, err
	}
	if r.Expired {
		return nil, ErrExpired
	}
	dir, err := tree.Open(r.Folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	v := &View{Set: r.List()}
	if v.Token, err = s.token(r, dir, paths); err != nil {
		return nil, err
	}
	size := 0
	for _, o := range selected(r, Held, paths) {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		if o.Internal {
			continue
		}
		part := Part{Path: o.Path}
		part.Text, _ = s.text(r, dir, o)
		if size+len(part.Text) > maxShown {
			v.Cut, part.Cut = true, true
			part.Text = fmt.Sprintf("%s %s: not shown, since the diff is too long; name it to see it alone\n", o.Kind, safetext.Quote(o.Path))
			if size > 2*maxShown {
				break
			}
		}
		size += len(part.Text)
		v.Parts = append(v.Parts, part)
	}
	// The token must identify what was read, not a later state.
	if now, err := s.token(r, dir, paths); err != nil {
		return nil, err
	} else if now != v.Token {
		return nil, errors.New("a file changed while the changes were read: look at them again")
	}
	return v, nil
}

// selected returns the ops of a set in a state. With paths, it returns only those at and
// below these.
func selected(r *record.Record, state State, paths []string) []*record.Op {
	var list []*record.Op
	git := len(paths) == 0
	in := func(o *record.Op) bool {
		return len(paths) == 0 || slices.ContainsFunc(paths, func(p string) bool {
			return o.Path == p || strings.HasPrefix(o.Path, strings.TrimSuffix(p, "/")+"/")
		})
	}
	for i := range r.Ops {
		if o := &r.Ops[i]; o.Kind == KindGit && in(o) {
			git = true // git's data is carried out, and so selected, together
		}
	}
	for i := range r.Ops {
		if o := &r.Ops[i]; o.State == state && o.By == "" && (o.Git && git || !o.Git && in(o)) {
			list = append(list, o)
		}
	}
	return list
}

// text describes one op. whole reports whether the description shows everything that the
// op does.
func (s *Store) text(r *record.Record, dir *tree.Dir, o *record.Op) (text string, whole bool) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", o.Kind, safetext.Quote(o.Path))
	if o.Reason != "" {
		fmt.Fprintf(&b, " (%s)", safetext.Line(o.Reason))
	}
	b.WriteString("\n")
	if o.Kind == KindMkdir || o.Kind == KindMeta || o.Regular() && o.Kind != KindGit {
		if o.Was != nil && o.Was.Perm != o.Meta.Perm {
			fmt.Fprintf(&b, "  mode %#o, was %#o\n", o.Meta.Perm, o.Was.Perm)
		} else {
			fmt.Fprintf(&b, "  mode %#o\n", o.Meta.Perm)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Attrs)) {
		if string(o.WasAttrs[name]) != string(o.Attrs[name]) {
			fmt.Fprintf(&b, "  attribute %s\n", safetext.Quote(name))
		}
	}
	switch o.Kind {
	case KindGit:
		fmt.Fprintf(&b, "  from %s to %s\n", cut(o.Old), cut(o.Link))
		for _, file := range o.Files {
			fmt.Fprintf(&b, "    %s %s\n", file[:1], safetext.Quote(file[2:]))
		}
		if o.MoreFiles > 0 {
			fmt.Fprintf(&b, "    and %d more\n", o.MoreFiles)
		}
		return b.String(), true
	case KindSymlink:
		fmt.Fprintf(&b, "  leads to %s\n", safetext.Quote(o.Link))
		return b.String(), true
	case KindMkdir, KindRmdir, KindMeta, KindSpecial:
		return b.String(), true
	}
	old, oldText := s.current(dir, o)
	var now []byte
	nowText := true
	if o.Regular() {
		now, nowText = limited(func() (*os.File, error) { return s.journal.NewContent(r, o) })
	}
	if !oldText || !nowText {
		fmt.Fprintf(&b, "  %d bytes, %s; was %s\n", o.Size, cut(o.New), cut(o.Old))
		return b.String(), false
	}
	name := safetext.Line(o.Path)
	for line := range strings.Lines(string(diff.Diff("a/"+name, old, "b/"+name, now))) {
		b.WriteString(safetext.Text(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String(), true
}

func cut(digest string) string {
	if digest == "" {
		return "none"
	}
	return safetext.Line(digest)
}

// current returns the user's present file at an op's path. text is false if it cannot be
// shown.
func (s *Store) current(dir *tree.Dir, o *record.Op) (data []byte, text bool) {
	data, text = limited(func() (*os.File, error) { return dir.ReadAt(o.Path) })
	return data, text
}

// limited reads a small text. A missing file is an empty one.
func limited(open func() (*os.File, error)) (data []byte, text bool) {
	f, err := open()
	if err != nil {
		return nil, errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, maxShownFile+1))
	return data, err == nil && len(data) <= maxShownFile && utf8.Valid(data) && !bytes.Contains(data, []byte{0})
}

// token returns the digest of the user's files at the paths of the held ops.
func (s *Store) token(r *record.Record, dir *tree.Dir, paths []string) (string, error) {
	h := sha256.New()
	enc := json.NewEncoder(h)
	if err := enc.Encode(r.ID); err != nil {
		return "", err
	}
	for _, o := range selected(r, Held, paths) {
		now, err := lstat(dir, o.Path)
		if err == nil {
			err = enc.Encode([]any{[]byte(o.Path), now})
		}
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// lstat describes the file at a path, or returns nil if there is none.
func lstat(dir *tree.Dir, at string) (*tree.Meta, error) {
	folder, name := tree.Split(at)
	if at == "." {
		folder, name = ".", "."
	}
	d, err := dir.Walk(folder)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) {
		return nil, nil // a file or a link is where the folder would be
	}
	if err != nil {
		return nil, tree.IgnoreMissing(err)
	}
	defer d.Close()
	m, err := d.Lstat(name)
	if err != nil {
		return nil, tree.IgnoreMissing(err)
	}
	return &m, nil
}

// Apply applies the held changes of a set on a person's order; with paths, only those.
// It applies changes of protected names, but never refused changes, and in git folders
// only text that fits a view completely. A change stays held if the user's file differs
// from the one that the run found, or, with the token of a view, from the one that the
// view showed.
//
// It returns the new set, which can be undone. A change that could not be applied stays
// held in the old set, and is refused in the new one, with the reason.
func (s *Store) Apply(ctx context.Context, id, token string, paths ...string) (*Set, error) {
	return s.again(ctx, id, Held, func(f *folder, from, r *record.Record) error {
		if token != "" {
			now, err := s.token(from, f.Dir, paths)
			if err != nil {
				return err
			}
			if now != token {
				return ErrNotAsShown
			}
		}
		r.From = from.ID
		free := map[string]bool{} // :: path → an op before removes what is there
		seen := map[string]bool{} // see RefuseNewGit
		for _, was := range selected(from, Held, paths) {
			o := *was
			seen[o.Path] = was.Why == record.WhyGit
			o.State, o.Why, o.Reason, o.HasNew, o.Staged, o.Now = Applied, "", "", false, 0, nil
			o.Open = func() (*os.File, error) { return s.journal.NewContent(from, was) }
			if err := s.expect(f, from, was, &o, token != "", free[o.Path]); err != nil {
				o.State, o.Why, o.Reason = Refused, was.Why, err.Error()
			} else if o.Kind == KindRemove || o.Kind == KindRmdir {
				free[o.Path] = true
			}
			r.Ops = append(r.Ops, o)
			if o.Git {
				r.Locks = from.Locks
			}
		}
		f.RefuseNewGit(r.Ops, seen)
		return nil
	})
}

// expect decides what file an op that a person applies may find. free reports whether
// the file at its path has to be removed first.
func (s *Store) expect(f *folder, from *record.Record, was, o *record.Op, seen, free bool) error {
	if o.Regular() && !was.HasNew {
		return errors.New("its content is gone")
	}
	if was.Why == record.WhyGit || gitPath(o.Path) && !o.Git {
		if _, whole := s.text(from, f.Dir, was); !whole || o.Kind == KindMkdir || o.Kind == KindSymlink {
			return errors.New("it is in a git folder, where only text that can be shown whole is applied")
		}
	}
	now, err := lstat(f.Dir, o.Path)
	if err != nil {
		return err
	}
	if free {
		now = nil
	}
	if !seen {
		switch {
		case was.Why == record.WhyConflict:
			return errors.New(was.Reason)
		case was.Was == nil && now == nil:
		case was.Was == nil || now == nil || now.Type != was.Was.Type || !s.unchanged(f, now, was.Was, was.Old, was.WasLink, o.Path):
			return errors.New("it is not what the run found any more: look at the change, and apply it as shown")
		}
	}
	if o.Was = now; now != nil && !o.Git {
		dir, name := tree.Split(o.Path)
		d, err := f.Dir.Walk(dir)
		if err != nil {
			return err
		}
		defer d.Close()
		if err := o.Found(d, name, now); err != nil {
			return err
		}
	}
	return expecting(o, now)
}

// expecting makes the op expect the file that is there now.
func expecting(o *record.Op, now *tree.Meta) error {
	switch {
	case now == nil && (o.Kind == KindRemove || o.Kind == KindRmdir):
	case now == nil && o.Kind == KindReplace:
		o.Kind = KindCreate
	case now == nil && o.Kind == KindMeta, now != nil && now.IsDir() && (o.Regular() || o.Kind == KindSymlink || o.Kind == KindRemove):
		return errors.New("something else is there now")
	case now != nil && o.Kind == KindCreate && !o.Git:
		o.Kind = KindReplace
	case now != nil && o.Kind == KindMkdir && !now.IsDir():
		return errors.New("something else is there now")
	}
	return nil
}

// unchanged reports whether the file at a path is the same as before, by its times or
// else by its content.
func (s *Store) unchanged(f *folder, now, was *tree.Meta, digest, link, at string) bool {
	if now.Type != was.Type || now.Perm != was.Perm {
		return false
	}
	switch {
	case now.Same(was) && now.Ctime != 0, now.IsDir():
		return true
	case now.IsLink():
		dir, name := tree.Split(at)
		d, err := f.Dir.Walk(dir)
		if err != nil {
			return false
		}
		defer d.Close()
		target, err := d.Readlink(name)
		return err == nil && target == link
	}
	file, err := f.Dir.ReadAt(at)
	if err != nil || digest == "" || now.Size != was.Size {
		return false
	}
	defer file.Close()
	got, err := tree.Digest(file, now.Size)
	return err == nil && got == digest
}

// again makes a new set from an old one, under the turn of its folder.
func (s *Store) again(ctx context.Context, id string, state State, fill func(f *folder, from, r *record.Record) error) (*Set, error) {
	from, err := s.find(id)
	if err != nil {
		return nil, err
	}
	t, err := s.Begin(ctx, from.Run, s.waiting, Folder{Path: from.Folder})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if from, err = s.find(from.ID); err != nil { // another process may have changed it
		return nil, err
	}
	f := t.folders[0]
	if f.meta.Dev != from.Dev || f.meta.Ino != from.Ino {
		return nil, fmt.Errorf("%q: %w", from.Folder, ErrOtherFolder)
	}
	if from.Expired {
		return nil, ErrExpired
	}
	r := s.journal.New(from.Run, f.Path, f.meta)
	if err := fill(f, from, r); err != nil {
		return nil, err
	}
	if len(r.Ops) == 0 {
		return nil, fmt.Errorf("%w %s is %s", ErrNothing, from.ID, state)
	}
	for i := range r.Ops {
		r.Ops[i].Slot = strconv.Itoa(i)
	}
	return s.carryOut(ctx, f.Dir, r)
}

// Discard drops the held changes of a set; with paths, only those.
func (s *Store) Discard(ctx context.Context, id string, paths ...string) (*Set, error) {
	from, err := s.find(id)
	if err != nil {
		return nil, err
	}
	// The turn keeps them from being applied at the same time. A folder that no longer
	// exists has no turn.
	if t, err := s.Begin(ctx, from.Run, s.waiting, Folder{Path: from.Folder}); err == nil {
		defer t.Close()
	} else if ctx.Err() != nil {
		return nil, err
	}
	r, err := s.journal.Discard(ctx, from.ID, func(r *record.Record) ([]*record.Op, error) {
		list := selected(r, Held, paths)
		if len(list) == 0 {
			return nil, fmt.Errorf("%w %s is held", ErrNothing, from.ID)
		}
		return list, nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, from.ID)
	}
	if err != nil {
		return nil, err
	}
	return r.List(), nil
}

// Undo reverts the applied changes of a set where nothing changed since. It returns a new
// set, in which the other changes are held, with the reason.
func (s *Store) Undo(ctx context.Context, id string) (*Set, error) {
	return s.again(ctx, id, Applied, func(f *folder, from, r *record.Record) error {
		r.Undoes = from.ID
		list := selected(from, Applied, nil)
		free := map[string]bool{} // :: path → an op before removes what is there
		for _, was := range list {
			o, err := opened(f, was)
			if err != nil {
				return err
			}
			if o != nil {
				r.Ops = append(r.Ops, *o)
			}
		}
		for _, was := range slices.Backward(list) {
			if was.Git && was.Internal && !was.IsIndex() {
				continue // objects stay: nothing refers to them
			}
			o, err := s.inverse(f, from, was, free[was.Path])
			if err != nil {
				o.State, o.Why, o.Reason = Held, record.WhyConflict, err.Error()
				if !o.Makes() || o.Regular() && !was.HasOld {
					o.State = Refused
				}
			} else if o.Kind == KindRemove || o.Kind == KindRmdir {
				free[o.Path] = true
			}
			r.Ops = append(r.Ops, *o)
			if o.Git {
				r.Locks = from.Locks
			}
		}
		if i := slices.IndexFunc(r.Ops, func(o record.Op) bool { return o.Git && o.State != Applied }); i >= 0 {
			r.HoldGit(r.Ops[i].Why, r.Ops[i].Reason)
		}
		f.RefuseNewGit(r.Ops, nil)
		return nil
	})
}

// opened returns the op that makes a folder writable, so that the files in it can be
// removed before the folder. It returns nil if the folder is writable, or is not the
// set's.
func opened(f *folder, was *record.Op) (*record.Op, error) {
	if was.Kind != KindMkdir || was.Now == nil || was.Now.Perm&0o700 == 0o700 {
		return nil, nil
	}
	now, err := lstat(f.Dir, was.Path)
	if err != nil || now == nil || !now.Moved(was.Now) {
		return nil, err
	}
	meta := *now
	meta.Perm |= 0o700
	return &record.Op{
		Change: record.Change{Path: was.Path, Kind: KindMeta, State: Applied}, Internal: true,
		Was: now, WasAttrs: was.Attrs, Meta: meta, Attrs: was.Attrs,
	}, nil
}

// inverse returns the op that reverts another, or why that is impossible. free reports
// whether the file at its path has to be removed first.
func (s *Store) inverse(f *folder, from *record.Record, was *record.Op, free bool) (*record.Op, error) {
	o := &record.Op{
		Change: record.Change{Path: was.Path, State: Applied, Old: was.New}, Git: was.Git, Internal: was.Internal,
		Attrs: was.WasAttrs, WasAttrs: was.Attrs, WasLink: was.Link,
		Open: func() (*os.File, error) { return s.journal.OldContent(from, was) },
	}
	if was.Was != nil {
		o.Meta, o.Mode, o.Size = *was.Was, fs.FileMode(was.Was.Perm&0o777), was.Was.Size
	}
	if was.Was != nil && was.Was.IsFile() && was.Was.Perm&(tree.SetUID|tree.SetGID) != 0 {
		o.Note = "its set-ID bits are not given back"
	}
	switch {
	case was.Kind == KindMeta:
		o.Kind, o.Attrs = KindMeta, was.WasAttrs
	case was.Kind == KindRmdir:
		o.Kind = KindMkdir
	case was.Kind == KindMkdir:
		o.Kind = KindRmdir
	case was.Was == nil:
		o.Kind = KindRemove
	case was.Was.IsLink():
		o.Kind, o.Link = KindSymlink, was.WasLink
	default:
		if o.Kind, o.New = KindReplace, was.Old; was.Kind == KindRemove {
			o.Kind = KindCreate
		}
		if was.Kind == KindGit {
			o.Kind, o.New = KindGit, ""
			o.Link, o.Old = was.Old, was.Link
		}
		if !was.HasOld {
			return o, errors.New("what was there before was not kept")
		}
	}
	now, err := lstat(f.Dir, o.Path)
	if err != nil {
		return o, err
	}
	gone := was.Kind == KindRemove || was.Kind == KindRmdir
	switch {
	case gone && (now == nil || free):
		o.Was = nil
		return o, nil
	case gone:
		return o, errors.New("something has its name since")
	case now == nil:
		return o, errors.New("it was removed since")
	case was.IsIndex() && s.refreshed(f, from, was):
	case was.Now == nil || !s.unchanged(f, now, was.Now, was.New, was.Link, o.Path):
		return o, errors.New("it was changed since")
	}
	o.Was = now
	return o, nil
}

// refreshed reports whether the user's git index still has the content that a set gave
// it: git rewrites the file whenever it looks at the working tree.
func (s *Store) refreshed(f *folder, from *record.Record, o *record.Op) bool {
	made, err1 := tree.ReadAll(gitdata.MaxIndex, func() (*os.File, error) { return s.journal.NewContent(from, o) })
	now, err2 := tree.ReadAll(gitdata.MaxIndex, func() (*os.File, error) { return f.Dir.ReadAt(o.Path) })
	return err1 == nil && err2 == nil && gitdata.SameIndex(made, now)
}

// gitPath reports whether the path names a git folder or something in one.
func gitPath(at string) bool {
	return slices.ContainsFunc(strings.Split(at, "/"), protect.IsDotGit)
}

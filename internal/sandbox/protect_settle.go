package sandbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxNewNames = 256 // in one protected folder that are taken away one by one
	maxReported = 100 // changes of one run
)

// settle makes what is protected as it was, and returns what it did. What was
// in the way is moved into workspace, as far as there is one and a runID to
// name it by, since somebody else than the program may have put it there. It
// is called once, when nothing of the run is left.
func (g *guarded) settle(ws *workspace, runID string) []ProtectedChange {
	if g == nil {
		return nil
	}
	g.guards.mu.Lock()
	defer g.guards.mu.Unlock()
	defer g.releaseLocked()
	k := newKeeper(ws, runID)
	var changes []ProtectedChange
	for _, f := range g.folders {
		s := &sweep{root: f.root, abs: f.abs, keeper: k, name: cmp.Or(runID, "run")}
		slices.SortFunc(f.below, func(a, b *baseline) int { return strings.Compare(a.path, b.path) })
		for _, b := range f.below {
			s.settle(b)
		}
		s.close()
		changes = append(changes, s.changes...)
	}
	if more := len(changes) - maxReported; more > 0 {
		changes[maxReported-1].Done += fmt.Sprintf("; and %d more changes like these", more)
		changes = changes[:maxReported]
	}
	return changes
}

// A sweep makes one writable folder as it was. Whatever it finds there may be
// the program's making: it follows no link, opens regular files and folders
// only, and moves away what it cannot judge.
type sweep struct {
	root   *os.Root
	abs    string
	name   string // of the run
	keeper *keeper
	taken  time.Time // when the current baseline was taken

	aside    string // slash path of our own folder for what is moved; empty: not made yet
	madeKept bool   // and we made the folder that it is in
	moved    int

	changes []ProtectedChange
}

func (s *sweep) report(name, format string, args ...any) {
	s.changes = append(s.changes, ProtectedChange{
		Path: filepath.Join(s.abs, filepath.FromSlash(name)), Done: fmt.Sprintf(format, args...),
	})
}

// settle makes one protected path as it was.
func (s *sweep) settle(b *baseline) {
	s.taken = b.taken
	for _, w := range b.way {
		if !s.clear(w, b.was != nil) {
			return
		}
	}
	if b.was != nil {
		s.item(b.at, b.was)
		return
	}
	// Nothing was there. The way is looked at one folder at a time, so that no
	// link is followed.
	parts := strings.Split(b.path, "/")
	for i := len(b.way) - 1; i < len(parts); i++ {
		at := path.Join(parts[:i+1]...)
		info, err := s.root.Lstat(at)
		switch {
		case err != nil:
			return
		case i == len(parts)-1 || info.Mode()&fs.ModeSymlink != 0:
			s.takeAway(at)
			return
		case !info.IsDir():
			return
		case info.Mode()&0o700 != 0o700:
			_ = s.root.Chmod(at, info.Mode()|0o700) // to see what is below
		}
	}
}

// clear sees to it that a folder on the way to a protected path is one, and
// reports whether there is anything left to do behind it. With needed, the
// folder is made when it is gone.
func (s *sweep) clear(w wayFolder, needed bool) bool {
	info, err := s.root.Lstat(w.path)
	switch {
	case err == nil && info.IsDir():
		if w.mode&^info.Mode()&0o700 != 0 {
			_ = s.root.Chmod(w.path, w.mode) // what fails because of it says so
		}
		return true
	case err == nil && !needed && info.Mode()&fs.ModeSymlink == 0:
		return false // nothing can be below it
	case err == nil && !s.takeAway(w.path):
		return false
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		s.report(w.path, "not looked at: %s", reason(err))
		return false
	}
	if !needed {
		return false
	}
	if err := s.inFolder(w.path, func() error { return s.root.Mkdir(w.path, 0o700) }); err != nil {
		s.report(w.path, "gone, and not put back: %s", reason(err))
		return false
	}
	_ = s.root.Chmod(w.path, w.mode)
	return true
}

// item makes what is at name what it was.
func (s *sweep) item(name string, it *item) {
	info, err := s.root.Lstat(name)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.report(name, "not looked at: %s", reason(err))
			return
		}
		s.putBack(name, it, "it was gone")
		return
	}
	now := stampOf(info)
	switch {
	case now.mode.Type() != it.stamp.mode.Type():
		s.replace(name, it)
	case now.mode.IsDir():
		s.folder(name, it, now)
	case now.mode.IsRegular():
		s.file(name, it, now)
	case now.mode&fs.ModeSymlink != 0:
		if to, err := s.root.Readlink(name); err != nil || to != it.link {
			s.replace(name, it)
		}
	case now != it.stamp:
		s.report(name, "changed, and not put back: it is not a regular file")
	}
}

// file makes a regular file what it was.
func (s *sweep) file(name string, it *item, now stamp) {
	same := now.size == it.stamp.size && now.mode == it.stamp.mode
	if same {
		// Another stamp need not mean other bytes. The same stamp means the
		// same bytes unless both fit between two ticks of the clock.
		quick := it.stamp.exact && s.taken.Sub(it.stamp.changed) > settled
		if now == it.stamp && (quick || !it.kept) {
			return
		}
		if it.kept {
			data, ok := readSame(s.root, name, now)
			same = ok && bytes.Equal(data, it.data)
		}
	}
	switch {
	case !it.kept:
		s.report(name, "changed, and not put back: no copy of it was made, since it is too large or cannot be read")
	case !same:
		s.replace(name, it)
	case now.links > it.stamp.links:
		// Who writes to it by its other name would change it later.
		if _, err := s.put(name, it); err != nil {
			s.report(name, "has a new name elsewhere (a hard link), which still leads to it: %s", reason(err))
			return
		}
		s.report(name, "put back as a file of its own; it had a new name elsewhere (a hard link)")
	}
}

// folder makes a folder what it was, with everything in it.
func (s *sweep) folder(name string, it *item, now stamp) {
	if now.mode != it.stamp.mode {
		if err := s.root.Chmod(name, it.stamp.mode); err != nil {
			s.report(name, "its mode is %v now, and was not put back: %s", now.mode.Perm(), reason(err))
		} else {
			s.report(name, "its mode is put back to %v", it.stamp.mode.Perm())
		}
	}
	if !it.whole {
		if !now.mod.Equal(it.stamp.mod) || !now.changed.Equal(it.stamp.changed) {
			s.report(name, "something in it changed, and not all of that is put back: it has too much in it, or cannot be read")
		}
	} else if fresh, many, err := s.fresh(name, it); err != nil {
		s.report(name, "not looked at: %s", reason(err))
	} else if many {
		s.swap(name, it)
	} else {
		for _, n := range fresh {
			s.takeAway(path.Join(name, n))
		}
	}
	for _, kid := range it.names() {
		s.item(path.Join(name, kid), it.kids[kid])
	}
}

// fresh returns the names in a folder that were not there before, or that
// there are more than one can name.
func (s *sweep) fresh(name string, it *item) (names []string, many bool, err error) {
	var f *os.File
	err = s.inFolder(name+"/.", func() (err error) {
		f, err = openFolder(s.root, name)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	for {
		list, err := f.ReadDir(256)
		for _, e := range list {
			if it.kids[e.Name()] != nil {
				continue
			}
			if len(names) == maxNewNames {
				return nil, true, nil
			}
			names = append(names, e.Name())
		}
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names, false, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

// swap moves a folder away, however much was put into it, and moves what was
// there before into a new one.
func (s *sweep) swap(name string, it *item) {
	aside, err := s.move(name)
	if err == nil {
		err = s.inFolder(name, func() error { return s.root.Mkdir(name, 0o700) })
	}
	if err != nil {
		s.report(name, "too much is new in it, and was not taken away: %s", reason(err))
		return
	}
	for _, kid := range it.names() {
		_ = s.root.Rename(path.Join(aside, kid), path.Join(name, kid)) // or it is put back as gone
	}
	_ = s.root.Chmod(name, it.stamp.mode)
	s.report(name, "more than %d things that are new in it were taken away%s", maxNewNames, s.keep(aside, "; they are "))
}

// takeAway moves away what was not there before, and reports whether it is
// gone.
func (s *sweep) takeAway(name string) bool {
	aside, err := s.move(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		s.report(name, "new, and not taken away: %s", reason(err))
		return false
	}
	s.report(name, "taken away%s", s.keep(aside, "; it is "))
	return true
}

// replace moves away what is at name, and puts back what was there.
func (s *sweep) replace(name string, it *item) {
	aside, err := s.move(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.report(name, "changed, and not put back: %s", reason(err))
		return
	}
	where := "it had changed"
	if err == nil {
		where += s.keep(aside, "; the changed version is ")
	}
	s.putBack(name, it, where)
}

// putBack puts back what is not at name any more, and says so.
func (s *sweep) putBack(name string, it *item, why string) {
	missing, err := s.put(name, it)
	switch {
	case err != nil:
		s.report(name, "not put back: %s (%s)", reason(err), why)
	case missing > 0 && !it.stamp.mode.IsDir():
		s.report(name, "not put back: no copy of it was made, since it is too large or cannot be read (%s)", why)
	case missing > 0:
		s.report(name, "put back, but for %d of the things in it, of which no copy was made (%s)", missing, why)
	default:
		s.report(name, "put back; %s", why)
	}
}

// put makes again what was at name, where nothing is, or a file in place of
// another. It returns how many things it has no copy of.
func (s *sweep) put(name string, it *item) (missing int, err error) {
	switch mode := it.stamp.mode; {
	case mode.IsDir():
		if err := s.inFolder(name, func() error { return s.root.Mkdir(name, 0o700) }); err != nil {
			return 0, err
		}
		if !it.whole {
			missing++
		}
		for _, kid := range it.names() {
			m, kidErr := s.put(path.Join(name, kid), it.kids[kid])
			missing, err = missing+m, cmp.Or(err, kidErr)
		}
		_ = s.root.Lchown(name, it.owner.uid, it.owner.gid) // for whoever may
		return missing, cmp.Or(err, s.root.Chmod(name, mode))
	case !it.kept:
		return 1, nil
	}
	temp, err := s.temp()
	if err != nil {
		return 0, err
	}
	if it.stamp.mode.IsRegular() {
		err = writeNew(s.root, temp, it)
	} else if err = s.root.Symlink(it.link, temp); err == nil {
		_ = s.root.Lchown(temp, it.owner.uid, it.owner.gid)
	}
	if err == nil {
		err = s.inFolder(name, func() error { return s.root.Rename(temp, name) })
	}
	if err != nil {
		_ = s.root.Remove(temp)
	}
	return 0, err
}

// writeNew writes a regular file anew.
func writeNew(root *os.Root, name string, it *item) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(it.data)
	_ = f.Chown(it.owner.uid, it.owner.gid) // for whoever may; it takes bits of the mode away
	return cmp.Or(err, f.Chmod(it.stamp.mode), f.Close())
}

// move moves what is at name into our folder.
func (s *sweep) move(name string) (aside string, err error) {
	aside, err = s.temp()
	if err != nil {
		return "", err
	}
	// A folder that is closed to us cannot be moved to another.
	if info, err := s.root.Lstat(name); err == nil && info.IsDir() && info.Mode()&0o700 != 0o700 {
		_ = s.root.Chmod(name, info.Mode()|0o700)
	}
	return aside, s.inFolder(name, func() error { return s.root.Rename(name, aside) })
}

// keep gives what was moved aside to the workspace, or leaves it there. It
// returns where it is, after intro, or nothing when there was no content.
func (s *sweep) keep(aside, intro string) string {
	info, err := s.root.Lstat(aside)
	if err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice|fs.ModeIrregular) != 0 {
		_ = s.root.Remove(aside)
		return ""
	}
	to, err := s.keeper.save(s.root, aside)
	if err != nil {
		return fmt.Sprintf("%sat %q (not in the workspace: %s)", intro, filepath.Join(s.abs, filepath.FromSlash(aside)), reason(err))
	}
	_ = s.root.RemoveAll(aside) // what stays is only a second copy
	return intro + "in " + to
}

// inFolder does something in the folder that holds name, also when the folder
// is closed to us as it is now.
func (s *sweep) inFolder(name string, do func() error) error {
	err := do()
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	dir := path.Dir(name)
	info, lerr := s.root.Lstat(dir)
	if lerr != nil || !info.IsDir() || info.Mode()&0o700 == 0o700 || s.root.Chmod(dir, info.Mode()|0o700) != nil {
		return err
	}
	err = do()
	_ = s.root.Chmod(dir, info.Mode())
	return err
}

// temp returns a new name in a folder of our own, on the same file system as
// nearly everything in the writable folder.
func (s *sweep) temp() (name string, err error) {
	if s.aside == "" {
		if s.aside, err = s.makeAside(); err != nil {
			return "", err
		}
	}
	s.moved++
	return path.Join(s.aside, strconv.Itoa(s.moved)), nil
}

// makeAside makes a folder that was not there before, so that it is a folder
// and empty. It is in the folder for kept output, unless the program has made
// something else of that.
func (s *sweep) makeAside() (dir string, err error) {
	s.madeKept = s.root.Mkdir(keptDir, 0o700) == nil
	info, err := s.root.Lstat(keptDir)
	kept := err == nil && info.IsDir()
	for i := range 100 {
		name := s.name + ".aside"
		if i > 0 {
			name += "-" + strconv.Itoa(i+1)
		}
		if kept {
			dir = path.Join(keptDir, name)
			if s.root.Mkdir(dir, 0o700) == nil {
				return dir, nil
			}
		}
		dir = keptDir + "-" + name
		if err = s.root.Mkdir(dir, 0o700); err == nil {
			return dir, nil
		}
	}
	return "", err
}

// close removes our folder, unless something had to stay there.
func (s *sweep) close() {
	if s.aside != "" {
		_ = s.root.Remove(s.aside)
	}
	if s.madeKept {
		_ = s.root.Remove(keptDir)
	}
}

// reason is the cause of an error of a file operation, without the names that
// it was about.
func reason(err error) string {
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err.Error()
	}
	return cause(err)
}

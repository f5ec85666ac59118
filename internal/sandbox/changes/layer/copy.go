package layer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// A Copy describes a copy of a folder when it was made.
type Copy struct {
	entries map[string]*copied // :: slash path
	kids    map[string][]string
}

// A copied describes one name of a copy.
type copied struct {
	user, copy tree.Meta
	digest     string // of a regular file, if the system has no time of change
}

// Default limits of a copy.
const (
	defaultCopyBytes = 64 << 20
	defaultCopyNames = 5_000
)

// Copy copies the folder into the empty folder to, with clones where the file system
// has them: regular files, links, folders, modes, times, attributes and holes. Other
// things, and files that may not be read, are left out. On failure, the partial copy
// stays in to for the caller to remove.
func (f *Folder) Copy(ctx context.Context, to *os.File, limits CopyLimits) (*Copy, error) {
	if limits.Bytes == 0 {
		limits.Bytes = defaultCopyBytes
	}
	if limits.Names == 0 {
		limits.Names = defaultCopyNames
	}
	target, err := tree.From(to)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	c := &copier{ctx: ctx, limits: limits, made: &Copy{entries: map[string]*copied{}, kids: map[string][]string{}}}
	if err := c.folder(f.Dir, target, "", 0); err != nil {
		return nil, fmt.Errorf("copying %q: %w", f.Path, err)
	}
	// Otherwise a change that the run makes within the same clock step would not show.
	if _, err := target.Moment(); err != nil {
		return nil, err
	}
	return c.made, nil
}

// errClosed says that we have no right to read one of the user's files.
var errClosed = errors.New("it may not be read")

type copier struct {
	ctx    context.Context // of one call of Copy
	limits CopyLimits
	made   *Copy
	noted  int
	bytes  int64 // that were not cloned
	plain  bool  // the file system clones nothing
}

func (c *copier) folder(from, to *tree.Dir, dir string, depth int) error {
	if depth > maxDepth {
		return errTooLarge
	}
	names, err := from.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		m, err := from.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if c.noted++; c.noted > c.limits.Names {
			return errTooLarge
		}
		at := path.Join(dir, name)
		e := &copied{user: m}
		switch {
		case m.IsDir():
			err = c.sub(from, to, at, name, &m, depth)
		case m.IsLink():
			var target string
			if target, err = from.Readlink(name); err == nil {
				if err = to.Symlink(target, name); err == nil {
					err = to.SetMtime(name, m.Mtime)
				}
			}
		case m.IsFile():
			e.digest, err = c.file(from, to, name, &m)
		default:
			continue
		}
		if errors.Is(err, errClosed) {
			continue
		}
		if err == nil {
			e.copy, err = to.Lstat(name)
		}
		if err != nil {
			return err
		}
		c.made.entries[at] = e
		c.made.kids[dir] = append(c.made.kids[dir], name)
	}
	return nil
}

func (c *copier) sub(from, to *tree.Dir, at, name string, m *tree.Meta, depth int) error {
	below, err := enter(from, name)
	if errors.Is(err, fs.ErrPermission) {
		return errClosed
	}
	if err != nil {
		return err
	}
	defer below.Close()
	if err := to.Mkdir(name); err != nil {
		return err
	}
	made, err := to.Sub(name)
	if err != nil {
		return err
	}
	defer made.Close()
	if err := c.folder(below, made, at, depth+1); err != nil {
		return err
	}
	return finishFile(made.File(), below.File(), to, name, m)
}

// finishFile gives a copy the original's attributes, mode and time.
func finishFile(to, from *os.File, dir *tree.Dir, name string, m *tree.Meta) error {
	attrs, err := tree.ReadAttrs(from)
	if err == nil {
		_, err = tree.WriteAttrs(to, attrs)
	}
	if err == nil {
		err = tree.SetPerm(to, m.Perm)
	}
	if err == nil {
		err = dir.SetMtime(name, m.Mtime)
	}
	return err
}

func (c *copier) file(from, to *tree.Dir, name string, m *tree.Meta) (digest string, err error) {
	in, err := from.Read(name)
	if errors.Is(err, fs.ErrPermission) {
		return "", errClosed
	}
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := to.Create(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	cloned := false
	if !c.plain {
		err := tree.Clone(out, in)
		cloned = err == nil
		if c.plain = errors.Is(err, tree.ErrNoClone); !c.plain && err != nil {
			return "", err
		}
		if c.plain && c.limits.CloneOnly {
			return "", errNoClone
		}
	}
	if !cloned {
		if c.bytes += m.Size; c.bytes > c.limits.Bytes {
			return "", errTooLarge
		}
		if digest, err = tree.CopyContent(out, in, m.Size); err != nil {
			return "", err
		}
	}
	if m.Ctime != 0 {
		digest = "" // the time of change suffices
	}
	return digest, finishFile(out, in, to, name, m)
}

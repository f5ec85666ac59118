package packfs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds of one digest.
const (
	maxTreeFiles = 200_000
	maxTreeBytes = 4 << 30 // 4 GiB, unless [Dir.LimitTree] said otherwise
	maxTreeDepth = 64
)

// A Tree is what a directory held when it was digested.
type Tree struct {
	// Digest is "sha256:" and the SHA-256, in lower-case hexadecimal, of one line
	// for every regular file and symlink below the directory, sorted by their
	// bytes. The line of a file is its path with slashes, NUL, "1" when anybody
	// may execute it, otherwise "0", NUL, the SHA-256 of its bytes in lower-case
	// hexadecimal, newline; that of a symlink is its path, NUL, "link", NUL, its
	// target with slashes, newline. On Windows, which does not keep it, nobody may
	// execute a file. Directories, FIFOs, sockets and devices have none.
	// The line of a denied entry is its path, NUL, "denied", NUL, what denies it
	// ("name", "link", "size" or "access"), NUL, its size, NUL, its time of last
	// change in nanoseconds, newline.
	Digest string
	Files  []TreeFile // sorted by path
	Denied []Denied   // sorted by path; in no other list
	Bytes  int64      // the sizes of Files

	links map[string]string // :: path of a symlink → its target, with slashes

	keep string // see DigestKeeping
	kept []byte // nil: it was not kept
}

// A TreeFile is one regular file of a Tree.
type TreeFile struct {
	Path   string // with slashes
	Size   int64
	Digest string // "sha256:" and 64 hexadecimal digits
	Exec   bool
}

// NewTree is what somebody who wrote a directory knows of it: its digest, its files,
// sorted by path, and its links, as a path → a target.
func NewTree(digest string, files []TreeFile, links map[string]string) *Tree {
	t := &Tree{Digest: digest, Files: files, links: links}
	for _, f := range files {
		t.Bytes += f.Size
	}
	return t
}

// File returns the file of the tree at path, which has slashes.
func (t *Tree) File(path string) (TreeFile, bool) {
	i, ok := slices.BinarySearchFunc(t.Files, path, func(f TreeFile, path string) int { return cmp.Compare(f.Path, path) })
	if !ok {
		return TreeFile{}, false
	}
	return t.Files[i], true
}

// Links are the symlinks of the tree: path → target, with slashes. They must not be
// modified.
func (t *Tree) Links() map[string]string { return t.links }

// Kept returns the very bytes of the file at path that were digested, if it is the
// one that [Dir.DigestKeeping] was to keep, and was kept. They must not be modified.
func (t *Tree) Kept(path string) (data []byte, ok bool) {
	return t.kept, t.kept != nil && path == t.keep
}

// WithoutKept returns the Tree without the bytes that [Tree.Kept] returns, so that a
// caller that keeps the Tree does not keep the bytes in memory.
func (t *Tree) WithoutKept() *Tree {
	return &Tree{Digest: t.Digest, Files: t.Files, Denied: t.Denied, Bytes: t.Bytes, links: t.links}
}

// alwaysRead is how many bytes of a tree are read whatever a cache remembers:
// no stamp of a file shows what is written to it through a mapping that was
// made, and written to, before. Nearly all packs are smaller, and so many bytes
// take some hundredths of a second.
const alwaysRead = 8 << 20 // 8 MiB

// A DigestCache remembers the digests of files that have not changed, by
// size, times of change and inode. The zero value is empty and ready. Safe for
// concurrent use; one cache may serve any number of directories.
//
// It is asked only about files for which there is no room in the 8 MiB that
// are read of every tree, so not at all in a tree that is no larger. Of those
// files, it does not see a change whose writer keeps the size, and the times
// as well: through a shared mapping that was written to before the digest, by
// setting the system's clock back, or, on a system whose time of change this
// package cannot read (all but Linux, macOS, FreeBSD and NetBSD), by setting the
// file's time.
type DigestCache struct {
	mu    sync.Mutex
	sums  map[identity][sha256.Size]byte // guarded by mu
	now   func() time.Time               // nil: time.Now; tests only
	reads int                            // files that were read, guarded by mu; tests only

	buffers sync.Pool // of *[]byte that a walk read into, for the next one
}

// identity is what a file cannot keep when its bytes change, unless somebody
// sets the clock back.
type identity struct {
	device, inode uint64
	size          int64
	modified      int64 // nanoseconds
	changed       int64 // nanoseconds of the inode's last change; 0 where there is none
}

// maxCached is how many digests a cache holds before it starts anew: about
// 20 MiB.
const maxCached = 200_000

// settled is how long a file must have been left alone before its digest is
// remembered: a second write within the clock's own step would not show.
const settled = 2 * time.Second

func (c *DigestCache) get(id identity) (sum [sha256.Size]byte, ok bool) {
	if c == nil || id.inode == 0 {
		return sum, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sum, ok = c.sums[id]
	return sum, ok
}

func (c *DigestCache) put(id identity, sum [sha256.Size]byte, read time.Time) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	if id.inode == 0 || read.Sub(time.Unix(0, max(id.modified, id.changed))) < settled {
		return
	}
	if c.sums == nil || len(c.sums) >= maxCached {
		c.sums = make(map[identity][sha256.Size]byte)
	}
	c.sums[id] = sum
}

func (c *DigestCache) clock() time.Time {
	if c != nil && c.now != nil {
		return c.now()
	}
	return time.Now()
}

// Digest reads every file below the directory and returns what is there; cache
// may be nil. Symlinks are not followed. Denied are files and directories that
// cannot be read, files that alone are larger than the limit of 4 GiB (see
// [Dir.LimitTree]), names that are not UTF-8 or hold control characters, and links
// whose target holds a line break (two different trees could have one digest). They
// are part of the digest as what they are; in a directory that [OpenFile] opened they
// fail it. It fails, rather than leave something
// out, when a file changes meanwhile, beyond 200,000 files and links, when all other
// files together are larger than the limit, beyond 64 levels, and when ctx ends.
func (d *Dir) Digest(ctx context.Context, cache *DigestCache) (*Tree, error) {
	return d.walkTree(ctx, cache, nil)
}

// DigestKeeping is [Dir.Digest], and keeps for [Tree.Kept] what it read of the regular
// file at path, if that has at most max bytes. So a caller who needs the content does
// not read it again, and has the bytes that were digested.
func (d *Dir) DigestKeeping(ctx context.Context, cache *DigestCache, path string, max int64) (*Tree, error) {
	return d.walk(&treeWalk{ctx: ctx, cache: cache, keepMax: max, tree: &Tree{keep: path}}, nil)
}

// A Bound is how large a tree may be. A field that is 0 has the bound of
// [Dir.Digest].
type Bound struct {
	Files int   // regular files, links, directories and what else there is
	Bytes int64 // the sizes of all files
}

// DigestWithin is [Dir.Digest] of a tree that is expected to be small: beyond
// the bound, it fails with a [*TooLargeError] and has read no more than that. It
// denies nothing: it also fails for what Digest denies.
func (d *Dir) DigestWithin(ctx context.Context, cache *DigestCache, within Bound) (*Tree, error) {
	return d.walk(&treeWalk{ctx: ctx, cache: cache, within: within, strict: true, tree: &Tree{}}, nil)
}

// DigestCopy is [Dir.Digest] of a copy that [Dir.CopyTo] made, where denied is
// [Tree.DeniedText] of that tree: the digest is that of the tree when the copy holds
// all the rest of it. It denies nothing itself, and fails when denied is something
// else.
func (d *Dir) DigestCopy(ctx context.Context, cache *DigestCache, denied []byte) (*Tree, error) {
	lines, err := deniedLines(denied)
	if err != nil {
		return nil, err
	}
	return d.walk(&treeWalk{ctx: ctx, cache: cache, strict: true, lines: lines, tree: &Tree{}}, nil)
}

// Survey is [Dir.Digest] without reading any file: the Tree has no digest, nor do its
// files. It says what Digest would deny, unless a file opens and then cannot be read.
func (d *Dir) Survey(ctx context.Context) (*Tree, error) {
	tree, err := d.walk(&treeWalk{ctx: ctx, survey: true, tree: &Tree{}}, nil)
	if err != nil {
		return nil, err
	}
	tree.Digest = ""
	return tree, nil
}

// LimitTree sets how large a tree that is digested may be, in bytes; 0 stands for
// 4 GiB. It must be called before others use d.
func (d *Dir) LimitTree(max int64) { d.maxTree = max }

// walkTree is Digest, and [Dir.CopyTo] when there is a directory to copy to.
func (d *Dir) walkTree(ctx context.Context, cache *DigestCache, to *os.Root) (*Tree, error) {
	return d.walk(&treeWalk{ctx: ctx, cache: cache, tree: &Tree{}}, to)
}

func (d *Dir) walk(w *treeWalk, to *os.Root) (*Tree, error) {
	w.within.Files, w.within.Bytes = cmp.Or(w.within.Files, maxTreeFiles), cmp.Or(w.within.Bytes, d.maxTree, maxTreeBytes)
	w.sha = sha256.New()
	if w.cache != nil {
		if b, ok := w.cache.buffers.Get().(*[]byte); ok {
			w.buffer = *b
		}
		defer func() {
			b := w.buffer // and nothing else of w
			w.cache.buffers.Put(&b)
		}()
	}
	root, err := d.disk()
	if err != nil {
		return nil, err
	}
	if d.only == "" {
		err = w.dir(root, to, "", 0)
	} else {
		// Without its one file, nothing is left of it.
		if err = w.entry(root, to, "", d.only, 0); err == nil && len(w.tree.Denied) > 0 {
			err = &PathError{d.only, w.tree.Denied[0].Reason}
		}
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(w.lines)
	w.sha.Reset()
	for _, l := range w.lines {
		io.WriteString(w.sha, l) // a hash never fails
	}
	w.tree.Digest = text(w.sha.Sum(nil))
	slices.SortFunc(w.tree.Files, func(a, b TreeFile) int { return cmp.Compare(a.Path, b.Path) })
	slices.SortFunc(w.tree.Denied, func(a, b Denied) int { return cmp.Compare(a.Path, b.Path) })
	return w.tree, nil
}

func text(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

// leastBuffer and maxBuffer are how many bytes of a file are read at a time, at
// least and at most; most files of most packs have fewer than the first.
const (
	leastBuffer = 8 << 10
	maxBuffer   = 64 << 10
)

type treeWalk struct {
	ctx     context.Context // of the one call of Digest that made this
	cache   *DigestCache
	within  Bound
	keepMax int64 // of the file that tree is to keep
	strict  bool  // what cannot be digested fails the walk, instead of being denied
	survey  bool  // no file is read
	tree    *Tree
	lines   []string
	entries int
	read    int64     // bytes that were read whatever cache remembers
	sha     hash.Hash // of one file after the other
	buffer  []byte    // as large as the largest file so far, up to maxBuffer
}

// dir walks one directory. What is in it is copied to to, unless that is nil.
func (w *treeWalk) dir(root, to *os.Root, rel string, depth int) error {
	if depth > maxTreeDepth {
		return &PathError{rel, &TooLargeError{Size: int64(depth), Limit: maxTreeDepth, Unit: "levels", Tree: true}}
	}
	f, err := root.OpenFile(".", os.O_RDONLY|openFlags, 0)
	if err != nil {
		return &PathError{cmp.Or(rel, "."), reason(err)}
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(1000)
		for _, name := range names {
			if err := w.entry(root, to, rel, name, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &PathError{cmp.Or(rel, "."), reason(err)}
		}
	}
}

func (w *treeWalk) entry(root, to *os.Root, rel, name string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	at := join(rel, name)
	if w.entries++; w.entries > w.within.Files {
		return &PathError{".", &TooLargeError{Size: int64(w.entries), Limit: int64(w.within.Files), Unit: "files", Tree: !w.strict}}
	}
	info, err := root.Lstat(name)
	if err != nil {
		if w.denies(at, err, nil) {
			return nil
		}
		return &PathError{at, reason(err)}
	}
	if !w.strict && isOdd(name) {
		w.deny(at, deniedName, ErrOddName, info)
		return nil
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		sub, err := root.OpenRoot(name)
		if err != nil {
			if w.denies(at, err, info) {
				return nil
			}
			return &PathError{at, reason(err)}
		}
		defer sub.Close()
		if to != nil {
			return w.copyDir(sub, to, at, name, depth+1)
		}
		return w.dir(sub, nil, at, depth+1)
	case mode&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		if err != nil {
			if w.denies(at, err, info) {
				return nil
			}
			return &PathError{at, reason(err)}
		}
		if strings.Contains(target, "\n") {
			if w.strict {
				return &PathError{at, ErrLineBreak}
			}
			w.deny(at, deniedLink, ErrLineBreak, info)
			return nil
		}
		if to != nil {
			if err := to.Symlink(target, name); err != nil {
				return &WriteError{at, bare(err)}
			}
		}
		target = filepath.ToSlash(target)
		w.lines = append(w.lines, at+"\x00link\x00"+target+"\n")
		if w.tree.links == nil {
			w.tree.links = make(map[string]string)
		}
		w.tree.links[at] = target
		return nil
	case mode.IsRegular():
		return w.file(root, to, at, name, info)
	default:
		w.tree.Denied = append(w.tree.Denied, Denied{Path: at, Reason: ErrNotRegular})
	}
	return nil
}

func (w *treeWalk) file(root, to *os.Root, at, name string, info fs.FileInfo) error {
	if !w.strict && info.Size() > w.within.Bytes {
		w.deny(at, deniedSize, &TooLargeError{Size: info.Size(), Limit: w.within.Bytes, Tree: !w.strict}, info)
		return nil
	}
	var sum [sha256.Size]byte
	known := false
	switch {
	case w.survey:
		if err := readable(root, name); err != nil {
			if w.denies(at, err, info) {
				return nil
			}
			return &PathError{at, reason(err)}
		}
		known = true
	case to != nil, w.keeps(at, info): // what is copied or kept is read
	case w.read+info.Size() <= alwaysRead:
		w.read += info.Size()
	default:
		sum, known = w.cache.get(identify(info))
	}
	if !known {
		hashed, after, err := w.hash(root, to, at, name)
		if err != nil {
			if w.ctx.Err() != nil {
				return w.ctx.Err()
			}
			if we, ok := errors.AsType[*WriteError](err); ok {
				we.Path = at
				return we
			}
			if w.denies(at, err, info) {
				return w.discard(to, at, name)
			}
			return &PathError{at, err}
		}
		sum, info = hashed, after
	}
	w.tree.Bytes += info.Size()
	if w.tree.Bytes > w.within.Bytes {
		return &PathError{".", &TooLargeError{Size: w.tree.Bytes, Limit: w.within.Bytes, Tree: !w.strict}}
	}
	file := TreeFile{Path: at, Size: info.Size(), Digest: text(sum[:]), Exec: info.Mode()&0o111 != 0}
	bit := "0"
	if file.Exec {
		bit = "1"
	}
	if w.survey {
		file.Digest = ""
	}
	w.tree.Files = append(w.tree.Files, file)
	w.lines = append(w.lines, at+"\x00"+bit+"\x00"+hex.EncodeToString(sum[:])+"\n")
	return nil
}

// discard removes what was copied of a file before it could not be read further.
func (w *treeWalk) discard(to *os.Root, at, name string) error {
	if to == nil {
		return nil
	}
	if err := to.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &WriteError{at, bare(err)}
	}
	return nil
}

// keeps reports whether the file at a path of the tree is the one to be kept.
func (w *treeWalk) keeps(at string, info fs.FileInfo) bool {
	return at == w.tree.keep && info.Size() <= w.keepMax
}

// hash reads the file, into a copy unless to is nil, and returns the state in
// which it was read.
func (w *treeWalk) hash(root, to *os.Root, at, name string) (sum [sha256.Size]byte, info fs.FileInfo, err error) {
	f, err := root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return sum, nil, reason(err)
	}
	defer f.Close()
	info, err = f.Stat()
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return sum, nil, err
	}
	if left := w.within.Bytes - w.tree.Bytes; info.Size() > left {
		return sum, nil, &TooLargeError{Size: w.tree.Bytes + info.Size(), Limit: w.within.Bytes, Tree: !w.strict}
	}
	now := w.cache.clock()
	w.sha.Reset()
	sink, done := io.Writer(w.sha), func() error { return nil }
	if to != nil {
		// The very bytes that are written are those that are hashed.
		if sink, done, err = copyFile(w.sha, to, name, info); err != nil {
			return sum, nil, err
		}
	}
	var kept *bytes.Buffer
	if w.keeps(at, info) {
		kept = bytes.NewBuffer(make([]byte, 0, info.Size()))
		sink = io.MultiWriter(sink, kept)
	}
	n, err := w.copy(sink, f, info.Size()+1)
	if ended := done(); err == nil {
		err = ended
	}
	if err != nil {
		return sum, nil, err
	}
	after, err := f.Stat()
	if err != nil {
		return sum, nil, reason(err)
	}
	if n != info.Size() || identify(after) != identify(info) {
		return sum, nil, ErrChanged
	}
	if kept != nil {
		w.tree.kept = kept.Bytes()
	}
	w.sha.Sum(sum[:0])
	w.cache.put(identify(info), sum, now)
	return sum, info, nil
}

// copy writes at most limit bytes, and looks now and then whether to stop.
func (w *treeWalk) copy(to io.Writer, r io.Reader, limit int64) (n int64, err error) {
	if room := min(limit, maxBuffer); int64(len(w.buffer)) < room {
		w.buffer = make([]byte, max(room, leastBuffer))
	}
	for n < limit {
		if err := w.ctx.Err(); err != nil {
			return n, err
		}
		got, err := r.Read(w.buffer[:min(int64(len(w.buffer)), limit-n)])
		if _, err := to.Write(w.buffer[:got]); err != nil {
			return n, err
		}
		n += int64(got)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, reason(err)
		}
	}
	return n, nil
}

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/memory"
)

// The library reads commits, tags and trees, too, but brings in OpenPGP, whose tables
// would be built at every start. Parsing the three takes only a few lines.

// commit has the parts of a commit that are used.
type commit struct {
	hash    plumbing.Hash
	tree    plumbing.Hash
	parents []plumbing.Hash
	made    time.Time // according to the commit; zero if it does not say
}

// tag has the parts of an annotated tag that are used.
type tag struct{ hash, target plumbing.Hash }

// treeEntry is one line of a tree.
type treeEntry struct {
	name string
	mode filemode.FileMode
	hash plumbing.Hash
}

// objectAt returns an object after checking that its bytes match its hash. The library
// trusts file names and pack indexes, and a repository on this machine may have come
// from anywhere, so a signed commit could otherwise lead to any content. In memory,
// objects are under the hash of their bytes already; see unpack.
func objectAt(store storer.EncodedObjectStorer, kind plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	o, err := store.EncodedObject(kind, h)
	if err != nil {
		return nil, err
	}
	if _, ok := store.(*memory.Storage); ok {
		return o, nil
	}
	in, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	sum := plumbing.NewHasher(kind, o.Size())
	if _, err := io.Copy(sum, in); err != nil {
		return nil, err
	}
	if got := sum.Sum(); got != h {
		return nil, fmt.Errorf("the object %s is damaged: its bytes have the hash %s", h, got)
	}
	return o, nil
}

// bytesOf returns the bytes of an object.
func bytesOf(o plumbing.EncodedObject) ([]byte, error) {
	if o.Size() > maxObject {
		return nil, fmt.Errorf("the object %s has %d bytes, and %d is the limit", o.Hash(), o.Size(), maxObject)
	}
	in, err := o.Reader()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, maxObject))
}

// hashIn reads "key HASH" from the first line of a header, and returns the rest.
func hashIn(header []byte, key string) (h plumbing.Hash, rest []byte, ok bool) {
	line, rest, found := bytes.Cut(header, []byte("\n"))
	text, is := strings.CutPrefix(string(line), key+" ")
	if !found || !is || !plumbing.IsHash(text) {
		return h, header, false
	}
	return plumbing.NewHash(text), rest, true
}

// parseCommit reads a commit as git writes it: the tree, the parents, and then the rest.
func parseCommit(o plumbing.EncodedObject) (*commit, error) {
	data, err := bytesOf(o)
	if err != nil {
		return nil, err
	}
	c := &commit{hash: o.Hash()}
	rest, ok := data, false
	if c.tree, rest, ok = hashIn(rest, "tree"); !ok {
		return nil, fmt.Errorf("the commit %s does not begin with its tree", c.hash)
	}
	for {
		var parent plumbing.Hash
		if parent, rest, ok = hashIn(rest, "parent"); !ok {
			break
		}
		c.parents = append(c.parents, parent)
	}
	header, _, _ := bytes.Cut(rest, []byte("\n\n"))
	for line := range bytes.SplitSeq(header, []byte("\n")) {
		if who, is := bytes.CutPrefix(line, []byte("committer ")); is {
			c.made = timeIn(string(who))
			break
		}
	}
	return c, nil
}

// timeIn reads the time after a name and an address: "A <a@example.org> 1700000000 +0100".
func timeIn(who string) time.Time {
	fields := strings.Fields(who[strings.LastIndexByte(who, '>')+1:])
	if len(fields) == 0 {
		return time.Time{}
	}
	seconds, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || seconds < 0 || seconds > 253402300799 { // the year 9999, the last that RFC 3339 has
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// parseTree reads a tree: for each entry its mode, its name, and the hash's bytes.
func parseTree(data []byte) ([]treeEntry, error) {
	var all []treeEntry
	for len(data) > 0 {
		head, rest, ok := bytes.Cut(data, []byte{0})
		mode, name, spaced := strings.Cut(string(head), " ")
		var h plumbing.Hash
		if !ok || !spaced || name == "" || len(rest) < len(h) {
			return nil, errors.New("the list of a folder is cut off")
		}
		m, err := filemode.New(mode)
		if err != nil {
			return nil, fmt.Errorf("%q has the mode %q, which is none", name, mode)
		}
		copy(h[:], rest)
		all, data = append(all, treeEntry{name, m, h}), rest[len(h):]
	}
	return all, nil
}

func commitAt(store storer.EncodedObjectStorer, h plumbing.Hash) (*commit, error) {
	o, err := objectAt(store, plumbing.CommitObject, h)
	if err != nil {
		return nil, err
	}
	return parseCommit(o)
}

func tagAt(store storer.EncodedObjectStorer, h plumbing.Hash) (*tag, error) {
	o, err := objectAt(store, plumbing.TagObject, h)
	if err != nil {
		return nil, err
	}
	data, err := bytesOf(o)
	if err != nil {
		return nil, err
	}
	target, _, ok := hashIn(data, "object")
	if !ok {
		return nil, fmt.Errorf("the tag %s does not say what it is for", h)
	}
	return &tag{h, target}, nil
}

// treeAt returns the entries of a folder, which must not be modified.
func (r *repository) treeAt(h plumbing.Hash) ([]treeEntry, error) {
	if entries, ok := r.trees[h]; ok {
		return entries, nil
	}
	o, err := objectAt(r.store, plumbing.TreeObject, h)
	if err != nil {
		return nil, err
	}
	data, err := bytesOf(o)
	if err != nil {
		return nil, err
	}
	entries, err := parseTree(data)
	if err != nil {
		return nil, err
	}
	if r.trees == nil || len(r.trees) >= maxTrees {
		r.trees = map[plumbing.Hash][]treeEntry{}
	}
	r.trees[h] = entries
	return entries, nil
}

// maxTrees is how many folders are kept in memory.
const maxTrees = 10_000

// folderAt returns the entries of a folder of the commit; "" is all of it.
func (r *repository) folderAt(under string) ([]treeEntry, error) {
	tree := r.commit.tree
	if under != "" {
		for part := range strings.SplitSeq(under, "/") {
			entries, err := r.treeAt(tree)
			if err != nil {
				return nil, err
			}
			i := slices.IndexFunc(entries, func(e treeEntry) bool { return e.name == part })
			if i < 0 || entries[i].mode != filemode.Dir {
				return nil, fmt.Errorf("there is no folder %q in it", part)
			}
			tree = entries[i].hash
		}
	}
	return r.treeAt(tree)
}

// isBefore reports whether a commit is in the history of another, as far as the store
// has it: a shallow clone's history is cut off.
func isBefore(ctx context.Context, store storer.EncodedObjectStorer, old plumbing.Hash, now *commit) (bool, error) {
	seen, todo := map[plumbing.Hash]bool{}, slices.Clone(now.parents)
	for len(todo) > 0 {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		h := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if h == old {
			return true, nil
		}
		if seen[h] {
			continue
		}
		seen[h] = true
		c, err := commitAt(store, h)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue
		}
		if err != nil {
			return false, err
		}
		todo = append(todo, c.parents...)
	}
	return false, nil
}

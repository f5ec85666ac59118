// Package gitdata reads a run's commits in its layer of a git folder, and returns the
// objects, references and index that bring them to the user's git folder.
//
// It returns only data: objects whose names were computed from their content,
// branches and tags, and the index. It writes nothing and starts no program. It does
// not import from repositories with reftables, split or sparse indexes, alternates
// that the commits need, or missing objects. Anything that it does not understand is
// an error, and then nothing is imported.
package gitdata

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// A Source is a git folder before and after a run.
type Source struct {
	Base, After View
	Dir         string // with HEAD and index: ".git"
	Common      string // with objects and refs: ".git", or elsewhere for a worktree
	// Protected returns why no commit may change the file at path, or "".
	Protected func(path string) string
	// Link returns why no commit may have a link at path to target, or ""; nil: all
	// links are allowed.
	Link func(path, target string) string
	// File opens the user's file at a path of the repository, so that a commit may hold
	// a protected file unchanged; nil: commits may hold none.
	File func(path string) (*os.File, error)
}

// An Import has the data that brings commits to the user's git folder.
type Import struct {
	Objects map[string][]byte // :: path of a loose object that the user's folder lacks → its content
	Refs    []Ref
	// Index is the new content of the index at IndexPath; nil: it stays.
	Index     []byte
	IndexPath string
}

// A Ref is a branch or a tag that is new or moves.
type Ref struct {
	Name     string // "refs/heads/main"
	Path     string // of its file
	Old, New string // names of objects; Old is empty for a new one
	// Files lists the files that differ between the two or, for a new one, from the
	// branch that is checked out: "A ", "M " or "D " and a path. More is the number of
	// others.
	Files []string
	More  int
}

// Read returns the run's commits, or nil if no branch or tag is new or moved.
func Read(ctx context.Context, s *Source) (*Import, error) {
	if _, err := s.Base.Names(path.Join(s.Common, "reftable")); err == nil {
		return nil, errors.New("its references are in a reftable")
	}
	oldRefs, err := readRefs(s.Base, s.Common)
	if err != nil {
		return nil, err
	}
	newRefs, err := readRefs(s.After, s.Common)
	if err != nil {
		return nil, err
	}
	imp := &Import{Objects: map[string][]byte{}, IndexPath: path.Join(s.Dir, "index")}
	for _, name := range slices.Sorted(maps.Keys(newRefs)) {
		is, was := newRefs[name], oldRefs[name]
		if is == was {
			continue
		}
		if !refName(name) {
			return nil, fmt.Errorf("the name %q is not one of a branch or tag", name)
		}
		imp.Refs = append(imp.Refs, Ref{Name: name, Path: path.Join(s.Common, name), Old: was, New: is})
	}
	if len(imp.Refs) == 0 {
		return nil, nil
	}
	size := len(imp.Refs[0].New) / 2
	if size != sha1.Size && size != sha256.Size {
		return nil, fmt.Errorf("%q is not an object's name", imp.Refs[0].New)
	}
	r := &reader{ctx: ctx, source: s, size: size, imp: imp, refs: oldRefs, seen: map[string]bool{}}
	dir := path.Join(s.Common, "objects")
	if r.base, err = openObjects(s.Base, dir, size); err != nil {
		return nil, err
	}
	defer r.base.close()
	if r.after, err = openObjects(s.After, dir, size); err != nil {
		return nil, err
	}
	defer r.after.close()
	return imp, r.read()
}

// readRefs returns the branches and tags of a git folder.
func readRefs(v View, common string) (map[string]string, error) {
	refs := map[string]string{}
	packed, err := readFile(v, path.Join(common, "packed-refs"), maxRefFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(packed)) {
		id, name, ok := strings.Cut(strings.TrimSpace(line), " ")
		if ok && isIDOfAny(id) && (strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/")) {
			refs[name] = id
		}
	}
	for _, dir := range []string{"refs/heads", "refs/tags"} {
		if err := looseRefs(v, common, dir, refs, 0); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

func looseRefs(v View, common, dir string, refs map[string]string, depth int) error {
	if depth > 32 {
		return fmt.Errorf("references in %q are too deep", dir)
	}
	names, err := v.Names(path.Join(common, dir))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	for _, e := range names {
		name := dir + "/" + e.Name
		switch {
		case e.Type.IsDir():
			if err := looseRefs(v, common, name, refs, depth+1); err != nil {
				return err
			}
			continue
		case e.Type != 0:
			return fmt.Errorf("the reference %q is not a file", name)
		case strings.HasSuffix(name, ".lock"):
			continue
		}
		data, err := readFile(v, path.Join(common, name), 4096)
		if err != nil {
			return err
		}
		id := strings.TrimSpace(string(data))
		if !isIDOfAny(id) {
			return fmt.Errorf("the reference %q does not name an object", name)
		}
		if refs[name] = id; len(refs) > maxRefs {
			return errors.New("there are too many references")
		}
	}
	return nil
}

func isIDOfAny(s string) bool { return isID(s, sha1.Size) || isID(s, sha256.Size) }

func readFile(v View, name string, limit int64) ([]byte, error) {
	f, err := v.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(bufio.NewReader(f), limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%q is larger than %d bytes", name, limit)
	}
	return data, err
}

// A reader reads one import.
type reader struct {
	ctx         context.Context // of one call of Read
	source      *Source
	size        int
	imp         *Import
	refs        map[string]string // of the user
	base, after *objects
	seen        map[string]bool
	commits     []string // the new ones
	bytes       int64
	listed      int // bytes of the files of all references
}

func (r *reader) read() error {
	for _, ref := range r.imp.Refs {
		if len(ref.New) != 2*r.size || ref.Old != "" && len(ref.Old) != 2*r.size {
			return errors.New("its objects have names of two kinds")
		}
		if err := r.need(ref.New); err != nil {
			return fmt.Errorf("%s: %w", ref.Name, err)
		}
		if strings.HasPrefix(ref.Name, "refs/heads/") {
			if kind, _, err := r.object(ref.New); err != nil || kind != "commit" {
				return errors.Join(fmt.Errorf("%s does not name a commit", ref.Name), err)
			}
		}
	}
	head, err := r.head()
	if err != nil {
		return err
	}
	for i := range r.imp.Refs {
		ref := &r.imp.Refs[i]
		from := ref.Old
		if from == "" {
			from = r.refs[head]
		}
		if err := r.checkNames(ref, from); err != nil {
			return fmt.Errorf("%s: %w", ref.Name, err)
		}
	}
	// Check each new commit by itself: a checkout, a rebase or a revert writes even
	// files that one commit adds and the next removes.
	for _, id := range r.commits {
		if err := r.checkCommit(id); err != nil {
			return fmt.Errorf("commit %s: %w", id, err)
		}
	}
	for _, ref := range r.imp.Refs {
		if ref.Name == head {
			return r.follow(ref)
		}
	}
	return nil
}

// head returns the branch that the user's HEAD names, or "".
func (r *reader) head() (string, error) {
	data, err := readFile(r.source.Base, path.Join(r.source.Dir, "HEAD"), 4096)
	if err != nil {
		return "", err
	}
	name, _ := strings.CutPrefix(strings.TrimSpace(string(data)), "ref: ")
	return strings.TrimSpace(name), nil
}

// object reads one of the user's objects or a new one.
func (r *reader) object(id string) (kind string, content []byte, err error) {
	kind, content, err = r.base.read(id)
	if errors.Is(err, errMissing) {
		return r.after.read(id)
	}
	return kind, content, err
}

// need collects an object and everything that it refers to, unless the user's folder
// has it.
func (r *reader) need(id string) error {
	todo := []string{id}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if r.seen[id] {
			continue
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if r.seen[id] = true; r.base.has(id) {
			continue
		}
		kind, content, err := r.after.read(id)
		if err != nil {
			return err
		}
		below, err := children(kind, content, r.size)
		if err != nil {
			return fmt.Errorf("object %s: %w", id, err)
		}
		todo = append(todo, below...)
		if kind == "commit" {
			r.commits = append(r.commits, id)
		}
		data := encode(kind, content)
		r.imp.Objects[r.base.loose(id)] = data
		if r.bytes += int64(len(data)); r.bytes > maxImported || len(r.imp.Objects) > maxObjects {
			return errors.New("there are too many new objects")
		}
	}
	return nil
}

// tree returns the tree of a commit or of a tag's target; empty: it has none.
func (r *reader) tree(id string) (string, error) {
	for range 10 {
		kind, content, err := r.object(id)
		if err != nil {
			return "", err
		}
		switch kind {
		case "tree":
			return id, nil
		case "blob":
			return "", nil
		}
		h, err := parseHeaders(kind, content, r.size)
		if err != nil {
			return "", err
		}
		if kind == "commit" {
			return h.tree, nil
		}
		id = h.needs[0]
	}
	return "", errors.New("too many tags on each other")
}

// checkNames refuses a commit that changes a protected file: the next checkout
// would write it. It lists the files that the reference changes.
func (r *reader) checkNames(ref *Ref, old string) error {
	to, err := r.tree(ref.New)
	if err != nil || to == "" {
		return err
	}
	from := ""
	if old != "" {
		if from, err = r.tree(old); err != nil {
			return err
		}
	}
	if err := r.diff([]string{from}, to, "", 0); err != nil {
		return err
	}
	return r.list(ref, from, to, "", 0)
}

// checkCommit refuses a commit with a protected file that differs from all its
// parents'.
func (r *reader) checkCommit(id string) error {
	_, content, err := r.object(id)
	if err != nil {
		return err
	}
	h, err := parseHeaders("commit", content, r.size)
	if err != nil {
		return err
	}
	var from []string
	for _, parent := range h.needs {
		if parent == h.tree {
			continue
		}
		tree, err := r.tree(parent)
		if err != nil {
			return err
		}
		from = append(from, tree)
	}
	if len(from) == 0 {
		from = []string{""}
	}
	return r.diff(from, h.tree, "", 0)
}

func (r *reader) entries(tree string) (map[string]treeEntry, error) {
	entries := map[string]treeEntry{}
	if tree == "" {
		return entries, nil
	}
	kind, content, err := r.object(tree)
	if err != nil {
		return nil, err
	}
	if kind != "tree" {
		return nil, fmt.Errorf("object %s is not a tree", tree)
	}
	list, err := parseTree(content, r.size)
	for _, e := range list {
		entries[e.name] = e
	}
	return entries, err
}

// diff refuses a tree with a protected file that differs from that in all the other
// trees.
func (r *reader) diff(from []string, to, dir string, depth int) error {
	if slices.Contains(from, to) {
		return nil
	}
	if depth > maxTreeDepth {
		return errors.New("its folders are too deep")
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	now, err := r.entries(to)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for n := range now {
		names[n] = true
	}
	var old []map[string]treeEntry
	for _, tree := range from {
		entries, err := r.entries(tree)
		if err != nil {
			return err
		}
		for n := range entries {
			names[n] = true
		}
		old = append(old, entries)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := r.diffName(old, now[name], name, path.Join(dir, name), depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) diffName(old []map[string]treeEntry, is treeEntry, name, at string, depth int) error {
	var trees []string // below the name
	folders, same := is.mode == modeTree, false
	file := is // without a folder
	to := ""
	if folders {
		to, file = is.id, treeEntry{}
	}
	for _, entries := range old {
		was := entries[name]
		if was == is {
			return nil
		}
		tree := ""
		if was.mode == modeTree {
			folders, tree, was = true, was.id, treeEntry{}
		}
		trees = append(trees, tree)
		same = same || was == file
	}
	if folders {
		if err := r.diff(trees, to, at, depth+1); err != nil {
			return err
		}
	}
	if same {
		return nil
	}
	if why := r.source.Protected(at); why != "" && !r.users(at, file) {
		return fmt.Errorf("a commit changes %q, which is protected: %s", at, why)
	}
	if file.mode != modeLink || r.source.Link == nil {
		return nil
	}
	_, target, err := r.object(file.id)
	if err != nil {
		return err
	}
	if why := r.source.Link(at, string(target)); why != "" {
		return fmt.Errorf("a commit has the link %q: %s", at, why)
	}
	return nil
}

// users reports whether the user's own file matches the entry.
func (r *reader) users(at string, e treeEntry) bool {
	if r.source.File == nil || e.mode != modeFile && e.mode != modeExec {
		return false
	}
	f, err := r.source.File(at)
	if err != nil {
		return false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxObject+1))
	return err == nil && len(data) <= maxObject && name(r.size, "blob", data) == e.id
}

// follow makes the new index for a HEAD whose branch moves.
func (r *reader) follow(ref Ref) error {
	data, err := readFile(r.source.Base, r.imp.IndexPath, maxRefFile)
	x := &index{size: r.size}
	if err == nil {
		x, err = parseIndex(data, r.size)
	} else if errors.Is(err, fs.ErrNotExist) && ref.Old == "" {
		err = nil // there may be none before the first commit
	}
	if err != nil {
		return err
	}
	old, now := map[string]treeEntry{}, map[string]treeEntry{}
	if ref.Old != "" {
		tree, err := r.tree(ref.Old)
		if err == nil {
			err = r.flatten(tree, "", old, 0)
		}
		if err != nil {
			return err
		}
	}
	tree, err := r.tree(ref.New)
	if err == nil {
		err = r.flatten(tree, "", now, 0)
	}
	if err != nil {
		return err
	}
	if ref.Old == "" { // the staged files equal the first commit
		for _, e := range x.entries {
			if is, ok := now[e.path]; ok && is.id == e.id {
				old[e.path] = is
			}
		}
	}
	if err := x.follow(old, now); err != nil {
		return err
	}
	r.imp.Index = x.encode()
	return nil
}

// flatten adds the files of a tree under their full paths.
func (r *reader) flatten(tree, dir string, all map[string]treeEntry, depth int) error {
	if depth > maxTreeDepth {
		return errors.New("its folders are too deep")
	}
	entries, err := r.entries(tree)
	if err != nil {
		return err
	}
	for name, e := range entries {
		at := path.Join(dir, name)
		if e.mode == modeTree {
			if err := r.flatten(e.id, at, all, depth+1); err != nil {
				return err
			}
			continue
		}
		all[at] = e
	}
	return nil
}

package gitdata

import (
	"errors"
	"maps"
	"path"
	"slices"
)

// maxFiles bounds how many files of a reference are listed, and maxListed the bytes
// of all references' file names.
const (
	maxFiles  = 200
	maxListed = 256 << 10
)

// list records which files differ between two trees, one of which may be "".
func (r *reader) list(ref *Ref, from, to, dir string, depth int) error {
	if from == to {
		return nil
	}
	if depth > maxTreeDepth {
		return errors.New("its trees are too deep")
	}
	if err := r.ctx.Err(); err != nil {
		return err
	}
	old, err := r.entries(from)
	if err != nil {
		return err
	}
	now, err := r.entries(to)
	if err != nil {
		return err
	}
	names := maps.Clone(old)
	maps.Copy(names, now)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is, at := old[name], now[name], path.Join(dir, name)
		trees := [2]string{}
		if was.mode == modeTree {
			trees[0], was = was.id, treeEntry{}
		}
		if is.mode == modeTree {
			trees[1], is = is.id, treeEntry{}
		}
		if err := r.list(ref, trees[0], trees[1], at, depth+1); err != nil {
			return err
		}
		switch {
		case was == is:
		case was.name == "":
			r.add(ref, "A "+at)
		case is.name == "":
			r.add(ref, "D "+at)
		default:
			r.add(ref, "M "+at)
		}
	}
	return nil
}

func (r *reader) add(ref *Ref, file string) {
	if len(ref.Files) >= maxFiles || r.listed+len(file) > maxListed {
		ref.More++
		return
	}
	r.listed += len(file)
	ref.Files = append(ref.Files, file)
}

package sources

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// A Bundle is a pack of one's own, to be published: its files as they would come in
// elsewhere.
type Bundle struct {
	Pack Pack        // under the name that it says itself
	Tree *stage.Tree // its files
	Dir  string      // where they are; until Close
}

// NewBundle reads the pack at a path of a source. What could not come in elsewhere is
// not published.
func NewBundle(ctx context.Context, s Snapshot, under string) (_ *Bundle, err error) {
	dir, err := os.MkdirTemp("", "packs-publish-")
	if err != nil {
		return nil, err
	}
	b := &Bundle{Dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	st := stage.NewLoose(root, stage.Limits{})
	if err := Fill(ctx, s, under, st); err != nil {
		return nil, err
	}
	if b.Tree, err = st.Finish(); err != nil {
		return nil, err
	}
	found, err := packsIn(ctx, dir, under)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(found, func(p Pack) bool { return p.Path == under })
	if i < 0 {
		return nil, fmt.Errorf("there is no pack at %q", path.Join(s.Resolved(), under))
	}
	switch b.Pack = found[i]; {
	case b.Pack.Name == "":
		return nil, fmt.Errorf("the pack at %q has no name", path.Join(s.Resolved(), under))
	case !b.Pack.Valid:
		return nil, fmt.Errorf("the pack at %q has problems: %q", path.Join(s.Resolved(), under), b.Pack.Problems)
	}
	return b, nil
}

// Close removes its files.
func (b *Bundle) Close() error { return os.RemoveAll(b.Dir) }

// single returns the bytes of SKILL.md, if that is all there is.
func (b *Bundle) single() ([]byte, error) {
	if len(b.Tree.Files) != 1 || b.Tree.Files[0].Path != "SKILL.md" || b.Tree.Files[0].Target != "" || b.Tree.Files[0].Exec {
		return nil, nil
	}
	return os.ReadFile(filepath.Join(b.Dir, "SKILL.md"))
}

// layer returns the pack as one file: a tar.gz in which its folder is the root. The same
// files give the same bytes.
func (b *Bundle) layer() ([]byte, error) {
	root, err := os.OpenRoot(b.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return writeLayer(root, b.Tree)
}

// writeLayer writes a tree without what differs from one time or machine to the next.
func writeLayer(root *os.Root, tree *stage.Tree) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	t := tar.NewWriter(z)
	for _, f := range tree.Files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Size: f.Size, Mode: 0o644}
		switch {
		case f.Target != "":
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, f.Target, 0o777
		case f.Exec:
			h.Mode = 0o755
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("%q: %w", f.Path, err)
		}
		if f.Target != "" {
			continue
		}
		in, err := root.Open(f.Path)
		if err != nil {
			return nil, err
		}
		_, err = io.Copy(t, in)
		if err := errors.Join(err, in.Close()); err != nil {
			return nil, fmt.Errorf("%q: %w", f.Path, err)
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

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
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// A bundle is a pack as one file, to be published: a tar.gz in which the pack's folder
// is the root.
type bundle struct {
	pack   Pack
	tree   *stage.Tree
	single []byte // the bytes of SKILL.md, if that is all there is
	tgz    []byte
}

// newBundle reads the pack at a path of a source. What could not come in elsewhere
// is not published. The same files give the same bytes.
func newBundle(ctx context.Context, s Snapshot, under string) (_ *bundle, err error) {
	dir, err := os.MkdirTemp("", "packs-publish-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	st := stage.NewLoose(root, stage.Limits{})
	if err := Fill(ctx, s, under, st); err != nil {
		return nil, err
	}
	b := &bundle{}
	if b.tree, err = st.Finish(); err != nil {
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
	switch b.pack = found[i]; {
	case b.pack.Name == "":
		return nil, fmt.Errorf("the pack at %q has no name", path.Join(s.Resolved(), under))
	case !b.pack.Valid:
		return nil, fmt.Errorf("the pack at %q has problems: %q", path.Join(s.Resolved(), under), b.pack.Problems)
	}
	if len(b.tree.Files) == 1 && b.tree.Files[0].Path == "SKILL.md" {
		if b.single, err = root.ReadFile("SKILL.md"); err != nil {
			return nil, err
		}
	}
	b.tgz, err = writeLayer(root, b.tree)
	return b, err
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

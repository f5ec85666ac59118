package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// Write returns a tree as one file: a tar.gz in which its folder, dir, is the root. The
// same files give the same bytes.
func Write(dir string, tree *stage.Tree) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return write(root, tree)
}

// write writes a tree without what differs from one time or machine to the next.
func write(root *os.Root, tree *stage.Tree) ([]byte, error) {
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

package sources

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// A Bundle is a pack to be published: its files as another user would receive them.
type Bundle struct {
	Pack Pack        // under its own name
	Tree *stage.Tree // its files
	Dir  string      // where the files are; until Close
}

// NewBundle reads the pack at a path of a source. It refuses a pack that others could
// not add.
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
	st := stage.New(stage.Into{Root: root}, stage.Limits{})
	if err := Fill(ctx, s, under, st); err != nil {
		return nil, err
	}
	if b.Tree, err = st.Finish(); err != nil {
		return nil, err
	}
	found, err := packsIn(ctx, packs.Root{Dir: dir}, under)
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

// Close removes the files.
func (b *Bundle) Close() error { return os.RemoveAll(b.Dir) }

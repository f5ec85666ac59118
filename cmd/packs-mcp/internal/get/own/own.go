// Package own reads and scans a pack that a person publishes, as add will for those who get
// it.
//
// It publishes nothing, signs nothing and asks nobody; package get does.
package own

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/get/shown"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/scan"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/archive"
	"github.com/packs-mcp/packs-mcp/internal/sources/change"
)

// Open opens a local folder or archive, whatever its name looks like.
func Open(at string) (sources.Snapshot, error) {
	info, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no folder or file %q", at)
	case err != nil:
		return nil, err
	case info.IsDir():
		return sources.OpenFolder(at)
	}
	return archive.Open(at, "")
}

// A Pack is one of the person's packs, as add would get it.
type Pack struct {
	*sources.Bundle
	Found []findings.Finding // of the scan

	tools []change.Tool
}

// Read reads a pack in the way that add would, and scans it. hashes are those of
// findings that the person accepts. Its Close removes what was read.
func Read(ctx context.Context, snap sources.Snapshot, pack sources.Pack, hashes []string) (_ *Pack, err error) {
	o := &Pack{}
	if o.Bundle, err = sources.NewBundle(ctx, snap, pack.Path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Close())
		}
	}()
	now, err := change.Read(ctx, o.Dir)
	if err != nil {
		return nil, err
	}
	all, err := change.Between(nil, now)
	if err != nil {
		return nil, err
	}
	o.tools = all.Tools
	reports, err := scan.Folder(ctx, o.Dir)
	if err != nil {
		return nil, err
	}
	for _, r := range reports {
		o.Found = append(o.Found, r.Findings...)
	}
	findings.Accept(o.Found, hashes)
	return o, nil
}

// Show prints what others would get of the pack.
func (o *Pack) Show(w io.Writer) {
	fmt.Fprintf(w, "  files    %s, %d bytes, %s\n", cli.Counted(len(o.Tree.Files), "file", "files"), o.Tree.Bytes, o.Tree.Digest())
	for i, f := range o.Tree.Files {
		if i == shown.Most {
			fmt.Fprintf(w, "           and %d more\n", len(o.Tree.Files)-shown.Most)
			break
		}
		fmt.Fprintf(w, "           %s\n", safetext.Line(f.Path))
	}
	shown.Tools(w, o.tools, false)
	shown.Findings(w, o.Found)
}

package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// A Batch is a folder of the store for packs that come in together. It goes when it and
// the packs in it are closed. What a killed process left, [Store.Recover] removes.
type Batch struct {
	temp  *temp.Folder
	packs int          // so far
	open  atomic.Int64 // packs that are not closed, and the batch
}

// NewBatch makes a batch, for use by one goroutine. Packs may be staged in it from
// any.
func (s *Store) NewBatch() (*Batch, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	if err := s.openDisk(); err != nil {
		return nil, err
	}
	folder, err := temp.New(s.in("tmp"))
	if err != nil {
		return nil, fmt.Errorf("making a folder for what comes in: %w", err)
	}
	b := &Batch{temp: folder}
	b.open.Store(1)
	return b, nil
}

// Close ends the batch; the packs in it stay until they are closed.
func (b *Batch) Close() error {
	if b.open.Add(-1) > 0 {
		return nil
	}
	return b.temp.Remove()
}

// A Staged pack has come in and has no place yet.
type Staged struct {
	Tree *stage.Tree
	Dir  string // of its files, absolute; until Close
	// Memory has the same files at Dir, read once. Set it to nil when it is no longer
	// needed.
	Memory *packfs.Memory

	batch *Batch
}

// stagedName begins the name of a staged pack's folder in that of its batch. A number
// follows.
const stagedName = "pack"

// isStagedName reports whether a folder of a batch can be that of a staged pack.
func isStagedName(name string) bool {
	number, ok := strings.CutPrefix(name, stagedName)
	return ok && len(number) <= 9 && strings.Trim(number, "0123456789") == ""
}

// Stage fills a folder of the batch with what fill adds. If fill fails, nothing is left
// behind. The files become durable when the pack gets its place; before that, a system
// crash may lose them.
func (b *Batch) Stage(limits stage.Limits, fill func(*stage.Stage) error) (_ *Staged, err error) {
	b.packs++
	out := &Staged{Dir: filepath.Join(b.temp.Path, stagedName+strconv.Itoa(b.packs)), batch: b}
	b.open.Add(1)
	defer func() {
		if err != nil {
			err = errors.Join(err, out.Close())
		}
	}()
	if err := os.Mkdir(out.Dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(out.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	out.Memory = packfs.NewMemory(out.Dir)
	st := stage.New(stage.Into{Root: root, Memory: out.Memory, Durable: !late}, limits)
	if err := fill(st); err != nil {
		return nil, err
	}
	out.Tree, err = st.Finish()
	return out, err
}

// Files returns the pack's files, as if its folder had been read.
func (s *Staged) Files() *packfs.Tree {
	var files []packfs.TreeFile
	links := map[string]string{}
	for _, f := range s.Tree.Files {
		if f.Digest == "" {
			links[f.Path] = f.Target
			continue
		}
		files = append(files, packfs.TreeFile{Path: f.Path, Size: f.Size, Digest: "sha256:" + f.Digest, Exec: f.Exec})
	}
	return packfs.NewTree(s.Tree.Digest(), files, links)
}

// Close removes the files of a pack that was not placed.
func (s *Staged) Close() error { return errors.Join(os.RemoveAll(s.Dir), s.batch.Close()) }

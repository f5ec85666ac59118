package chains

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// The files of an export.
const (
	aboutFile       = "export.json"
	checkpointsFile = "checkpoints.jsonl"
	chainsDir       = "chains"
	chainEnding     = ".jsonl"
)

// about describes an export.
type about struct {
	Format int       `json:"format"` // 1
	Time   time.Time `json:"time"`
	Keys   []string  `json:"keys"` // public keys of the exporter
}

// Exported describes what [Export] wrote.
type Exported struct {
	Chains      int
	Checkpoints int
	Last        string // the hash of the last checkpoint; "" if there is none
}

// errPruned means that the beginning of the log was removed while it was read.
var errPruned = errors.New("the log was pruned meanwhile; export it again")

// Export writes the log in a store, unchanged, to a folder, which must be empty or
// missing: export.json, checkpoints.jsonl, and chains/NAME.jsonl for each chain.
func Export(ctx context.Context, s store.Store, keys Keys, dir string, now time.Time) (Exported, error) {
	out, err := export(ctx, s, keys, dir, now)
	if err != nil {
		return Exported{}, fmt.Errorf("exporting the audit log to %q: %w", dir, err)
	}
	return out, nil
}

func export(ctx context.Context, s store.Store, keys Keys, dir string, now time.Time) (out Exported, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Exported{}, err
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return Exported{}, err
	}
	if len(there) > 0 {
		return Exported{}, fs.ErrExist
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Exported{}, err
	}
	defer root.Close()
	// Checkpoints come first. Chains only grow, so they then have all entries that the
	// checkpoints name.
	var at uint64
	err = write(root, checkpointsFile, func(w *bufio.Writer) error {
		return s.Read(ctx, checkpoints, 0, func(pos uint64, block []byte) error {
			at, out.Checkpoints, out.Last = pos, out.Checkpoints+1, hashOf(block[:max(0, len(block)-1)])
			_, err := w.Write(block)
			return err
		})
	})
	if err != nil {
		return Exported{}, err
	}
	all, err := s.Chains(ctx)
	if err != nil {
		return Exported{}, err
	}
	if err := root.Mkdir(chainsDir, 0o700); err != nil {
		return Exported{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == checkpoints {
			continue
		}
		out.Chains++
		err := write(root, filepath.Join(chainsDir, name+chainEnding), func(w *bufio.Writer) error {
			return s.Read(ctx, name, 0, func(_ uint64, block []byte) error { _, err := w.Write(block); return err })
		})
		if err != nil {
			return Exported{}, err
		}
	}
	err = s.Read(ctx, checkpoints, at, func(_ uint64, block []byte) error {
		var c checkpoint
		if err := json.Unmarshal(block, &c); err == nil && c.Whole {
			return errPruned
		}
		return nil
	})
	if err != nil {
		return Exported{}, err
	}
	text, err := strictjson.Encode(about{Format: 1, Time: now.UTC(), Keys: keys.Public()})
	if err != nil {
		return Exported{}, err
	}
	return out, write(root, aboutFile, func(w *bufio.Writer) error { _, err := w.Write(append(text, '\n')); return err })
}

// write makes a file and syncs it.
func write(root *os.Root, name string, fill func(*bufio.Writer) error) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 64<<10)
	err = fill(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

package program

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/file"
)

// headSize is how much of a program is read for its first line; the kernel reads 256
// bytes.
const headSize = 256

// alwaysRead is the size of the largest file whose bytes are read each time, unless
// it is the system's own. A stamp does not show writes through a mapping that was
// written to before. Nearly all programs and interpreters are smaller; the largest
// take about as long as their own start.
const alwaysRead = 64 << 20 // 64 MiB

// maxDigests bounds the memory of a digestCache: far more than the programs
// that one server starts.
const maxDigests = 512

// settled is how long ago a file must have changed for its digest to be remembered.
// Otherwise a change within the same clock step would leave the same stamp; some file
// systems have steps of two seconds.
const settled = 3 * time.Second

var errChanging = errors.New("its bytes changed while they were read")

// A digestCache computes digests of files, and remembers those of files above 64 MiB,
// and of files that only root can change (see [systemOwned]), as long as their stamp
// is the same. For these, it misses writes through a shared mapping that was written
// to before the digest, and writes after the system's clock was set back. The zero
// value is ready. Safe for concurrent use.
type digestCache struct {
	mu    sync.Mutex
	known map[string]digestEntry // path → digest of the file with that stamp; guarded by mu
}

type digestEntry struct {
	stamp  paths.Stamp
	digest string
	head   []byte
}

// file returns the SHA-256 of the regular file at path in hex, and its first
// bytes, at most headSize.
func (c *digestCache) file(path string) (digest string, head []byte, err error) {
	e, err := c.entry(path)
	return e.digest, e.head, err
}

// entry does the same as file, and adds the stamp that the file had when it was read.
func (c *digestCache) entry(path string) (digestEntry, error) {
	none := digestEntry{}
	f, err := os.OpenFile(path, os.O_RDONLY|paths.Nonblock, 0) // opening a FIFO would block
	if err != nil {
		return none, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return none, err
	}
	if !info.Mode().IsRegular() {
		return none, errors.New("not a regular file")
	}
	before := paths.StampOf(info)
	keep := info.Size() > alwaysRead || file.SystemOwned(path)
	if keep {
		c.mu.Lock()
		e, ok := c.known[path]
		c.mu.Unlock()
		if ok && e.stamp == before {
			return e, nil
		}
	}

	hash := sha256.New()
	first := make([]byte, headSize)
	n, err := io.ReadFull(f, first)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return none, err
	}
	first = first[:n]
	if _, err := io.Copy(hash, io.MultiReader(bytes.NewReader(first), f)); err != nil {
		return none, err
	}
	if info, err = f.Stat(); err != nil {
		return none, err
	} else if paths.StampOf(info) != before {
		return none, errChanging
	}
	e := digestEntry{before, hex.EncodeToString(hash.Sum(nil)), first}
	if keep && before.Exact && time.Since(before.Changed) > settled {
		c.mu.Lock()
		if c.known == nil || len(c.known) >= maxDigests {
			c.known = map[string]digestEntry{}
		}
		c.known[path] = e
		c.mu.Unlock()
	}
	return e, nil
}

// Package archive reads packs from tar, tar.gz and zip files, and writes packs as tar.gz.
//
// It refuses a file that two programs could read differently, and bounds the unpacked
// size. Package stage decides which entries may come in. It fetches nothing.
package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
	"github.com/packs-mcp/packs-mcp/internal/sources/userfile"
)

// MaxSize is the largest archive that is read, in bytes of the file.
const MaxSize = 256 << 20

// MaxSignature is the largest signature beside one.
const MaxSignature = 1 << 20

// Bounds of one archive, whichever part is wanted.
const (
	maxUnpacked = 1 << 30 // bytes of the contents
	maxEntries  = 100_000
)

// An Archive is a file with a tree in it: tar, tar.gz or zip, told by its first bytes.
type Archive struct {
	file Input
	size int64
	at   string
	sum  string
	// beside returns the content of the file whose name has the suffix added, or nothing;
	// nil: there are none.
	beside func(ctx context.Context, suffix string) ([]byte, error)
}

// An Input is an open file.
type Input interface {
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}

// Open opens a local archive. sum is the required SHA-256 as 64 hexadecimal digits, or
// "".
func Open(name, sum string) (*Archive, error) {
	f, err := userfile.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening the archive: %w", err)
	}
	a, err := New(f, name, sum)
	if err != nil {
		return nil, err
	}
	a.beside = func(_ context.Context, suffix string) ([]byte, error) { return readBeside(name + suffix) }
	return a, nil
}

func readBeside(name string) ([]byte, error) {
	f, err := userfile.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxSignature+1))
	if err == nil && len(data) > MaxSignature {
		err = fmt.Errorf("%q: %w: a signature has at most %d KiB", name, stage.ErrTooLarge, MaxSignature>>10)
	}
	return data, errors.Join(err, f.Close())
}

// Beside sets how the archive's signatures are found: get returns the file at its
// address with the suffix added, or nothing.
func (a *Archive) Beside(get func(ctx context.Context, suffix string) ([]byte, error)) {
	a.beside = get
}

// New reads the archive in a file that came from an address. Closing the archive
// closes the file; if New returns an error, it has closed the file. sum is the
// required SHA-256 as 64 hexadecimal digits, or "".
func New(f Input, at, sum string) (_ *Archive, err error) {
	a := &Archive{file: f, at: at}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%q is not a regular file", at)
	case info.Size() > MaxSize:
		return nil, fmt.Errorf("%q has %d MiB, and %d is the limit", at, info.Size()>>20, MaxSize>>20)
	}
	a.size = info.Size()
	h := sha256.New()
	n, err := io.Copy(h, io.NewSectionReader(f, 0, MaxSize))
	if err != nil {
		return nil, err
	}
	if n != a.size {
		return nil, fmt.Errorf("%q changed while it was read", at)
	}
	a.sum = hex.EncodeToString(h.Sum(nil))
	if sum != "" && a.sum != sum {
		return nil, &sources.PinError{At: at, Want: "sha256:" + sum, Got: "sha256:" + a.sum}
	}
	return a, nil
}

func (a *Archive) Resolved() string { return a.at }

func (a *Archive) Pin() string { return "sha256:" + a.sum }

// Signer returns nil: signatures are detached; see Proofs.
func (a *Archive) Signer() (*lock.Signature, error) { return nil, nil }

// Suffixes of the names of signatures beside an archive.
const (
	SSHSuffix      = ".sig"
	SigstoreSuffix = ".sigstore.json"
)

// Proofs implements [sources.Bundled]: the SSH signature in NAME.sig, and the Sigstore
// bundle in NAME.sigstore.json.
func (a *Archive) Proofs(ctx context.Context) ([]sources.Proof, error) {
	if a.beside == nil {
		return nil, nil
	}
	var all []sources.Proof
	sig, err := a.beside(ctx, SSHSuffix)
	if err == nil && sig != nil {
		var data []byte
		if data, err = io.ReadAll(io.NewSectionReader(a.file, 0, a.size)); err == nil {
			all = append(all, sources.SSHProof(sig, data))
		}
	}
	if err != nil {
		return nil, err
	}
	bundle, err := a.beside(ctx, SigstoreSuffix)
	if err == nil && bundle != nil {
		all = append(all, sources.Proof{Bundle: bundle})
	}
	return all, err
}

func (a *Archive) Close() error { return a.file.Close() }

func (a *Archive) Walk(ctx context.Context, under string, do func(stage.Entry, io.Reader) error) error {
	head := make([]byte, 4)
	if _, err := a.file.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	each := func(e stage.Entry, r io.Reader) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		e.Path = strings.TrimPrefix(e.Path, "./")
		name := strings.TrimSuffix(e.Path, "/")
		if e.Kind == stage.Folder && (name == "" || name == ".") {
			return nil // the folder that contains everything
		}
		rel, ok := sources.Below(e.Path, under)
		if !ok || e.Kind == stage.Folder && rel == "" {
			if e.Kind != stage.Folder && (name == under || strings.HasPrefix(under, name+"/")) {
				return &stage.RefusedError{Path: e.Path, Reason: errors.New("it has the place of a folder, and is none")}
			}
			return nil
		}
		e.Path = rel
		return do(e, r)
	}
	var err error
	all := io.NewSectionReader(a.file, 0, a.size)
	switch {
	case bytes.Equal(head, []byte("PK\x03\x04")):
		err = walkZip(all, each)
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		err = walkGzip(all, each)
	default:
		err = walkTar(all, each)
	}
	if err != nil {
		return fmt.Errorf("unpacking %q: %w", a.at, err)
	}
	return nil
}

func walkGzip(r io.Reader, do func(stage.Entry, io.Reader) error) error {
	b := bufio.NewReader(r)
	z, err := gzip.NewReader(b)
	if err != nil {
		return err
	}
	z.Multistream(false)
	if err := walkTar(z, do); err != nil {
		return err
	}
	if _, err := b.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.New("something comes after its end")
	}
	return nil
}

var errUnpacked = fmt.Errorf("%w: unpacked, it has more than %d MiB", stage.ErrTooLarge, maxUnpacked>>20)

// bounded fails reads beyond the bound on unpacked bytes.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errUnpacked
	}
	return n, err
}

var errEnd = errors.New("its end is not where it should be")

func walkTar(r io.Reader, do func(stage.Entry, io.Reader) error) error {
	in := &bounded{r, maxUnpacked}
	read := func() int64 { return maxUnpacked - in.left }
	t := tar.NewReader(in)
	end := int64(0) // of the last entry
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if n >= maxEntries {
			return fmt.Errorf("%w: it has more than %d entries", stage.ErrTooLarge, maxEntries)
		}
		end = read()
		if h.Typeflag == tar.TypeXGlobalHeader {
			if err := checkGlobal(h); err != nil {
				return err
			}
			continue
		}
		if h.Typeflag == tar.TypeReg {
			end += (h.Size + 511) / 512 * 512
		}
		if err := do(tarEntry(h), t); err != nil {
			return err
		}
	}
	// The end is two blocks of zeros, right after the last entry. The rest must be zeros,
	// too.
	if read() != end+1024 {
		return errEnd
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := in.Read(buf)
		if len(bytes.Trim(buf[:n], "\x00")) > 0 {
			return errors.New("something comes after its end")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// checkGlobal refuses a global header with anything except git's comment, since not
// all programs obey it.
func checkGlobal(h *tar.Header) error {
	for key := range h.PAXRecords {
		if key != "comment" {
			return &stage.RefusedError{Path: h.Name, Reason: fmt.Errorf("it says %q of all entries, which not all programs heed", key)}
		}
	}
	return nil
}

// oddTar returns why programs could disagree about an entry, or "".
func oddTar(h *tar.Header) string {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return "a file with holes (sparse)"
		}
		if key == "size" {
			return "of a size that not all programs read"
		}
	}
	if h.Typeflag != tar.TypeReg && h.Size != 0 {
		return "not a file, and has bytes"
	}
	return ""
}

func tarEntry(h *tar.Header) stage.Entry {
	e := stage.Entry{Path: h.Name, Kind: stage.Other}
	if e.Target = oddTar(h); e.Target != "" {
		return e
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return stage.FileEntry(h.Name, h.FileInfo().Mode())
	case tar.TypeDir:
		e.Kind = stage.Folder
	case tar.TypeSymlink:
		e.Kind, e.Target = stage.Link, h.Linkname
	case tar.TypeLink:
		e.Target = "a second name of another file (hard link)"
	case tar.TypeChar, tar.TypeBlock:
		e.Target = stage.Special(fs.ModeDevice)
	case tar.TypeFifo:
		e.Target = stage.Special(fs.ModeNamedPipe)
	case tar.TypeGNUSparse:
		e.Target = "a file with holes (sparse)"
	}
	return e
}

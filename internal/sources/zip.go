package sources

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// The sizes and signatures of what a zip file is made of (APPNOTE 4.3).
const (
	zipLocal      = 0x04034b50
	zipLocalSize  = 30
	zipDescriptor = 0x08074b50
	zipEnd        = 0x06054b50
	zipEndSize    = 22
)

// errZip is for a file that two programs could read differently.
var errZip = errors.New("its parts do not follow each other as they should: programs could disagree about what is in it")

func walkZip(all *io.SectionReader, do func(stage.Entry, io.Reader) error) error {
	z, err := zip.NewReader(all, all.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // which the stage refuses by name
		return err
	}
	if len(z.File) > maxEntries {
		return fmt.Errorf("%w: it has more than %d entries", stage.ErrTooLarge, maxEntries)
	}
	if err := checkZip(all, z); err != nil {
		return err
	}
	left := int64(maxUnpacked)
	for _, f := range z.File {
		if err := zipEntry(f, &left, do); err != nil {
			return err
		}
	}
	return nil
}

func zipEntry(f *zip.File, left *int64, do func(stage.Entry, io.Reader) error) error {
	mode := f.Mode()
	switch {
	case f.Flags&1 != 0:
		return do(stage.Entry{Path: f.Name, Kind: stage.Other, Target: "encrypted"}, nil)
	case mode.IsDir():
		return do(stage.Entry{Path: f.Name, Kind: stage.Folder}, nil)
	case mode&fs.ModeSymlink == 0 && !mode.IsRegular():
		return do(stage.Entry{Path: f.Name, Kind: stage.Other, Target: special(mode)}, nil)
	}
	r, err := f.Open()
	if err != nil {
		return fmt.Errorf("%q: %w", f.Name, err)
	}
	defer r.Close()
	in := &bounded{r, *left}
	defer func() { *left = in.left }()
	if mode&fs.ModeSymlink != 0 {
		target, err := io.ReadAll(io.LimitReader(in, 4096))
		if err != nil {
			return fmt.Errorf("%q: %w", f.Name, err)
		}
		return do(stage.Entry{Path: f.Name, Kind: stage.Link, Target: string(target)}, nil)
	}
	return do(regular(f.Name, mode), in)
}

// checkZip refuses a file whose two lists, the one at its end and the headers before
// each file, do not say the same, or with bytes that neither of them accounts for.
func checkZip(all *io.SectionReader, z *zip.Reader) error {
	comment := int64(len(z.Comment))
	end := make([]byte, zipEndSize)
	if _, err := all.ReadAt(end, all.Size()-zipEndSize-comment); err != nil || binary.LittleEndian.Uint32(end) != zipEnd {
		return errZip
	}
	list := int64(binary.LittleEndian.Uint32(end[16:]))
	if list+int64(binary.LittleEndian.Uint32(end[12:])) != all.Size()-zipEndSize-comment || int(binary.LittleEndian.Uint16(end[10:])) != len(z.File) {
		return errZip
	}
	byStart := make(map[int64]*zip.File, len(z.File)) // :: where the bytes of a file begin
	for _, f := range z.File {
		at, err := f.DataOffset()
		if err != nil {
			return err
		}
		if byStart[at] != nil {
			return errZip
		}
		byStart[at] = f
	}
	at := int64(0)
	for range z.File {
		head := make([]byte, zipLocalSize)
		if _, err := all.ReadAt(head, at); err != nil || binary.LittleEndian.Uint32(head) != zipLocal {
			return errZip
		}
		name := make([]byte, binary.LittleEndian.Uint16(head[26:]))
		if _, err := all.ReadAt(name, at+zipLocalSize); err != nil {
			return errZip
		}
		start := at + zipLocalSize + int64(len(name)) + int64(binary.LittleEndian.Uint16(head[28:]))
		f := byStart[start]
		if f == nil || f.Name != string(name) || f.Method != binary.LittleEndian.Uint16(head[8:]) {
			return errZip
		}
		at = start + int64(f.CompressedSize64)
		if f.Flags&8 != 0 {
			sig := make([]byte, 4)
			if _, err := all.ReadAt(sig, at); err != nil {
				return errZip
			}
			at += 12
			if binary.LittleEndian.Uint32(sig) == zipDescriptor {
				at += 4
			}
		}
	}
	if at != list {
		return errZip
	}
	return nil
}

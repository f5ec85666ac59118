package archive

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// The sizes and signatures of what a zip file is made of (APPNOTE 4.3).
const (
	zipLocal      = 0x04034b50
	zipLocalSize  = 30
	zipListed     = 46
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
	case f.Flags&(1|1<<6|1<<13) != 0:
		return do(stage.Entry{Path: f.Name, Kind: stage.Other, Target: "encrypted"}, nil)
	case mode.IsDir() && (f.UncompressedSize64 != 0 || mode.Type() != fs.ModeDir):
		return do(stage.Entry{Path: f.Name, Kind: stage.Other, Target: "a folder, and something else as well"}, nil)
	case mode.IsDir():
		return do(stage.Entry{Path: f.Name, Kind: stage.Folder}, nil)
	case mode&fs.ModeSymlink == 0 && !mode.IsRegular():
		return do(stage.Entry{Path: f.Name, Kind: stage.Other, Target: stage.Special(mode)}, nil)
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
	return do(stage.FileEntry(f.Name, mode), in)
}

// checkZip refuses a file whose two lists, the one at its end and the headers before
// each file, do not say the same, or with bytes that neither of them accounts for.
func checkZip(all *io.SectionReader, z *zip.Reader) error {
	if strings.Contains(z.Comment, "PK\x05\x06") {
		return errZip
	}
	tail := int64(zipEndSize + len(z.Comment))
	end := make([]byte, zipEndSize)
	if _, err := all.ReadAt(end, all.Size()-tail); err != nil || binary.LittleEndian.Uint32(end) != zipEnd {
		return errZip
	}
	files := len(z.File)
	size, list := int64(binary.LittleEndian.Uint32(end[12:])), int64(binary.LittleEndian.Uint32(end[16:]))
	if list+size != all.Size()-tail || binary.LittleEndian.Uint32(end[4:]) != 0 || // parts of an archive on several disks
		int(binary.LittleEndian.Uint16(end[8:])) != files || int(binary.LittleEndian.Uint16(end[10:])) != files {
		return errZip
	}
	byStart := make(map[int64]*zip.File, files) // :: where the bytes of a file begin
	for _, f := range z.File {
		at, err := f.DataOffset()
		if err != nil {
			return fmt.Errorf("%q: %w", f.Name, err)
		}
		if byStart[at] != nil || !plainExtra(f.Name, f.Extra) {
			return fmt.Errorf("%q: %w", f.Name, errZip)
		}
		byStart[at] = f
		size -= int64(zipListed + len(f.Name) + len(f.Extra) + len(f.Comment))
	}
	at, err := int64(0), error(nil)
	for range z.File {
		if at, err = checkLocal(all, at, byStart); err != nil {
			return err
		}
	}
	if at != list || size != 0 {
		return errZip
	}
	return nil
}

// checkLocal compares the header at an offset with what the list says about that file,
// and returns where the next one begins.
func checkLocal(all *io.SectionReader, at int64, byStart map[int64]*zip.File) (int64, error) {
	head := make([]byte, zipLocalSize)
	if _, err := all.ReadAt(head, at); err != nil || binary.LittleEndian.Uint32(head) != zipLocal {
		return 0, errZip
	}
	name := make([]byte, binary.LittleEndian.Uint16(head[26:]))
	extra := make([]byte, binary.LittleEndian.Uint16(head[28:]))
	start := at + zipLocalSize + int64(len(name)) + int64(len(extra))
	f := byStart[start]
	if f == nil {
		return 0, errZip
	}
	bad := fmt.Errorf("%q: %w", f.Name, errZip)
	if _, err := all.ReadAt(name, at+zipLocalSize); err != nil {
		return 0, bad
	}
	if _, err := all.ReadAt(extra, at+zipLocalSize+int64(len(name))); err != nil {
		return 0, bad
	}
	if f.Name != string(name) || f.Flags != binary.LittleEndian.Uint16(head[6:]) || f.Method != binary.LittleEndian.Uint16(head[8:]) || !plainExtra(f.Name, extra) {
		return 0, bad
	}
	after := start + int64(f.CompressedSize64)
	later := f.Flags&8 != 0 // the sizes come behind the bytes
	if !sizes(f, head[14:]) && !(later && bytes.Equal(head[14:26], make([]byte, 12))) {
		return 0, bad
	}
	if !later {
		return after, nil
	}
	behind := make([]byte, 16)
	if _, err := all.ReadAt(behind, after); err != nil {
		return 0, bad
	}
	switch {
	case binary.LittleEndian.Uint32(behind) == zipDescriptor && sizes(f, behind[4:]):
		return after + 16, nil
	case sizes(f, behind):
		return after + 12, nil
	}
	return 0, bad
}

// sizes reports whether the checksum and the two sizes are those of the list.
func sizes(f *zip.File, b []byte) bool {
	return binary.LittleEndian.Uint32(b) == f.CRC32 && uint64(binary.LittleEndian.Uint32(b[4:])) == f.CompressedSize64 && uint64(binary.LittleEndian.Uint32(b[8:])) == f.UncompressedSize64
}

// The fields that say something that is elsewhere already (APPNOTE 4.5.3, 4.6.9).
const (
	extraZip64 = 0x0001
	extraName  = 0x7075
)

// plainExtra reports whether the extra fields of a file change neither its sizes nor
// its name. An archive of our bounds does not need longer sizes.
func plainExtra(name string, extra []byte) bool {
	for len(extra) >= 4 {
		id, n := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if extra = extra[4:]; n > len(extra) {
			return false
		}
		if id == extraZip64 || id == extraName && (n < 5 || string(extra[5:n]) != name) {
			return false
		}
		extra = extra[n:]
	}
	return true
}

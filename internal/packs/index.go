package packs

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/private"
)

// An Index is a folder of files, one for each root, in which a [Library] keeps
// what it read, so that the next start reads only what changed since. The zero
// value keeps nothing.
//
// What is kept of a directory is which entries it had, and of a document what
// its frontmatter said. Each counts only as long as the directory, or the file,
// has the same device, inode, size, time of modification and time of the
// inode's last change, on a file system of this machine (see [packfs.Local]),
// and had last changed two seconds or more before it was read. Everything else
// is found out anew at each start: ids, what is attached, trust, links, and
// whatever a person approves, which is digested. So a stale index can at worst
// show an old description. It is never asked about anything that has to be safe.
//
// The folder and its files are the user's alone: where others may write, nothing
// is read and nothing is written. A file is replaced whole, so that a killed
// program leaves the one before; a file that is damaged, of another version or
// of another root counts as none; and when one cannot be written, the next start
// reads everything. Several programs may use one Index at once: whatever one of
// them wrote is right for all.
type Index struct {
	Dir string // made when it is not there
	// Version names the program, to the build: frontmatter is read as it reads it.
	Version string
}

const (
	indexMagic = "packs-mcp index 1\n"
	maxIndex   = 256 << 20 // bytes of one file
	// indexLife is how long an index of a root that is never scanned is left.
	indexLife = 30 * 24 * time.Hour
)

// errIndex says that bytes are not an index, or not the one that was asked for.
var errIndex = errors.New("it is not an index of this root by this program")

// file returns the file of a root.
func (x Index) file(dir string) private.File {
	sum := sha256.Sum256([]byte(dir))
	return private.File{
		Path: filepath.Join(x.Dir, "packs-"+hex.EncodeToString(sum[:8])+".index"), What: "the index of packs", Max: maxIndex,
		Guarded: true, // who can put another in its place says what packs are described as
	}
}

// key is what an index is good for.
func (x Index) key(root string, l Limits) string {
	return fmt.Sprintf("%q %q %d %d %d", x.Version, root, l.EntryDoc, l.Frontmatter, l.ToolsFile)
}

// load returns what is kept of a root; nil, and why, when it is nothing.
func (x Index) load(dir string, l Limits) (*memo, error) {
	file := x.file(dir)
	if _, err := file.Stat(); err != nil { // nobody else can have written it
		return nil, err
	}
	f, err := os.Open(file.Path)
	if err != nil {
		return nil, fmt.Errorf("reading the index of packs: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIndex {
		return nil, errIndex
	}
	var text strings.Builder // what is read is what the catalog's texts are parts of
	text.Grow(int(info.Size()))
	if _, err := io.Copy(&text, io.LimitReader(f, info.Size())); err != nil {
		return nil, fmt.Errorf("reading the index of packs: %w", err)
	}
	return decodeIndex(text.String(), x.key(dir, l), dir)
}

// save replaces what is kept of a root.
func (x Index) save(m *memo, l Limits) error {
	file := x.file(m.dir)
	data := encodeIndex(m, x.key(m.dir, l))
	if len(data) > maxIndex {
		return fmt.Errorf("writing the index of packs: it would have %d bytes, and the limit is %d", len(data), maxIndex)
	}
	return file.Lock(func() error { return file.Write(data) })
}

// sweep removes what is kept of roots that nobody scanned for a long time.
func (x Index) sweep(now time.Time) {
	files, err := filepath.Glob(filepath.Join(x.Dir, "packs-*.index*"))
	if err != nil {
		return
	}
	for _, f := range files {
		if info, err := os.Lstat(f); err == nil && now.Sub(info.ModTime()) > indexLife {
			os.Remove(f) // at worst, it is made again
		}
	}
}

// An encoder writes an index.
type encoder struct{ b []byte }

func (e *encoder) number(v uint64) { e.b = binary.AppendUvarint(e.b, v) }

func (e *encoder) text(s string) {
	e.number(uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *encoder) stamp(s packfs.Stamp) { e.b, _ = s.AppendBinary(e.b) } // it cannot fail

func encodeIndex(m *memo, key string) []byte {
	e := &encoder{}
	e.text(key)
	e.node(cmp.Or(m.top, &node{}))
	e.number(uint64(len(m.links)))
	for rel, n := range m.links {
		e.text(rel)
		e.node(n)
	}
	out := append([]byte(indexMagic), le32(checksum(string(e.b)))...)
	return append(out, e.b...)
}

func (e *encoder) node(n *node) {
	e.text(n.name)
	e.stamp(n.stamp)
	var flags uint64
	for i, is := range []bool{n.always, n.cut, n.tools != nil} {
		if is {
			flags |= 1 << i
		}
	}
	e.number(flags)
	e.number(n.state)
	e.number(uint64(len(n.entries)))
	for _, x := range n.entries {
		e.text(x.name)
		e.number(uint64(x.mode))
	}
	if n.tools != nil {
		e.stamp(n.tools.stamp)
		e.number(uint64(len(n.tools.names)))
		for _, name := range n.tools.names {
			e.text(name)
		}
	}
	e.records(n.docs)
	e.number(uint64(len(n.subs)))
	for _, sub := range n.subs {
		e.node(sub)
	}
}

// records writes those that can be relied on.
func (e *encoder) records(all []record) {
	var keep []record
	var docs [][]byte
	for _, r := range all {
		if r.stamp.IsZero() {
			continue
		}
		var doc []byte
		if r.doc != nil {
			doc, _ = r.doc.AppendBinary(nil) // it cannot fail
		}
		keep, docs = append(keep, r), append(docs, doc)
	}
	e.number(uint64(len(keep)))
	for i, r := range keep {
		e.text(r.name)
		e.stamp(r.stamp)
		e.text(string(docs[i]))
		e.number(uint64(len(r.problems)))
		for _, p := range r.problems {
			for _, s := range []string{p.Code, string(p.Severity), p.File, p.Pointer, p.Message, p.Hint} {
				e.text(s)
			}
			e.number(uint64(p.Line))
			e.number(uint64(p.Column))
		}
	}
}

// A decoder reads an index. Nothing that it is given makes it panic, or take
// more memory than some times the bytes there are.
type decoder struct {
	rest  string
	bad   bool // something was not there; everything after it is empty
	depth int
	names map[string]string // one copy of each name
}

func decodeIndex(data, key, dir string) (*memo, error) {
	body, ok := strings.CutPrefix(data, indexMagic)
	if !ok || len(body) < 4 {
		return nil, errIndex
	}
	sum, body := body[:4], body[4:]
	if sum != string(le32(checksum(body))) {
		return nil, errIndex
	}
	d := &decoder{rest: body, names: make(map[string]string)}
	if d.text() != key {
		return nil, errIndex
	}
	m := &memo{dir: dir, top: d.node(), links: make(map[string]*node)}
	for range d.count() {
		rel := d.text()
		m.links[rel] = d.node()
	}
	if d.bad || d.rest != "" {
		return nil, errIndex
	}
	return m, nil
}

func le32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }

// checksum needs no copy of the whole text.
func checksum(text string) (sum uint32) {
	table := crc32.MakeTable(crc32.Castagnoli) // made once by the library
	var part [4 << 10]byte
	for text != "" {
		n := copy(part[:], text)
		sum, text = crc32.Update(sum, table, part[:n]), text[n:]
	}
	return sum
}

func (d *decoder) fail() { d.bad, d.rest = true, "" }

func (d *decoder) number() uint64 {
	var v uint64
	for i := 0; i < len(d.rest) && i < binary.MaxVarintLen64; i++ {
		v |= uint64(d.rest[i]&0x7f) << (7 * i)
		if d.rest[i] < 0x80 {
			d.rest = d.rest[i+1:]
			return v
		}
	}
	d.fail()
	return 0
}

// count is a number of things of which each has at least one byte.
func (d *decoder) count() int {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.count()
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

// name is text of which there may be many that are the same.
func (d *decoder) name() string {
	s := d.text()
	if known, ok := d.names[s]; ok {
		return known
	}
	d.names[s] = s
	return s
}

// entry is the name of something in a directory, and leads nowhere else.
func (d *decoder) entry() string {
	name := d.name()
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		d.fail()
	}
	return name
}

func (d *decoder) stamp() packfs.Stamp {
	s, rest, ok := packfs.CutStamp(d.rest)
	if !ok {
		d.fail()
		return packfs.Stamp{}
	}
	d.rest = rest
	return s
}

func (d *decoder) node() *node {
	n := &node{name: d.name(), stamp: d.stamp()}
	n.which = n.stamp.Which()
	if d.depth++; d.depth > maxDepth+1 {
		d.fail()
	}
	defer func() { d.depth-- }()
	flags := d.number()
	n.state = d.number()
	n.always, n.cut = flags&1 != 0, flags&2 != 0
	if count := d.count(); count > 0 {
		n.entries = make([]entry, count)
		for i := range n.entries {
			n.entries[i] = entry{d.entry(), fs.FileMode(d.number())}
		}
	}
	if flags&4 != 0 {
		n.tools = &listing{stamp: d.stamp()}
		for range d.count() {
			n.tools.names = append(n.tools.names, d.entry())
		}
	}
	if count := d.count(); count > 0 {
		n.docs = make([]record, count)
		for i := range n.docs {
			n.docs[i] = d.record()
		}
	}
	if count := d.count(); count > 0 {
		n.subs = make([]*node, count)
		for i := range n.subs {
			n.subs[i] = d.node()
		}
	}
	return n
}

func (d *decoder) record() record {
	r := record{name: d.name(), stamp: d.stamp()}
	if text := d.text(); text != "" {
		var err error
		if r.doc, err = frontmatter.FromBinary(text); err != nil {
			d.fail()
		}
	}
	for range d.count() {
		var p diag.Diagnostic
		var severity string
		for _, s := range []*string{&p.Code, &severity, &p.File, &p.Pointer, &p.Message, &p.Hint} {
			*s = d.name()
		}
		p.Severity, p.Line, p.Column = diag.Severity(severity), int(d.number()), int(d.number())
		r.problems = append(r.problems, p)
	}
	return r
}

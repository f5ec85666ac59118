package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/sourcestest"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
)

// history makes commits whose files differ little, so that git writes deltas of deltas.
func history(s *served) {
	s.t.Helper()
	var lines strings.Builder
	for i := range 400 {
		fmt.Fprintf(&lines, "Line %d of a text that is about the number %d.\n", i, i*i)
	}
	parent := ""
	for i := range 12 {
		text := strings.Replace(lines.String(), fmt.Sprintf("Line %d ", 30*i), fmt.Sprintf("Row %d ", i), 1)
		tree := s.tree(line{"100644", "SKILL.md", sourcestest.Document}, line{"100644", "a.md", text}, line{"100644", "b.md", text + "More.\n"})
		args := []string{"commit-tree", "-m", fmt.Sprint(i), tree}
		if parent != "" {
			args = append(args, "-p", parent)
		}
		parent = s.git("", args...)
	}
	s.git("", "update-ref", "refs/heads/main", parent)
	s.git("", "tag", "-a", "-m", "one", "v1", parent)
}

// packOf returns the pack that git makes of everything, or of what revisions name.
func packOf(s *served, revisions string, args ...string) []byte {
	s.t.Helper()
	if revisions == "" {
		args = append(args, "--all")
	}
	cmd := exec.Command("git", append([]string{"--git-dir", s.dir, "pack-objects", "--stdout", "--revs", "--quiet", "--window=50", "--depth=50"}, args...)...)
	cmd.Stdin = strings.NewReader(revisions)
	data, err := cmd.Output()
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

// A pack is read as git reads it, whichever way its deltas name their bases.
func TestUnpack(t *testing.T) {
	s := serveGit(t)
	history(s)
	all := strings.Split(s.git("", "cat-file", "--batch-all-objects", "--batch-check"), "\n")
	for _, args := range [][]string{{"--delta-base-offset"}, nil} {
		pack := packOf(s, "", args...)
		objects, err := unpack(pack)
		if err != nil || objects == nil {
			t.Fatalf("%q: %v", args, err)
		}
		if len(objects.Objects) != len(all) {
			t.Errorf("%q: %d objects, and git has %d", args, len(objects.Objects), len(all))
		}
		for _, l := range all {
			var hash, kind string
			var size int64
			if _, err := fmt.Sscan(l, &hash, &kind, &size); err != nil {
				t.Fatal(err)
			}
			o, err := objectAt(objects, plumbing.AnyObject, plumbing.NewHash(hash))
			if err != nil || o.Type().String() != kind || o.Size() != size {
				t.Errorf("%q: the object %s: %v, want a %s of %d bytes", args, l, err, kind, size)
			}
		}
		deltas := 0
		u := unpacker{pack: pack, in: bytes.NewReader(pack), left: maxKept}
		if n, err := u.header(); err == nil {
			for range n {
				if err := u.entry(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, e := range u.entries {
			if e.kind.IsDelta() {
				deltas++
			}
		}
		if deltas < 10 {
			t.Errorf("%q: the pack has %d deltas, so this tests little", args, deltas)
		}
		// Every beginning of it, and every change, is noticed.
		for cut := 0; cut < len(pack); cut += 1 + len(pack)/300 {
			if _, err := unpack(pack[:cut]); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%q: the first %d of %d bytes: %v, want ErrUnexpectedEOF", args, cut, len(pack), err)
			}
			bad := bytes.Clone(pack)
			bad[cut] ^= 0x10
			if objects, err := unpack(bad); err == nil && objects != nil {
				t.Errorf("%q: with another byte at %d, there is no error", args, cut)
			}
		}
		if _, err := unpack(append(bytes.Clone(pack), 0)); err == nil {
			t.Errorf("%q: a byte behind the pack is no error", args)
		}
	}
	thin := packOf(s, "main\n^main~1\n", "--thin")
	if _, err := unpack(thin); err == nil || !strings.Contains(err.Error(), "base of a delta") {
		t.Errorf("a pack without the bases of its deltas: %v", err)
	}
}

// A raw is one entry of a hostile pack.
type raw struct {
	head []byte // behind the first bytes: what names the base
	kind plumbing.ObjectType
	size int    // as the entry says
	data []byte // not compressed yet
}

// pack makes a pack with a right checksum.
func pack(t *testing.T, count uint32, entries ...raw) []byte {
	t.Helper()
	out := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), count)
	for _, e := range entries {
		c, size := byte(e.kind)<<4|byte(e.size&0xf), e.size>>4
		for size > 0 {
			out, c, size = append(out, c|0x80), byte(size&0x7f), size>>7
		}
		out = append(append(out, c), e.head...)
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		if _, err := z.Write(e.data); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		out = append(out, b.Bytes()...)
	}
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

// A hostile pack is refused, or left to what reads from the disk, before it takes more
// memory than it may.
func TestHostilePack(t *testing.T) {
	blob := raw{kind: plumbing.BlobObject, size: 3, data: []byte("abc")}
	delta := func(back byte, data string) raw {
		return raw{kind: plumbing.OFSDeltaObject, head: []byte{back}, size: len(data), data: []byte(data)}
	}
	first := len(pack(t, 1, blob)) - 12 - sha1.Size // how long the blob is in the pack
	copies := "\x03" + string(binary.AppendUvarint(nil, 3<<20)) + strings.Repeat("\x90\x03", 1<<20)
	// A blob again and again, since compressing each would take a minute.
	body := bytes.Repeat(pack(t, 1, blob)[12:12+first], maxKept/perEntry+1)
	small := append(binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), maxKept/perEntry+1), body...)
	sum := sha1.Sum(small)
	small = append(small, sum[:]...)
	huge := "\x03" + string(binary.AppendUvarint(nil, 1<<40)) + "\x90\x03"
	for name, tt := range map[string]struct {
		pack []byte
		want string // "": it is not kept in memory
	}{
		"no pack":               {[]byte("HELLO\x00\x00\x02\x00\x00\x00\x00" + strings.Repeat("x", 20)), "not a pack of version 2"},
		"another version":       {append([]byte("PACK\x00\x00\x00\x03\x00\x00\x00\x00"), make([]byte, 20)...), "not a pack of version 2"},
		"many objects":          {pack(t, maxCount+1), "too large"},
		"more than are there":   {pack(t, 2, blob), "zlib"},
		"fewer than are there":  {pack(t, 1, blob, blob), "checksum"},
		"kind 0":                {pack(t, 1, raw{kind: 0}), "kind"},
		"kind 5":                {pack(t, 1, raw{kind: 5}), "kind"},
		"larger than it says":   {pack(t, 1, raw{kind: plumbing.BlobObject, size: 2, data: []byte("abc")}), "more bytes than it says"},
		"smaller than it says":  {pack(t, 1, raw{kind: plumbing.BlobObject, size: 4, data: []byte("abc")}), "unexpected EOF"},
		"no compressed data":    {append(append(pack(t, 1)[:12], 0x33), make([]byte, 40)...), "zlib"},
		"a base that is itself": {pack(t, 2, blob, delta(0, "\x03\x03\x90\x03")), "no object before the delta"},
		"a base between two":    {pack(t, 2, blob, delta(1, "\x03\x03\x90\x03")), "no object before the delta"},
		"a base before all":     {pack(t, 2, blob, delta(0x7f, "\x03\x03\x90\x03")), "no object before the delta"},
		"a base that is not in": {pack(t, 1, raw{kind: plumbing.REFDeltaObject, head: make([]byte, 20), size: 4, data: []byte("\x03\x03\x90\x03")}), "base of a delta"},
		"a delta of nothing":    {pack(t, 2, blob, delta(byte(first), "")), "how large"},
		"an overlong number":    {pack(t, 2, blob, delta(byte(first), strings.Repeat("\x80", 30)+"\x03")), "how large"},
		"a delta that runs out": {pack(t, 2, blob, delta(byte(first), "\x03\x05\x90\x03")), "damaged"},
		"another base's delta":  {pack(t, 2, blob, delta(byte(first), "\x04\x03\x90\x03")), "damaged"},
		"large":                 {pack(t, 1, raw{kind: plumbing.BlobObject, size: maxKept + 1, data: make([]byte, maxKept+1)}), ""},
		"large, it says":        {pack(t, 1, raw{kind: plumbing.BlobObject, size: 1 << 40, data: []byte("abc")}), ""},
		"many small objects":    {small, ""},
		"large by a delta":      {pack(t, 2, blob, delta(byte(first), huge)), ""},
		"large by many deltas": {pack(t, 13, append([]raw{blob}, func() (all []raw) {
			for range 12 {
				sum := plumbing.ComputeHash(plumbing.BlobObject, []byte("abc"))
				all = append(all, raw{kind: plumbing.REFDeltaObject, head: sum[:], size: len(copies), data: []byte(copies)})
			}
			return all
		}()...)...), ""},
	} {
		objects, err := unpack(tt.pack)
		switch {
		case objects != nil:
			t.Errorf("%s: it was read", name)
		case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if objects, err := unpack(pack(t, 2, blob, delta(byte(first), "\x03\x03\x90\x03"))); err != nil || objects == nil || len(objects.Objects) != 1 {
		t.Errorf("a delta that changes nothing: %v, %v", objects, err)
	}
}

// A repository that is too large for memory is read from a folder, which goes with it.
func TestLargeGit(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := serveGit(t)
	pack := s.tree(line{"100644", "SKILL.md", sourcestest.Document})
	s.commit(s.tree(line{"100644", "big", strings.Repeat("x", maxKept+1)}, line{"40000", "triage", pack}), "main")
	r, err := address.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	left := func() int {
		t.Helper()
		entries, err := os.ReadDir(os.Getenv("TMPDIR"))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	snap, err := Open(t.Context(), &web.Access{Private: []string{"127.0.0.1"}}, r)
	if err != nil {
		t.Fatal(err)
	}
	if left() != 1 {
		t.Errorf("there are %d temporary folders, want the repository's", left())
	}
	if found, err := sources.Survey(t.Context(), snap, ""); err != nil || len(found) != 1 || !found[0].Valid {
		t.Errorf("packs = %+v, %v, want triage", found, err)
	}
	if _, _, err := sourcestest.Fill(t, snap, "triage"); err != nil {
		t.Error(err)
	}
	if _, _, err := sourcestest.Fill(t, snap, ""); !errors.Is(err, stage.ErrTooLarge) {
		t.Errorf("the large file: %v, want ErrTooLarge", err)
	}
	if err := snap.Close(); err != nil || left() != 0 {
		t.Errorf("%d temporary folders are left, %v", left(), err)
	}
	s.commit(s.tree(line{"40000", "triage", pack}), "main")
	if snap, err = Open(t.Context(), &web.Access{Private: []string{"127.0.0.1"}}, r); err != nil || left() != 0 {
		t.Errorf("a small repository: %v, and %d temporary folders", err, left())
	} else if err := snap.Close(); err != nil {
		t.Error(err)
	}
}

package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/sourcestest"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
	"github.com/packs-mcp/packs-mcp/internal/sources/store"
)

// A hostile archive, what its refusal says, and the name of the entry in it.
type hostile struct {
	data  []byte
	entry string // quoted in the refusal; "" for what is wrong with the file as a whole
	want  string
	under string // the folder in it that is the pack
}

// skill is the entry that a pack has.
var skill0 = tarRaw{name: "SKILL.md", body: sourcestest.Document}

func names() map[string]string {
	long := strings.Repeat("x", 256)
	return map[string]string{ // :: name of an entry → why it is refused
		"../evil":                             "leads elsewhere",
		"a/../../evil":                        "leads elsewhere",
		"a/..":                                "leads elsewhere",
		"a/./b":                               "leads elsewhere",
		"././a":                               "leads elsewhere",
		"/etc/evil":                           "is absolute",
		"//host/share":                        "is absolute",
		"a//b":                                "empty name",
		`..\evil`:                             "backslash",
		`a\b`:                                 "backslash",
		`C:\evil`:                             "backslash or a colon",
		"C:evil":                              "backslash or a colon",
		"a:stream":                            "backslash or a colon",
		"CON":                                 "device on Windows",
		"a/nul.txt":                           "device on Windows",
		"com1":                                "device on Windows",
		"LPT¹.md":                             "device on Windows",
		"CONIN$":                              "device on Windows",
		"aux ":                                "ends in a dot or a space",
		"SKILL.md.":                           "ends in a dot or a space",
		"a /b":                                "ends in a dot or a space",
		"skill~1.md":                          "short name",
		"GIT~1":                               "git's own folder",
		".git/config":                         "git's own folder",
		"sub/.GIT/hooks/pre-commit":           "git's own folder",
		".g\u200dit/config":                   "git's own folder",
		"\ufeffSKILL.md":                      "nobody sees",
		"a\u202egpj.sh":                       "nobody sees",
		"SKILL\u200b.md":                      "nobody sees",
		"a\U000e0041":                         "nobody sees",
		"a\u2028b":                            "nobody sees",
		"a\u3164b":                            "nobody sees",
		"a\nb":                                "control characters",
		"a\x1b[2Jb":                           "control characters",
		"a\x7f":                               "control characters",
		"a\u0085b":                            "control characters",
		"a\xffb":                              "not UTF-8",
		"a\xc0\xafb":                          "not UTF-8",
		"what?":                               "Windows allows in none",
		"a*":                                  "Windows allows in none",
		"a<b>":                                "Windows allows in none",
		`a"b`:                                 "Windows allows in none",
		"a|b":                                 "Windows allows in none",
		long:                                  "has 256 bytes",
		strings.Repeat("xxxxxxx/", 130) + "x": "its path has",
		strings.Repeat("d/", 40) + "x":        "folders deep",
		"skill.md":                            "take its name",
		"SKILL.MD":                            "take its name",
		"ſkill.md":                            "take its name",
		"SKILL.m\u200dd":                      "take its name",
		"SKILL.md":                            "it occurs twice",
		"SKILL.md/x":                          "above it, is not a folder",
		"skill.md/x":                          "take its name",
	}
}

func hostileTars() map[string]hostile {
	all := map[string]hostile{}
	add := func(what, entry, want string, entries ...tarRaw) {
		all[what] = hostile{tarOf(append([]tarRaw{skill0}, entries...)...), strings.TrimPrefix(entry, "./"), want, ""}
	}
	for name, want := range names() {
		if len(name) <= 100 && !strings.HasSuffix(name, "/") {
			add("a file "+name, name, want, tarRaw{name: name, body: "x"})
		}
		if utf8.ValidString(name) {
			add("a long name "+name, name, want, tarRaw{name: "././@LongLink", kind: 'L', body: name + "\x00"}, tarRaw{name: "short", body: "x"})
		}
	}
	add("NFC and NFD", "e\u0301", "take its name", tarRaw{name: "\u00e9"}, tarRaw{name: "e\u0301"})
	add("a twin of a folder", "DIR/b", "take its name", tarRaw{name: "dir/a"}, tarRaw{name: "DIR/b"})
	add("a folder, then a file", "dir", "occurs twice", tarRaw{name: "dir/", kind: '5', mode: 0o755}, tarRaw{name: "dir"})
	add("a file that ends as a folder", "dir/", "empty name", tarRaw{name: "dir/"})
	add("a file that is the folder", ".", "leads elsewhere", tarRaw{name: "."})
	add("a file without a name", "", "no name", tarRaw{name: "./"})
	add("a link that is the folder", "", "no name", tarRaw{name: "./", kind: '2', link: "/etc"})
	for target, want := range map[string]string{"/etc/passwd": "leads out", "../x": "leads out", "a/../../x": "leads out", "nothing": "leads to nothing", "link": "leads to nothing",
		`..\x`: "backslash", "C:x": "colon", ".git/config": "git's own folder", "": "target has 0 bytes", "SKILL.MD": "leads to nothing", "SKILL.md\n": "control"} {
		add("a link to "+target, "link", want, tarRaw{name: "link", kind: '2', link: target})
	}
	add("a link to a link", "b", "leads to nothing", tarRaw{name: "a", kind: '2', link: "SKILL.md"}, tarRaw{name: "b", kind: '2', link: "a"})
	add("over a link", "c", "over another link", tarRaw{name: "d/x"}, tarRaw{name: "l", kind: '2', link: "d"}, tarRaw{name: "c", kind: '2', link: "l/../d/x"})
	add("a file through a link", "link/x", "is not a folder", tarRaw{name: "d/y"}, tarRaw{name: "link", kind: '2', link: "d"}, tarRaw{name: "link/x", body: "x"})
	add("a link that replaces a file", "SKILL.md", "occurs twice", tarRaw{name: "SKILL.md", kind: '2', link: "/etc/passwd"})
	add("a long link target", "link", "target has", tarRaw{name: "x", kind: 'K', body: strings.Repeat("a/../", 300) + "SKILL.md\x00"}, tarRaw{name: "link", kind: '2'})
	for kind, what := range map[byte]string{'1': "hard link", '3': "a device", '4': "a device", '6': "a pipe", '7': "neither", 'V': "neither", 'M': "neither", 'D': "neither", 'Z': "neither"} {
		add("an entry of kind "+string(kind), "odd", what, tarRaw{name: "odd", kind: kind, link: "SKILL.md"})
	}
	add("GNU's sparse file", "", "unpacking", tarRaw{name: "odd", kind: 'S'})
	add("a hard link out", "hard", "hard link", tarRaw{name: "hard", kind: '1', link: "/etc/shadow"})
	add("a folder with bytes", "dir/", "has bytes", tarRaw{name: "dir/", kind: '5', body: string(tarRaw{name: "hidden"}.block())})
	add("a link with bytes", "link", "has bytes", tarRaw{name: "link", kind: '2', link: "SKILL.md", body: "x"})
	add("setuid", "run", "setuid", tarRaw{name: "run", mode: 0o4755})
	add("setgid", "run", "setuid", tarRaw{name: "run", mode: 0o2755})
	add("another path in PAX", "../evil", "leads elsewhere", pax("path=../evil"), tarRaw{name: "fine"})
	add("another target in PAX", "link", "leads out", pax("linkpath=/etc/passwd"), tarRaw{name: "link", kind: '2', link: "SKILL.md"})
	add("another size in PAX", "fine", "not all programs read", pax("size=512"), tarRaw{name: "fine", size: "00000000000", body: string(tarRaw{name: "hidden"}.block())})
	add("sparse in PAX", "fine", "sparse", pax("GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=fine", "GNU.sparse.realsize=10000000"), tarRaw{name: "GNUSparseFile.0/fine", body: "0\n" + strings.Repeat("\x00", 510)})
	add("NUL in PAX", "", "unpacking", pax("path=a\x00b"), tarRaw{name: "fine"})
	add("PAX of another length", "", "unpacking", tarRaw{name: "x", kind: 'x', body: "99 path=evil\n"}, tarRaw{name: "fine"})
	add("PAX without an entry", "", "its end", pax("path=evil"))
	add("a path for all entries", "../evil", "of all entries", tarRaw{name: "all", kind: 'g', body: paxBody("path=../evil")}, tarRaw{name: "fine"})
	add("a size for all entries", "all", "of all entries", tarRaw{name: "all", kind: 'g', body: paxBody("comment=x", "size=1")}, tarRaw{name: "fine"})
	add("a prefix that leads out", "../evil/x", "leads elsewhere", tarRaw{name: "x", prefix: "../evil"})
	add("a size of 10 GB", "", "unexpected EOF", tarRaw{name: "big", size: "120000000000"})
	add("a negative size", "", "unpacking", tarRaw{name: "big", size: "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"})
	add("a wrong checksum", "", "unpacking", tarRaw{name: "x", sum: "000000\x00 "})
	add("a large file", "big", "more than 16 MiB", tarRaw{name: "big", body: strings.Repeat("x", 17<<20)})
	add("a large nested archive", "inner.zip", "an archive of more than", tarRaw{name: "inner.zip", body: "PK\x03\x04" + strings.Repeat("x", 5<<20)})
	add("a large nested archive by another name", "notes.md", "an archive of more than", tarRaw{name: "notes.md", body: "\x1f\x8b" + strings.Repeat("x", 5<<20)})
	var many []tarRaw
	for i := range 600 {
		many = append(many, tarRaw{name: fmt.Sprintf("f%d", i)})
	}
	add("600 files", "f511", "more than 512", many...)

	whole := tarOf(skill0)
	all["something after its end"] = hostile{append(bytes.Clone(whole), "hidden"...), "", "after its end", ""}
	all["a tar after its end"] = hostile{append(bytes.Clone(whole), tarOf(tarRaw{name: "../evil"})...), "", "after its end", ""}
	all["cut between entries"] = hostile{skill0.block(), "", "its end", ""}
	all["cut in the end"] = hostile{whole[:len(whole)-512], "", "its end", ""}
	all["cut in an entry"] = hostile{whole[:530], "", "EOF", ""}
	all["a file in the pack's place"] = hostile{tarOf(tarRaw{name: "pack", kind: '2', link: "/etc"}, tarRaw{name: "pack/SKILL.md", body: sourcestest.Document}), "pack", "and is none", "pack"}
	all["out of the pack's folder"] = hostile{tarOf(tarRaw{name: "pack/SKILL.md", body: sourcestest.Document}, tarRaw{name: "pack/../../evil"}), "../../evil", "leads elsewhere", "pack"}
	return all
}

func hostileZips() map[string]hostile {
	all := map[string]hostile{}
	first := zipRaw{name: "SKILL.md", body: sourcestest.Document}
	add := func(what, entry, want string, tail zipTail, entries ...zipRaw) {
		all[what] = hostile{zipOf(tail, append([]zipRaw{first}, entries...)...), strings.TrimPrefix(entry, "./"), want, ""}
	}
	var none zipTail
	for name, want := range names() {
		add("a file "+name, name, want, none, zipRaw{name: name, body: "x"})
	}
	const structure = "programs could disagree"
	add("NFC and NFD", "e\u0301", "take its name", none, zipRaw{name: "\u00e9"}, zipRaw{name: "e\u0301"})
	add("a link out", "link", "leads out", none, zipRaw{name: "link", mode: 0o120777, body: "../../x"})
	add("a link to the root", "link", "leads out", none, zipRaw{name: "link", mode: 0o120777, body: "/etc/passwd"})
	add("a long link", "link", "target has", none, zipRaw{name: "link", mode: 0o120777, body: strings.Repeat("a/../", 1000) + "SKILL.md"})
	add("a link that is a folder", "link/", "something else as well", none, zipRaw{name: "link/", mode: 0o120777, body: "/etc"})
	add("a folder with bytes", "dir/", "something else as well", none, zipRaw{name: "dir/", mode: 0o040755, body: "hidden"})
	for mode, want := range map[uint32]string{0o010644: "a pipe", 0o020644: "a device", 0o060644: "a device", 0o140644: "a socket", 0o104755: "setuid", 0o102755: "setuid"} {
		add(fmt.Sprintf("mode %o", mode), "odd", want, none, zipRaw{name: "odd", mode: mode})
	}
	add("encrypted", "secret", "encrypted", none, zipRaw{name: "secret", body: "x", flags: 1})
	add("strongly encrypted", "secret", "encrypted", none, zipRaw{name: "secret", body: "x", flags: 1 << 6})
	add("a hidden list", "secret", "encrypted", none, zipRaw{name: "secret", body: "x", flags: 1 << 13})
	add("an unknown method", "odd", "unsupported", none, zipRaw{name: "odd", body: "x", method: 99})
	add("another name before the bytes", "fine", structure, none, zipRaw{name: "fine", local: "../evil"})
	add("another name of the same length", "fine", structure, none, zipRaw{name: "fine", local: "evil"})
	add("another size before the bytes", "fine", structure, none, zipRaw{name: "fine", body: "x", localSize: 7})
	add("other flags before the bytes", "fine", structure, none, zipRaw{name: "fine", body: "x", localFlags: 1})
	add("another method before the bytes", "fine", structure, none, zipRaw{name: "fine", body: "x", localMethod: 8})
	add("another name in Unicode", "fine", structure, none, zipRaw{name: "fine", extra: extraField(extraName, "\x01\x00\x00\x00\x00../evil")})
	add("another name in Unicode, before the bytes", "fine", structure, none, zipRaw{name: "fine", lextra: extraField(extraName, "\x01\x00\x00\x00\x00evil")})
	add("zip64 sizes", "fine", structure, none, zipRaw{name: "fine", lextra: extraField(extraZip64, strings.Repeat("\x01", 16))})
	add("zip64 sizes in the list", "fine", structure, none, zipRaw{name: "fine", body: "x", extra: extraField(extraZip64, strings.Repeat("\x01", 16))})
	add("a broken extra field", "fine", structure, none, zipRaw{name: "fine", lextra: "\x99\x99\xff\xff"})
	add("a wrong checksum", "fine", "checksum", none, zipRaw{name: "fine", body: "x", sum: 1})
	add("a size that lies upward", "fine", "unexpected EOF", none, zipRaw{name: "fine", body: "xyz", method: 8, packed: deflated("xyz"), size: 1 << 20})
	add("a size that lies downward", "fine", "zip:", none, zipRaw{name: "fine", body: "xyz", method: 8, packed: deflated("xyz"), size: 1})
	add("a packed size that lies", "", structure, none, zipRaw{name: "fine", body: "xyz", packedSize: 1 << 30})
	add("a bomb", "bomb", "more than 16 MiB", none, zipRaw{name: "bomb", body: strings.Repeat("\x00", 40<<20), method: 8, packed: deflated(strings.Repeat("\x00", 40<<20))})
	add("the same bytes twice", "b", structure, none, zipRaw{name: "a", body: "x"}, zipRaw{name: "b", body: "x", again: true})
	add("overlapping entries", "", structure, none, zipRaw{name: "outer", body: string(zipOf(none, zipRaw{name: "inner", body: "x"})), packedSize: 10})
	add("an entry that is not listed", "", structure, none, zipRaw{name: "hidden", body: "x", unlisted: true})
	add("something between", "", structure, zipTail{between: "hidden"})
	add("something before", "", "unpacking", zipTail{before: "MZ hidden"})
	add("an entry before", "", "", zipTail{before: string(zipOf(none, zipRaw{name: "hidden", body: "x"}))})
	add("something after", "", structure, zipTail{after: "hidden"})
	add("two lists", "", structure, zipTail{comment: string(zipOf(none, zipRaw{name: "evil", body: "x"}))})
	add("the end of another list in the comment", "", structure, zipTail{comment: "PK\x05\x06 and more"})
	add("more entries than listed", "", "unpacking", zipTail{count: 1})
	add("several disks", "", structure, zipTail{disk: 1})
	add("a list elsewhere", "", "", zipTail{list: 10})
	add("a cut descriptor", "", structure, none, zipRaw{name: "late", body: "xyz", method: 8, packed: deflated("xyz"), flags: 8, behind: "PK"})
	add("another descriptor", "late", structure, none, zipRaw{name: "late", body: "xyz", method: 8, packed: deflated("xyz"), flags: 8, behind: descriptor("abc", deflated("xyz"))})
	add("a large nested archive", "inner.tgz", "an archive of more than", none, zipRaw{name: "inner.tgz", body: "\x1f\x8b" + strings.Repeat("x", 5<<20)})
	var many []zipRaw
	for i := range 70_000 {
		many = append(many, zipRaw{name: fmt.Sprint("f", i)})
	}
	add("70,000 files", "", "", none, many...)
	all["an empty zip"] = hostile{zipOf(none), "", "unpacking", ""}
	whole := zipOf(none, first)
	all["cut"] = hostile{whole[:len(whole)-30], "", "zip:", ""}
	return all
}

// Each hostile archive is refused with the name of the entry that it is for, and
// leaves nothing behind.
func TestHostileArchives(t *testing.T) {
	home := t.TempDir()
	temp := filepath.Join(home, "temp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp)
	s := &store.Store{Dir: filepath.Join(home, "sources"), LockFile: filepath.Join(home, "packs.lock.json")}
	file := filepath.Join(home, "archive")
	take := func(t *testing.T, data []byte, under string) error {
		t.Helper()
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := os.Remove(file); err != nil {
				t.Error(err)
			}
		}()
		snap, err := Open(file, "")
		if err != nil {
			return err
		}
		defer snap.Close()
		if len(data) < 1<<20 { // twice through a bomb takes long
			_, _ = sources.Survey(context.Background(), snap, "") // leaves nothing, whatever it says
		}
		b, err := s.NewBatch()
		if err != nil {
			return err
		}
		staged, err := b.Stage(stage.Limits{}, func(st *stage.Stage) error { return sources.Fill(context.Background(), snap, under, st) })
		if err := errors.Join(err, b.Close()); err != nil {
			return err
		}
		return staged.Close()
	}
	if err := take(t, tarOf(skill0), ""); err != nil {
		t.Fatal(err)
	}
	before := listing(t, home)

	tars, zips := hostileTars(), hostileZips()
	for name, h := range tars {
		zips["tar: "+name] = h
		if strings.HasPrefix(name, "a file ") || strings.HasPrefix(name, "a long name ") {
			continue // compressed, it is the same
		}
		packed := h
		packed.data = gz(h.data)
		zips["tar.gz: "+name] = packed
	}
	good := tarOf(skill0)
	maps.Copy(zips, map[string]hostile{
		"gzip: something after its end": {append(gz(good), "hidden"...), "", "after its end", ""},
		"gzip: another one after it":    {append(gz(good), gz(tarOf(tarRaw{name: "../evil"}))...), "", "after its end", ""},
		"gzip: a wrong checksum":        {func() []byte { z := gz(good); z[len(z)-6]++; return z }(), "", "checksum", ""},
		"gzip: a wrong length":          {func() []byte { z := gz(good); z[len(z)-2]++; return z }(), "", "checksum", ""},
		"gzip: cut":                     {gz(good)[:len(gz(good))-3], "", "unexpected EOF", ""},
		"gzip: a bomb in the pack":      {gzBomb(append(skill0.block(), tarRaw{name: "bomb", size: "10000000000"}.block()...), 20), "bomb", "more than 16 MiB", ""},
		"gzip: a bomb after the end":    {gzBomb(good, 1100), "", "more than 1024 MiB", ""},
		"gzip: a bomb beside the pack":  {gzBomb(tarRaw{name: "bomb", size: "20000000000"}.block(), 1100), "", "more than 1024 MiB", "pack"},
		"gzip: 1,000,000 entries":       {gz(bytes.Repeat(tarRaw{name: "beside"}.block(), 1_000_000)), "", "more than 100000 entries", "pack"},
		"text":                          {[]byte("text"), "", "unpacking", ""},
		"nothing":                       {nil, "", "its end", ""},
		"bzip2":                         {[]byte("BZh91AY&SY" + strings.Repeat("x", 600)), "", "unpacking", ""},
	})
	if len(zips) < 80 {
		t.Fatalf("%d archives", len(zips))
	}
	t.Logf("%d archives", len(zips))
	for name, h := range zips {
		t.Run(name, func(t *testing.T) {
			err := take(t, h.data, h.under)
			switch {
			case err == nil:
				t.Error("it was taken")
			case !strings.Contains(err.Error(), h.want):
				t.Errorf("%v, want %q", err, h.want)
			case h.entry != "" && !strings.Contains(err.Error(), fmt.Sprintf("%q", h.entry)):
				t.Errorf("%v, which does not name %q", err, h.entry)
			}
			if after := listing(t, home); !maps.Equal(before, after) {
				t.Fatalf("left behind: %v, before %v", after, before)
			}
		})
	}
}

// listing is all that is below a folder, with its bytes.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		all[p] = d.Type().String()
		if d.Type().IsRegular() {
			data, err := os.ReadFile(p)
			all[p] = fmt.Sprintf("%x", sha256.Sum256(data))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What is odd but harmless comes in.
func TestHarmlessArchives(t *testing.T) {
	first := zipRaw{name: "SKILL.md", body: sourcestest.Document}
	long := strings.Repeat("d/", 30) + strings.Repeat("x", 200)
	text := strings.Repeat("text ", 100)
	for name, tt := range map[string]struct {
		data  []byte
		files []string
		under string
	}{
		"tar":                                 {data: tarOf(skill0), files: []string{"SKILL.md"}},
		"folders named before and after":      {data: tarOf(tarRaw{name: "./", kind: '5'}, tarRaw{name: "./a/", kind: '5'}, tarRaw{name: "./a/x"}, tarRaw{name: "a/", kind: '5'}, skill0), files: []string{"SKILL.md", "a/x"}},
		"an old tar":                          {data: tarOf(tarRaw{name: "SKILL.md", body: sourcestest.Document, magic: "\x00\x00\x00\x00\x00\x00\x00\x00"}), files: []string{"SKILL.md"}},
		"GNU's tar":                           {data: tarOf(tarRaw{name: "SKILL.md", body: sourcestest.Document, magic: "ustar  \x00"}, tarRaw{name: "././@LongLink", kind: 'L', body: long + "\x00", magic: "ustar  \x00"}, tarRaw{name: "x", magic: "ustar  \x00"}), files: []string{"SKILL.md", long}},
		"git archive":                         {data: tarOf(tarRaw{name: "pax_global_header", kind: 'g', body: paxBody("comment=0123456789")}, tarRaw{name: "repo/", kind: '5'}, tarRaw{name: "repo/SKILL.md", body: sourcestest.Document}), under: "repo", files: []string{"SKILL.md"}},
		"times and owners in PAX":             {data: tarOf(pax("mtime=1.5", "uid=99999999", "SCHILY.xattr.user.x=y"), skill0), files: []string{"SKILL.md"}},
		"a path in PAX":                       {data: tarOf(skill0, pax("path="+long), tarRaw{name: "x"}), files: []string{"SKILL.md", long}},
		"a link to a file and a folder":       {data: tarOf(skill0, tarRaw{name: "d/x", mode: 0o755}, tarRaw{name: "l", kind: '2', link: "d"}, tarRaw{name: "d/m", kind: '2', link: "../SKILL.md"}), files: []string{"SKILL.md", "d/m -> ../SKILL.md", "d/x*", "l -> d"}},
		"a link before its file":              {data: tarOf(tarRaw{name: "README.md", kind: '2', link: "SKILL.md"}, skill0), files: []string{"README.md -> SKILL.md", "SKILL.md"}},
		"much padding":                        {data: append(tarOf(skill0), make([]byte, 9<<10)...), files: []string{"SKILL.md"}},
		"tar.gz":                              {data: gz(tarOf(skill0)), files: []string{"SKILL.md"}},
		"other packs, bad ones too":           {data: gz(tarOf(tarRaw{name: "good/SKILL.md", body: sourcestest.Document}, tarRaw{name: "bad/../../evil"}, tarRaw{name: "bad/link", kind: '2', link: "/etc"})), under: "good", files: []string{"SKILL.md"}},
		"a small nested archive":              {data: tarOf(skill0, tarRaw{name: "x.zip", body: string(zipOf(zipTail{}, zipRaw{name: "../evil"}))}), files: []string{"SKILL.md", "x.zip"}},
		"dots, spaces and other scripts":      {data: tarOf(skill0, tarRaw{name: "..a/b c/%2e%2e"}, tarRaw{name: "te..st"}, tarRaw{name: ".hidden"}, tarRaw{name: "日本語"}, tarRaw{name: "👩\u200d💻.md"}, tarRaw{name: "console"}, tarRaw{name: "file~"}, tarRaw{name: ".github/x"}), files: []string{"..a/b c/%2e%2e", ".github/x", ".hidden", "SKILL.md", "console", "file~", "te..st", "日本語", "👩\u200d💻.md"}},
		"zip":                                 {data: zipOf(zipTail{}, first, zipRaw{name: "d/", mode: 0o040755}, zipRaw{name: "d/run", mode: 0o100755, body: text, method: 8, packed: deflated(text)}), files: []string{"SKILL.md", "d/run*"}},
		"zip with a comment":                  {data: zipOf(zipTail{comment: "hello"}, first), files: []string{"SKILL.md"}},
		"zip with sizes behind":               {data: zipOf(zipTail{}, zipRaw{name: "SKILL.md", body: sourcestest.Document, method: 8, packed: deflated(sourcestest.Document), flags: 8, behind: descriptor(sourcestest.Document, deflated(sourcestest.Document))}), files: []string{"SKILL.md"}},
		"zip with sizes behind, no signature": {data: zipOf(zipTail{}, zipRaw{name: "SKILL.md", body: sourcestest.Document, flags: 8, behind: descriptor(sourcestest.Document, sourcestest.Document)[4:]}), files: []string{"SKILL.md"}},
		"zip with a link":                     {data: zipOf(zipTail{}, first, zipRaw{name: "l", mode: 0o120777, body: "SKILL.md"}), files: []string{"SKILL.md", "l -> SKILL.md"}},
		"zip with times":                      {data: zipOf(zipTail{}, zipRaw{name: "SKILL.md", body: sourcestest.Document, extra: extraField(0x5455, "\x01abcd"), lextra: extraField(0x5455, "\x03abcdefgh")}), files: []string{"SKILL.md"}},
		"zip with the name in Unicode":        {data: zipOf(zipTail{}, first, zipRaw{name: "é", extra: extraField(extraName, "\x01\x00\x00\x00\x00é")}), files: []string{"SKILL.md", "é"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "archive")
			if err := os.WriteFile(file, tt.data, 0o600); err != nil {
				t.Fatal(err)
			}
			snap, err := Open(file, "")
			if err != nil {
				t.Fatal(err)
			}
			defer snap.Close()
			found, err := sources.Survey(t.Context(), snap, tt.under)
			if err != nil || len(found) != 1 || found[0].Path != tt.under {
				t.Errorf("packs = %+v, %v", found, err)
			}
			tree, dir, err := sourcestest.Fill(t, snap, tt.under)
			if err != nil {
				t.Fatal(err)
			}
			if got := sourcestest.Paths(tree); strings.Join(got, "\n") != strings.Join(tt.files, "\n") {
				t.Errorf("files = %q, want %q", got, tt.files)
			}
			if data, err := os.ReadFile(filepath.Join(dir, "SKILL.md")); err != nil || string(data) != sourcestest.Document {
				t.Errorf("SKILL.md = %q, %v", data, err)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no archive: %v", err)
	}
}

// Whatever an archive has in it, all that comes in is what its tree says, and what is
// refused is an error.
func FuzzArchive(f *testing.F) {
	for _, h := range hostileTars() {
		if len(h.data) < 64<<10 {
			f.Add(h.data)
		}
	}
	for _, h := range hostileZips() {
		if len(h.data) < 64<<10 {
			f.Add(h.data)
		}
	}
	f.Add(gz(tarOf(skill0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "archive")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		snap, err := Open(file, "")
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		dir := filepath.Join(t.TempDir(), "pack")
		tree, _, err := sourcestest.FillIn(t.Context(), dir, snap, "")
		if err != nil {
			return
		}
		var there []string
		err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				rel, _ := filepath.Rel(dir, p)
				there = append(there, filepath.ToSlash(rel))
			}
			return err
		})
		if err != nil || len(there) != len(tree.Files) {
			t.Errorf("%q is there, %v; the tree has %q", there, err, sourcestest.Paths(tree))
		}
	})
}

package frontmatter

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

// checkPlain compares the result of plainBlock, if it has one, with the YAML parser's.
func checkPlain(t *testing.T, block string) (plain bool) {
	t.Helper()
	lines := splitLines(block)
	got := plainBlock(lines)
	if got == nil {
		return false
	}
	want, err := parseYAML(lines)
	if err != nil {
		t.Errorf("%q is read as plain, and is no YAML: %v", block, err)
	} else if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%q, read as plain (-YAML +plain):\n%s", block, d)
	}
	return true
}

func TestPlainBlock(t *testing.T) {
	values := []string{
		"a", "Some text, with more: of it", "Some text", "Some text: ", "Some text:", "Some:text", "text #comment", "text#none", "text # comment", "a text ", " a text",
		"a\ttab", "a\rreturn", "a\u0085line", "a\u2028line", "a\u2029line", "a\u00a0space", "é", "aé—’“”…日本", "a\ufeffb", "a😀", "a\x7f", "a\x00", "a\xff", "a\xc3",
		"true", "True", "TRUE", "tRue", "yes", "Y", "n", "on", "Off", "null", "Null", "NULL", "~", "inf", "nan", ".inf", "none", "e3", "0x1F", "12", "1e3", "-1", "2001-01-01",
		`"quoted"`, `"quoted: text # here"`, `"a \" b"`, `"a \\ b"`, `"a " b"`, `"a`, `a"`, `"`, `""`, `" a "`, `"a" # comment`, `"true"`, `"1"`, "\"a\tb\"", "\"a\u2028b\"", `"é"`,
		`'quoted'`, `'it''s'`, `'`, `''`, `' a '`, `'a \ b'`, `'a "b"'`, `"it's"`, `'a: # b'`,
		"- a", "-", "? a", "! a", "!!str a", "&a b", "*a", "@a", "`a`", "%a", "|", ">", "| a", "[a, b]", "[a", "{a: b}", "a, b] }", "a & b * c", "a - b", "a ? b", "<<", "=", "---", "...", "a --- b",
		"http://example.com/a?b=c#d", "C:\\a", "a\\b", "a'b'c", strings.Repeat("long ", 2000) + "end",
	}
	keys := []string{
		"a", "name", "allowed-tools", "read_only", "true", "No", "y", "null", "Key9", "9key", "key ", " key", "a b", "a:b", "a.b", `"key"`, "é", "-", "- a", "? a", "<<", "&a b", "#", "", "\tkey",
		strings.Repeat("k", 100), strings.Repeat("k", 2000),
	}
	var blocks []string
	for _, v := range values {
		blocks = append(blocks, "key: "+v, "key: "+v+"\n", "key: "+v+"\r\nother: b\r\n", "other: b\nkey: "+v, "key:  "+v, "key:\t"+v, "key: "+v+"\n  more\n", "key: "+v+"\n\nother: b", "key: "+v+"\n# comment", "key: "+v+"\nmore")
	}
	for _, k := range keys {
		blocks = append(blocks, k+": b", "other: b\n"+k+": b\n", k+": b\n"+k+": c\n", k+":b", k+" : b", k+":")
	}
	blocks = append(blocks, "", "\n", "\n\n", "a: b\n\n", "\na: b", " a: b", "a: b\n c: d", "a: b\n---\nc: d", "a: b\n...\nc: d", "%YAML 1.1\n---\na: b", "\ufeffa: b", "a: b\n\t", "a: b\n ",
		strings.Repeat("k: v\n", 99), strings.Repeat("k: v\n", 100), strings.Repeat("k: v\n", 101), strings.Repeat("k: v\n", 6000))
	plain := 0
	for _, block := range blocks {
		if checkPlain(t, block) {
			plain++
		}
	}
	if plain < len(blocks)/10 {
		t.Errorf("of %d blocks, %d are plain", len(blocks), plain)
	}
}

// Most documents must be plain, or the fast path is useless.
func TestPlainBlockOfMostDocuments(t *testing.T) {
	for _, block := range []string{
		"name: pdf\ndescription: Fill in forms. Use it when somebody asks for a PDF.\n",
		"name: pdf\ndescription: \"Use this: forms — and more.\"\nallowed-tools: Read, Grep, Bash\nlicense: 'MIT'\n",
		"name: pdf\r\ndescription: Forms.\r\n",
	} {
		if !checkPlain(t, block) {
			t.Errorf("%q is not plain", block)
		}
	}
}

func TestPlainBlockOfDuplicates(t *testing.T) {
	doc, problems := Parse("SKILL.md", []byte("---\nname: a\nname: b\ndescription: c\n---\n"))
	if doc == nil || doc.Name != "b" || len(problems) != 1 || problems[0].Code != CodeDuplicate || problems[0].Line != 2 {
		t.Errorf("a block with a name twice is %+v, with %v", doc, problems)
	}
	if n := doc.Node(); n.Kind != yaml.MappingNode || len(n.Content) != 4 {
		t.Errorf("its node has %d parts, want 4", len(n.Content))
	}
}

func TestPlainBlockOfRealDocuments(t *testing.T) {
	file := filepath.Join("..", "..", "..", "..", "shared", "corpora", "packs.tar.gz")
	f, err := os.Open(file)
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "corpora") {
			t.Fatalf("corpora: %v", err)
		}
		t.Skip("corpora: packs.tar.gz is not there")
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	plain, all := 0, 0
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(strings.ToLower(h.Name), ".md") {
			continue
		}
		src, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		b, state := Find(src)
		if state != Closed {
			continue
		}
		all++
		if checkPlain(t, string(src[b.Start:b.End])) {
			plain++
		}
	}
	t.Logf("of %d blocks, %d are plain", all, plain)
	if plain*3 < all {
		t.Errorf("of %d blocks, only %d are plain", all, plain)
	}
}

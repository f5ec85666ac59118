package server

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const filesPack = `
-- files/SKILL.md --
---
name: files
description: Files.
---
-- files/a.md --
alpha
-- files/empty.txt --
-- files/sub/deep/b.json --
{"b": 1}
-- files/..test --
two dots
-- files/te..st --
dots inside
-- files/%2e%2e --
per cent
`

func TestReadFile(t *testing.T) {
	w := newWorld(t, filesPack)
	w.answer = decide("chat")
	binary := "\x89PNG\r\n\x1a\n\x00\x01\x02\xff"
	w.put("files/logo.png", binary, 0o644)
	w.put("files/broken.txt", strings.Repeat("good\n", 4000)+"\xff\xfe", 0o644)
	w.initialize()
	encoded := base64.StdEncoding.EncodeToString([]byte(binary))
	for _, c := range []struct {
		name string
		args map[string]any
		want map[string]any // fields that must have these values; nil: absent
	}{
		{"text", map[string]any{"path": "a.md"}, map[string]any{
			"path": "a.md", "content": "alpha\n", "encoding": "utf-8", "mime": "text/markdown", "size_bytes": 6.0, "truncated": false, "next_offset": nil, "entries": nil}},
		{"empty file", map[string]any{"path": "empty.txt"}, map[string]any{"content": "", "encoding": "utf-8", "size_bytes": 0.0, "truncated": false}},
		{"binary", map[string]any{"path": "logo.png"}, map[string]any{"content": encoded, "encoding": "base64", "mime": "image/png", "size_bytes": float64(len(binary))}},
		{"a page", map[string]any{"path": "a.md", "length": 2}, map[string]any{"content": "al", "truncated": true, "next_offset": 2.0}},
		{"the next page", map[string]any{"path": "a.md", "offset": 2, "length": 100}, map[string]any{"content": "pha\n", "truncated": false, "next_offset": nil}},
		{"at the end", map[string]any{"path": "a.md", "offset": 6}, map[string]any{"content": "", "truncated": false, "next_offset": nil}},
		{"5.0 is 5", map[string]any{"path": "a.md", "offset": 5.0}, map[string]any{"content": "\n"}},
		{"null is nothing", map[string]any{"path": "a.md", "offset": nil, "length": nil}, map[string]any{"content": "alpha\n"}},
		{"a default page is 10,000 bytes", map[string]any{"path": "broken.txt"}, map[string]any{"truncated": true, "next_offset": 10_000.0, "encoding": "utf-8"}},
		{"a broken byte makes its page base64", map[string]any{"path": "broken.txt", "offset": 19_995}, map[string]any{"encoding": "base64"}},
		{"cleaned", map[string]any{"path": "./sub/./deep/../deep/b.json"}, map[string]any{"path": "sub/deep/b.json", "mime": "application/json"}},
		{"a name that begins with dots", map[string]any{"path": "..test"}, map[string]any{"content": "two dots\n"}},
		{"a name with dots", map[string]any{"path": "te..st"}, map[string]any{"content": "dots inside\n"}},
		{"per cent signs are not decoded", map[string]any{"path": "%2e%2e"}, map[string]any{"content": "per cent\n"}},
	} {
		c.args["pack_id"] = "files"
		got := w.ok("capability_packs_read_file", c.args)
		for k, v := range c.want {
			if got[k] != v {
				t.Errorf("%s: read_file %v: %s = %v, want %v", c.name, c.args, k, got[k], v)
			}
		}
	}
}

func TestReadDirectory(t *testing.T) {
	w := newWorld(t, filesPack)
	w.answer = decide("once")
	if err := os.Mkdir(filepath.Join(w.root, "files", "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.initialize()
	show := func(path string) string {
		r := w.ok("capability_packs_read_file", map[string]any{"pack_id": "files", "path": path})
		if r["content"] != nil || r["encoding"] != nil || r["entries"] == nil {
			t.Errorf("read_file %q = %v, want entries and no content", path, r)
		}
		var b strings.Builder
		for _, e := range objects(r["entries"]) {
			fmt.Fprintf(&b, "%v:%v:%v ", e["name"], e["type"], e["size_bytes"])
		}
		return strings.TrimSpace(b.String())
	}
	for path, want := range map[string]string{
		"sub":      "deep:dir:<nil>",
		"sub/deep": "b.json:file:9",
		"sub/":     "deep:dir:<nil>",
		"empty":    "",
		".":        "%2e%2e:file:9 ..test:file:9 SKILL.md:file:40 a.md:file:6 empty:dir:<nil> empty.txt:file:0 sub:dir:<nil> te..st:file:12",
	} {
		if got := show(path); got != want {
			t.Errorf("read_file %q lists %q, want %q", path, got, want)
		}
	}
}

func TestReadFileRefuses(t *testing.T) {
	w := newWorld(t, filesPack, limited(Limits{ReadFile: 100}))
	w.answer = decide("once")
	w.put("files/big.bin", strings.Repeat("x", 101), 0o644)
	w.put("secret.txt", "outside", 0o644)
	w.initialize()
	for _, c := range []struct {
		name, code string
		args       map[string]any
	}{
		{"traversal", "path_denied", map[string]any{"path": "../secret.txt"}},
		{"traversal inside", "path_denied", map[string]any{"path": "sub/../../secret.txt"}},
		{"traversal with a slash", "path_denied", map[string]any{"path": "../"}},
		{"backslashes", "path_denied", map[string]any{"path": `..\secret.txt`}},
		{"absolute", "path_denied", map[string]any{"path": "/etc/passwd"}},
		{"a drive", "path_denied", map[string]any{"path": "C:/x"}},
		{"a stream", "path_denied", map[string]any{"path": "a.md:ads"}},
		{"NUL", "path_denied", map[string]any{"path": "a.md\x00.png"}},
		{"too large", "too_large", map[string]any{"path": "big.bin"}},
		{"not there", "not_found", map[string]any{"path": "none.md"}},
		{"below a file", "not_found", map[string]any{"path": "a.md/b"}},
		{"a name that is too long", "not_found", map[string]any{"path": strings.Repeat("n", 5000)}},
		{"past the end", "invalid_arguments", map[string]any{"path": "a.md", "offset": 7}},
		{"far past the end", "invalid_arguments", map[string]any{"path": "a.md", "offset": int64(1) << 62}},
		{"negative offset", "invalid_arguments", map[string]any{"path": "a.md", "offset": -1}},
		{"negative length", "invalid_arguments", map[string]any{"path": "a.md", "length": -5}},
		{"half a byte", "invalid_arguments", map[string]any{"path": "a.md", "offset": 1.5}},
		{"offset in words", "invalid_arguments", map[string]any{"path": "a.md", "offset": "1"}},
		{"offset beyond all numbers", "invalid_arguments", map[string]any{"path": "a.md", "offset": 1e300}},
		{"path is a number", "invalid_arguments", map[string]any{"path": 5}},
		{"path is a list", "invalid_arguments", map[string]any{"path": []string{"a.md"}}},
		{"no path", "invalid_arguments", map[string]any{}},
		{"unknown argument", "invalid_arguments", map[string]any{"path": "a.md", "encoding": "utf-16"}},
		{"unknown pack", "not_found", map[string]any{"pack_id": "filez", "path": "a.md"}},
		{"another chat's workspace", "not_found", map[string]any{"pack_id": "workspace", "path": "a", "workspace": "../../x"}},
	} {
		if c.args["pack_id"] == nil {
			c.args["pack_id"] = "files"
		}
		e := w.fails(c.code, "capability_packs_read_file", c.args)
		if e["hint"] == nil {
			t.Errorf("%s: %v has no hint", c.name, e)
		}
		if message := e["message"].(string); strings.Contains(message, w.root) || len(message) > 600 {
			t.Errorf("%s: the message is too long, or names a folder of the machine: %q", c.name, message)
		}
	}
	if len(w.asked) != 0 {
		t.Errorf("%d questions were asked, want none: what cannot be read is not worth a question", len(w.asked))
	}
}

// All pages, each read at the next_offset of the one before, are the file.
func TestPagesJoin(t *testing.T) {
	w := newWorld(t, filesPack)
	w.answer = decide("chat")
	text := strings.Repeat("aé☕🎉", 60) + "\r\n\u2028end"
	binary := string([]byte{0, 1, 2, 0xff, 0xfe, 0x80, 0}) + strings.Repeat("\xf0\x9f\x00", 150)
	w.put("files/t.txt", text, 0o644)
	w.put("files/t.bin", binary, 0o644)
	w.initialize()
	for path, want := range map[string]string{"t.txt": text, "t.bin": binary} {
		for _, length := range []int{1, 3, 64, 0} {
			var got strings.Builder
			offset := any(0)
			for pages := 0; ; pages++ {
				if pages > len(want) {
					t.Fatalf("%s by %d does not end", path, length)
				}
				page := w.ok("capability_packs_read_file", map[string]any{"pack_id": "files", "path": path, "offset": offset, "length": length})
				data := page["content"].(string)
				if page["encoding"] == "base64" {
					raw, err := base64.StdEncoding.DecodeString(data)
					if err != nil {
						t.Fatal(err)
					}
					data = string(raw)
				}
				if (page["encoding"] == "utf-8") != (path == "t.txt") {
					t.Fatalf("%s by %d: encoding %v at %v", path, length, page["encoding"], offset)
				}
				got.WriteString(data)
				next, more := page["next_offset"]
				if more != (page["truncated"] == true) {
					t.Fatalf("%s: truncated %v, next_offset %v", path, page["truncated"], next)
				}
				if !more {
					break
				}
				offset = next
			}
			if got.String() != want {
				t.Errorf("%s by %d: the pages join to %d bytes that differ from the file's %d", path, length, got.Len(), len(want))
			}
		}
	}
	long := w.ok("capability_packs_read_file", map[string]any{"pack_id": "files", "path": "t.txt", "length": int64(1) << 40})
	if long["content"] != text {
		t.Errorf("a length beyond the limit does not give what there is")
	}
}

// FS-08: the workspace is read under its own name, and every such call asks.
func TestReadWorkspace(t *testing.T) {
	needShell(t)
	w := newWorld(t, triage)
	w.answer = decide("once")
	w.initialize()
	w.enable("triage")
	ran := w.ok("triage__greet", map[string]any{"who": "Ada"})
	handle := ran["workspace"].(string)
	if len(handle) != 32 {
		t.Errorf("the workspace's handle is %q, want 128 bits", handle)
	}
	asked := len(w.asked)
	for _, args := range []map[string]any{
		{"pack_id": "workspace", "path": "made.txt"},
		{"pack_id": "workspace", "path": "made.txt", "workspace": handle},
	} {
		if got := w.ok("capability_packs_read_file", args); got["content"] != "made\n" {
			t.Errorf("read_file %v = %v", args, got)
		}
	}
	listed := w.ok("capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": "."})
	if e := objects(listed["entries"]); len(e) != 1 || e[0]["name"] != "made.txt" {
		t.Errorf("the workspace lists %v, want made.txt", listed)
	}
	if got := len(w.asked) - asked; got != 3 {
		t.Errorf("%d questions for three calls", got)
	}
	if q := w.asked[asked]; !says(q, "made.txt") || !says(q, "workspace") {
		t.Errorf("the question begins with %q", q)
	}
	w.fails("path_denied", "capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": "../other"})
	w.fails("not_found", "capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": "made.txt", "workspace": strings.Repeat("0", 32)})
}

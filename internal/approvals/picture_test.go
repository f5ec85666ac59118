package approvals

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

// pictures are files that say what they are, some of them falsely.
func pictures(t *testing.T) map[string]string {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, 3, 2), palette.Plan9)
	var p, j, g bytes.Buffer
	if png.Encode(&p, img) != nil || jpeg.Encode(&j, img, nil) != nil || gif.Encode(&g, img, nil) != nil {
		t.Fatal("the pictures could not be made")
	}
	webp := func(kind string, rest ...byte) string {
		return "RIFF\x00\x00\x00\x00WEBP" + kind + "\x00\x00\x00\x00" + string(rest) + strings.Repeat("\x00", 20)
	}
	// A PNG that says that it has a billion points, in a few bytes.
	bomb := bytes.Clone(p.Bytes())
	binary.BigEndian.PutUint32(bomb[16:], 40_000)
	binary.BigEndian.PutUint32(bomb[20:], 40_000)
	binary.BigEndian.PutUint32(bomb[29:], crc32.ChecksumIEEE(bomb[12:29]))
	return map[string]string{
		"a.png": p.String(), "b.jpeg": j.String(), "c.gif": g.String(),
		"d.webp":    webp("VP8X", 0, 0, 0, 0, 2, 0, 0, 1, 0, 0),
		"e.webp":    webp("VP8L", 0x2f, 2, 0x40, 0, 0),
		"f.webp":    webp("VP8 ", 0, 0, 0, 0x9d, 1, 0x2a, 3, 0, 2, 0),
		"bomb.png":  string(bomb),
		"bomb.webp": webp("VP8X", 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"html.png":  "<script>alert(1)</script>",
		"svg.png":   `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`,
		"short.png": p.String()[:20],
		"x.svg":     `<svg xmlns="http://www.w3.org/2000/svg"/>`,
		"large.gif": g.String(),
		"grown.gif": g.String() + strings.Repeat("\x00", maxPictureBytes),
	}
}

func TestPictures(t *testing.T) {
	r := &rooms{files: pictures(t)}
	room := Chat{ID: "chat-1"}
	for name := range r.files {
		kind := "image/" + name[strings.LastIndexByte(name, '.')+1:]
		if name == "x.svg" {
			kind = "image/svg+xml"
		}
		a := Artifact{Path: name, MIME: kind, Size: int64(len(r.files[name]))}
		if name == "large.gif" {
			a.Size = maxPictureBytes + 1
		}
		if name == "grown.gif" { // since it was looked at
			a.Size = 100
		}
		room.Artifacts = append(room.Artifacts, a)
	}
	r.files["unlisted.png"] = r.files["a.png"]
	r.chats = []Chat{room}
	d, _ := testDesk(t, func(o *Options) { o.Chats = r })
	for name, want := range map[string]string{
		"a.png": "", "b.jpeg": "", "c.gif": "", "d.webp": "", "e.webp": "", "f.webp": "",
		"bomb.png":     "40000 by 40000 points",
		"bomb.webp":    "16777216 by 16777216 points",
		"html.png":     "not a picture",
		"svg.png":      "not a picture",
		"short.png":    "not a picture",
		"x.svg":        "not a picture",
		"large.gif":    "more than 16 MiB",
		"grown.gif":    "more than 16 MiB",
		"unlisted.png": "no longer there",
		"../a.png":     "no longer there",
	} {
		body := fmt.Sprintf(`{"chat":"chat-1","key":%q,"as":"picture"}`, base64.RawURLEncoding.EncodeToString([]byte(name)))
		res, got := asPage(d, "POST /artifact", body).send(t, d)
		if want != "" {
			if res.StatusCode == 200 || !strings.Contains(got, want) {
				t.Errorf("a picture of %s = %d %s, want a refusal with %q", name, res.StatusCode, got, want)
			}
			continue
		}
		var v struct{ URL string }
		if err := json.Unmarshal([]byte(got), &v); err != nil || res.StatusCode != 200 {
			t.Errorf("a picture of %s = %d %s", name, res.StatusCode, got)
			continue
		}
		if res, got := asPage(d, "GET "+v.URL, "").with("X-Packs-Key", "").send(t, d); res.StatusCode != 200 || got != r.files[name] || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s = %d, %d bytes, want all %d", name, res.StatusCode, len(got), len(r.files[name]))
		}
	}
	// What is exchanged after the check is checked again.
	mint := fmt.Sprintf(`{"chat":"chat-1","key":%q,"as":"picture"}`, base64.RawURLEncoding.EncodeToString([]byte("a.png")))
	_, got := asPage(d, "POST /artifact", mint).send(t, d)
	var v struct{ URL string }
	if err := json.Unmarshal([]byte(got), &v); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.files["a.png"] = r.files["bomb.png"]
	r.mu.Unlock()
	if res, body := asPage(d, "GET "+v.URL, "").with("X-Packs-Key", "").send(t, d); res.StatusCode == 200 {
		t.Errorf("a picture that was exchanged = %d %.40q", res.StatusCode, body)
	}
}

// The page gets the beginning of a text, in which nothing acts.
func TestArtifactText(t *testing.T) {
	long := strings.Repeat("é", maxShownText/2+10)
	r := &rooms{files: map[string]string{"a.txt": "a\u202eb\x1b[2J\xff\n", "long.txt": "x" + long, "b.bin": "x", "c.html": "<b>", "unlisted.txt": "secret"}}
	room := Chat{ID: "chat-1"}
	for name, kind := range map[string]string{"a.txt": "text/plain", "long.txt": "text/plain", "b.bin": "application/octet-stream", "c.html": "text/html"} {
		room.Artifacts = append(room.Artifacts, Artifact{Path: name, MIME: kind})
	}
	r.chats = []Chat{room}
	d, _ := testDesk(t, func(o *Options) { o.Chats = r })
	for name, want := range map[string]string{
		"a.txt":        `200 {"text":"a\\u202eb\\x1b[2J\\xff\n","cut":false}`,
		"long.txt":     `200 {"text":"x` + strings.Repeat("é", maxShownText/2-1) + `","cut":true}`,
		"c.html":       `200 {"text":"\u003cb\u003e","cut":false}`,
		"b.bin":        `409 {"error":{"problem":"invalid","message":"this file is not text"}}`,
		"unlisted.txt": `404 {"error":{"problem":"invalid","message":"this file is no longer there"}}`,
		"":             `404 {"error":{"problem":"invalid","message":"this file is no longer there"}}`,
	} {
		body := fmt.Sprintf(`{"chat":"chat-1","key":%q}`, base64.RawURLEncoding.EncodeToString([]byte(name)))
		res, got := asPage(d, "POST /artifact/text", body).send(t, d)
		if got = fmt.Sprint(res.StatusCode, " ", strings.TrimSpace(got)); got != want {
			t.Errorf("the text of %q = %.200s, want %.200s", name, got, want)
		}
		if res, _ := asPage(d, "POST /artifact/text", body).with("X-Packs-Key", "x").send(t, d); res.StatusCode != 403 {
			t.Errorf("the text of %q without the key = %d", name, res.StatusCode)
		}
	}
}

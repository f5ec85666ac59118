package browser_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// faint lists the texts whose contrast is below 4.5 to 1, and the elements that
// are wider than the page.
const faint = `(() => {
  const lum = (c) => { const v = c.map((x) => { x /= 255; return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; }); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const rgba = (s) => s.match(/[\d.]+/g).map(Number);
  const back = (n) => { for (; n; n = n.parentElement) { const c = rgba(getComputedStyle(n).backgroundColor); if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255]; };
  const bad = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const n = walk.currentNode.parentElement, r = n.getBoundingClientRect();
    if (!walk.currentNode.textContent.trim() || !r.width || !r.height || n.closest('noscript, .unseen')) continue;
    const [a, b] = [lum(rgba(getComputedStyle(n).color)), lum(back(n))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) bad.push(n.className + ' ' + walk.currentNode.textContent.trim().slice(0, 40) + ': ' + ratio.toFixed(2));
  }
  for (const n of document.querySelectorAll('body *:not(.unseen)')) {
    if (n.getBoundingClientRect().right > innerWidth + 0.5 || n.scrollWidth > n.clientWidth + 1 && getComputedStyle(n).display !== 'inline') bad.push('too wide: ' + n.tagName + '.' + n.className);
  }
  if (document.documentElement.scrollWidth > innerWidth) bad.push('the page scrolls sideways');
  return bad;
})()`

// scheme has the page be light or dark.
func (b *tab) scheme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// The page at 400 and 1,200 pixels, light and dark: readable, and pictures of it.
func TestLooks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	q := newQueue(greet(now), lint(now))
	q.history = []queue.Past{
		{Time: now.Add(-80 * time.Second), Chat: "chat-1", Call: "c2", Title: "Enable 2 tools of pack triage?", Decision: "once", Channel: "page"},
		{Time: now.Add(-95 * time.Second), Chat: "chat-1", Call: "c1", Title: "Open the documents of pack triage?", Decision: "chat", Channel: "terminal"},
		{Time: now.Add(-140 * time.Second), Chat: "chat-1", Call: "c0", Title: "Run git push --force for pack triage?", Decision: "deny", Channel: "rule", Reason: "a rule of yours denies it"},
	}
	_, open := openDesk(t, q, theRoom(now))
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.settled()
	if *update {
		// Two pictures of the same page are the same.
		b.do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll('.soft, .who').forEach((n) => n.textContent = n.textContent.replace(/\d\d:\d\d:\d\d( [AP]M)?/g, '14:03:27'))`))
	}
	for _, scheme := range []string{"light", "dark"} {
		for name, width := range map[string]int64{"narrow": 400, "wide": 1200} {
			t.Run(scheme+" "+name, func(t *testing.T) {
				b := &tab{t: t, ctx: b.ctx}
				b.scheme(scheme)
				b.do(chromedp.EmulateViewport(width, 900))
				if got := b.faint(); len(got) > 0 {
					t.Errorf("not readable:\n%s", strings.Join(got, "\n"))
				}
				if !*update {
					return
				}
				shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.Join("..", "..", "docs", "images", fmt.Sprintf("approvals-%s-%s.png", scheme, name))
				if shot, err = fewColours(shot); err != nil {
					t.Fatal(err)
				}
				if len(shot) > 150<<10 {
					t.Errorf("%s has %d bytes, want fewer than 150 KiB", file, len(shot))
				}
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, shot, 0o644); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// fewColours makes a picture smaller: its 256 most frequent colours, and for the
// others those next to them.
func fewColours(src []byte) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(src))
	if err != nil {
		return nil, err
	}
	count := map[color.RGBA]int{}
	box := img.Bounds()
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			count[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return count[b] - count[a] })
	var palette color.Palette
	for _, c := range all[:min(256, len(all))] {
		palette = append(palette, c)
	}
	out := image.NewPaletted(box, palette)
	draw.Draw(out, box, img, box.Min, draw.Src)
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out)
	return b.Bytes(), err
}

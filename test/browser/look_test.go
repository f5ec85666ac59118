package browser_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// faint lists the texts with a contrast below 4.5 to 1, and the elements that are wider than
// the page.
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

// scheme makes the page light or dark.
func (b *tab) scheme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// The page at 375 and 1,280 pixels, light and dark, with calls about the bundled packs: it is
// readable, and equals the pictures in docs/images.
func TestLooks(t *testing.T) {
	t.Parallel()
	chromium.start(t) // skips the test if there is no browser
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git: not on this system, and the tools of git-helper run it")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	site := filepath.Join(root, "src", "site")
	if err := errors.Join(os.CopyFS(filepath.Join(root, "packs"), os.DirFS(filepath.Join("..", "..", "examples", "packs"))), os.MkdirAll(site, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"scripts/changelog.sh"} { // CopyFS does not keep execute permission
		if err := os.Chmod(filepath.Join(root, "packs", "git-helper", file), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "--allow-empty", "-m", "Start"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = site, append(os.Environ(), "HOME="+root, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	w := startWorld(t, root, "PACKS_MCP_PROJECT="+site, "PACKS_MCP_APPROVAL_WAIT=9m")
	about := func(more ...any) map[string]any {
		args := map[string]any{"pack_id": "git-helper"}
		for i := 0; i < len(more); i += 2 {
			args[more[i].(string)] = more[i+1]
		}
		return args
	}
	done := w.call("capability_packs_enable_tools", about())
	b := w.page()
	b.press("Enable 8 tools of pack git-helper?", "Enable once")
	w.want(done, false, `"enabled":true`)
	done = w.call("capability_packs_call_tool", about("tool", "branches", "arguments", map[string]any{}))
	b.press("Run tool branches of pack git-helper?", "Deny")
	w.want(done, true, "denied")
	done = w.call("capability_packs_call_tool", about("tool", "status", "arguments", map[string]any{}))
	b.press("Run tool status of pack git-helper?", "Run once")
	w.want(done, false)
	b.has("exit code 0")

	calls := []<-chan reply{
		w.call("capability_packs_call_tool", about("tool", "changelog", "arguments", map[string]any{"to": "HEAD", "title": "Release 2.1, the one with the new search"})),
	}
	b.has("1 call waits for you")
	calls = append(calls, w.call("capability_packs_open_docs", about("pack_id", "code-reviewer")))
	b.has("2 calls wait for you")
	calls = append(calls, w.call("capability_packs_read_file", about("pack_id", "code-reviewer", "path", "docs/security.md")))
	b.has("3 calls wait for you")
	b.judge("the whole page")
	if *update {
		// Make pictures reproducible: stop all animation, and replace what differs between
		// machines.
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
			for (let i = 0; i < 1000; i++) clearInterval(i);
			const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
			while (walk.nextNode()) walk.currentNode.data = walk.currentNode.data.replaceAll(%q, '/home/ada').replaceAll('cannot-ask 1.2', 'claude-desktop 1.4')
				.replace(/\d\d:\d\d:\d\d( [AP]M)?/g, '14:03:27').replace(/waits \d:\d\d more/g, 'waits 8:32 more').replace(/[2-9A-Z]{4}-[2-9A-Z]{4}/g, 'K7QM-2F9X').replace(/ \u00b7 [^ ]*(devel|[0-9a-f]{7}|v\d)[^ ]*$/, ' \u00b7 v0.1.0');
			scrollTo(0, 0);
		})()`, root)))
	}
	for _, scheme := range []string{"light", "dark"} {
		for name, width := range map[string]int64{"narrow": 375, "wide": 1280} {
			t.Run(scheme+" "+name, func(t *testing.T) {
				b := &tab{t: t, ctx: b.ctx}
				b.scheme(scheme)
				b.do(chromedp.EmulateViewport(width, 900))
				if got := b.faint(); len(got) > 0 {
					t.Errorf("not readable:\n%s", strings.Join(got, "\n"))
				}
				if *update {
					b.keep(fmt.Sprintf("approvals-%s-%s.png", scheme, name))
				}
			})
		}
	}
	b.do(chromedp.Reload())
	b.has("3 calls wait for you")
	for _, title := range []string{"Run tool changelog of pack git-helper?", "Open the documents of pack code-reviewer?", "Read docs/security.md from pack code-reviewer?"} {
		b.press(title, "Deny")
	}
	for _, done := range calls {
		w.want(done, true, "denied")
	}
}

// keep writes a picture of the page to docs/images.
func (b *tab) keep(name string) {
	b.t.Helper()
	b.still()
	shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if shot, err = fewColours(shot); err != nil {
		b.t.Fatal(err)
	}
	if len(shot) > 150<<10 {
		b.t.Errorf("%s has %d bytes, want fewer than 150 KiB", name, len(shot))
	}
	if err := os.WriteFile(filepath.Join("..", "..", "docs", "images", name), shot, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// fewColours reduces the size of a picture: it keeps the 256 most frequent colours, and
// replaces the others by the nearest of these.
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

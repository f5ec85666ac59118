package browser_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
)

// hostileFiles are what a run leaves in a folder whose changes wait for a person: names and
// contents that try to look like something else.
func hostileFiles() map[string]string {
	const html = `<script>window.owned='script'</script><img src=x onerror="window.owned='img'"><svg onload="window.owned='svg'">` +
		`<style>body,button{display:none!important}</style><a href="javascript:window.owned='a'">Apply</a><base href="//evil.example/">` +
		`<iframe srcdoc="<script>parent.owned='frame'</script>"></iframe><meta http-equiv=refresh content="0;url=//evil.example/">`
	wrap := "# a harmless remark" + strings.Repeat(" ", 400) + "-export A=safe" + strings.Repeat(" ", 400) + "+export B=safe" + strings.Repeat("x", 5000)
	return map[string]string{
		`<img src=x onerror="window.owned='name'">`: html,
		`"><svg onload=window.owned='attr' x="`:     html,
		`' onclick='window.owned=1`:                 `</span></pre></article>` + html,
		`&lt;b&gt;&#x202e;`:                         "&lt;script&gt; &amp;&#8238;\n",
		`{{constructor.constructor('owned=1')()}}`:  "${window.owned=1}`",
		`Apply`:                             "Discard\n",
		`Apply all 1`:                       "x\n",
		`Show alone`:                        "x\n",
		`and 99 more`:                       "x\n",
		`a, remove b`:                       "x\n",
		`sh). Applied: 99 changes in there`: "x\n",
		`two  spaces`:                       "x\n",
		`two spaces`:                        "y\n",
		` lead`:                             "x\n",
		`lead`:                              "y\n",
		`trail `:                            "x\n",
		`@@ -1 +1 @@`:                       "@@ -1 +1 @@\n-old\n+new\n",
		`+++ b`:                             "--- a\n+++ b\n",
		"zero\u200bwidth\u2060\ufeff":       "a\u200bb\u00adc\u2060d\ufeffe\U000e0041f\u3164g\n",
		"bytes\xff\xfe":                     "text \xff\xfe that is not UTF-8\n",
		"m\u0300\u0301\u0302\u0303\u0304\u0305arks": "z" + strings.Repeat("\u0300\u0301\u0302\u0303", 50) + "\n",
		strings.Repeat("n", 250):                    wrap + "\n",
		`bidi`:                                      "if admin\u202e \u2066// no\u2069 \u2066{\n\u200fx\u061c\n",
		`controls`:                                  "a\rb\x1b[2Jc\x08d\x0ce\u2028f\u2029g\u0085h\x7f\n",
		`page`:                                      "No call waits\n\nChanges of 0 runs wait for you\n1 change in /home\nKept until Sun 00:00.\n[Apply] [Discard]\ncreate \".vscode/other\" (harmless)\n  mode 0644\ndiff a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-removed\n+added\n\\ No newline at end of file\n",
		`long`:                                      wrap,
		`columns`:                                   strings.Repeat("\t", 40) + "-tabs\n" + strings.Repeat("寛", 300) + "-wide\n" + strings.Repeat("é ", 90) + "-spaced\n",
	}
}

// unseen are characters that act, or that nobody sees.
const unseen = `/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]|[\u{e0000}-\u{e0fff}]/u`

// A run's names and contents are shown as what they are, and never act. What they
// say of the page is not where the page says it.
func TestHostileChanges(t *testing.T) {
	t.Parallel()
	w := newProject(t)
	files := hostileFiles()
	for name, text := range files {
		w.writeIn("from", name, text)
	}
	b := w.enabled()
	w.does(b, `mkdir .vscode && cp from/* .vscode/ && cp "from/ lead" .vscode/`)
	b.has("Changes of 1 run wait for you")

	// The list.
	b.nothingActs(t)
	if n := eval[int](b, `document.querySelectorAll('#sets .files code').length`); n != len(files)+1 {
		t.Errorf("%d names are listed, want %d and the folder", n, len(files))
	}
	b.namesDiffer(t, "#sets .files code")
	if got, want := b.buttons(), []string{"Show what changes", fmt.Sprintf("Discard all %d", len(files)+1)}; !slices.Equal(got, want) {
		t.Errorf("buttons = %q, want %q", got, want)
	}

	// The diffs, at two widths.
	b.set("Show what changes")
	b.until(`document.querySelector('#sets .diff')`)
	for _, width := range []int64{300, 375, 1280} {
		b.do(chromedp.EmulateViewport(width, 1000))
		b.settled()
		b.nothingActs(t)
		b.namesDiffer(t, "#sets .diff code")
		b.rowsAreIndented(t, fmt.Sprintf("at %d pixels", width))
		if got := eval[[]string](b, faint); len(got) > 0 {
			t.Errorf("at %d pixels, not readable:\n%s", width, strings.Join(got, "\n"))
		}
	}
	want := []string{}
	for range len(files) + 1 {
		want = append(want, "Show alone")
	}
	want = append(want, fmt.Sprintf("Apply all %d", len(files)+1), fmt.Sprintf("Discard all %d", len(files)+1))
	if got := b.buttons(); !slices.Equal(got, want) {
		t.Errorf("buttons = %q, want %q", got, want)
	}
	shown := b.diffs()
	if len(shown) != len(files)+1 {
		t.Errorf("%d diffs, want %d", len(shown), len(files)+1)
	}
	for _, part := range []string{`\u202e`, `\u2066`, `\u200b`, `\ufeff`, `\U000e0041`, `\u2028`, `\x1b[2J`, `a\rb`, `\x0c`, `<script>window.owned='script'</script>`, `&lt;script&gt;`} {
		if !slices.ContainsFunc(shown, func(d shownDiff) bool { return strings.Contains(d.Added, part) }) {
			t.Errorf("no diff shows %q as added", part)
		}
	}
	for _, d := range shown {
		if d.Removed != "" {
			t.Errorf("the diff of the new file %q removes %q", d.Name, d.Removed)
		}
		name := strings.TrimPrefix(d.Name, ".vscode/")
		if name == "page" {
			var lines []string
			for line := range strings.Lines(files["page"]) {
				lines = append(lines, "+"+strings.TrimSuffix(line, "\n"))
			}
			if diff := cmp.Diff(strings.Join(lines, "\n"), d.Added); diff != "" {
				t.Errorf("what imitates the page is not all shown as added (-want +got):\n%s", diff)
			}
		}
		if d.Added == "" && files[name] != "" && name != `bytes\xff\xfe` && d.Name != ".vscode" {
			t.Errorf("the diff of %q shows nothing as added: %q", d.Name, d.Frame)
		}
		if frame := regexp.MustCompile(`(?m)^(create|mkdir) ".*" \(its name is protected: [^\n]*\)$`); !frame.MatchString(d.Frame) {
			t.Errorf("the diff of %q does not begin with what the change is: %q", d.Name, d.Frame)
		}
	}
	if !slices.ContainsFunc(shown, func(d shownDiff) bool {
		return strings.Contains(d.Frame, "sha256:") && strings.Contains(d.Name, `bytes\xff\xfe`)
	}) {
		t.Error("a file that is no text is not shown by its digest")
	}

	// No script presses a button, and no request without what was shown applies.
	eval[bool](b, `(() => { for (const n of document.querySelectorAll('#sets button')) { n.click(); n.dispatchEvent(new MouseEvent('click', {bubbles: true})); } return true; })()`)
	id := eval[string](b, `document.querySelector('#sets h2').id.replace(/^set-/, '')`)
	send := func(path string, body map[string]any, key string) int {
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		return eval[int](b, fmt.Sprintf(`fetch(%q, {method: 'POST', headers: {'Content-Type': 'application/json', 'X-Packs-Key': %s}, body: %q}).then((r) => r.status)`, path, key, data))
	}
	const key = `sessionStorage.getItem('packs-key')`
	apply := map[string]any{"set": id, "do": "apply"}
	for what, tc := range map[string]struct {
		body map[string]any
		key  string
		want int
	}{
		"without the key":             {apply, `'x'`, 403},
		"without a look":              {apply, key, 400},
		"with another token":          {map[string]any{"set": id, "do": "apply", "token": strings.Repeat("0", 64)}, key, 409},
		"of another set":              {map[string]any{"set": "x", "do": "apply", "token": "x"}, key, 409},
		"with a name that is no name": {map[string]any{"set": id, "do": "discard", "keys": []string{"../"}}, key, 400},
		"something unknown":           {map[string]any{"set": id, "do": "<b>"}, key, 400},
	} {
		if got := send("/changes/decide", tc.body, tc.key); got != tc.want {
			t.Errorf("a decision %s = %d, want %d", what, got, tc.want)
		}
	}
	// What one file's view stands for does not apply the others.
	token := eval[string](b, fmt.Sprintf(`fetch('/changes/view', {method: 'POST', headers: {'Content-Type': 'application/json', 'X-Packs-Key': %s}, body: JSON.stringify({set: %q, keys: [btoa('.vscode/Apply').replace(/=+$/, '')]})}).then((r) => r.json()).then((v) => v.token)`, key, id))
	if got := send("/changes/decide", map[string]any{"set": id, "do": "apply", "token": token}, key); got != 409 {
		t.Errorf("applying all with the token of one = %d, want 409", got)
	}
	if _, err := os.Stat(filepath.Join(w.dir, ".vscode")); err == nil {
		t.Fatal("something was applied")
	}
	b.do(chromedp.Evaluate[chromedp.Void](`window.scrollTo(0, 0)`))

	// A person applies them all, and the list of what was applied says no more.
	b.set(fmt.Sprintf("Apply all %d", len(files)+1))
	b.has(fmt.Sprintf("Applied: %d changes in %s", len(files)+1, w.dir))
	b.until(`document.querySelector('#changes').hidden && document.querySelector('#applied li:first-child code')`)
	for name, text := range files {
		if got := w.file(filepath.Join(".vscode", name)); got != text {
			t.Errorf("%q holds %.80q, want %.80q", name, got, text)
		}
	}
	b.nothingActs(t)
	b.namesDiffer(t, "#applied li:first-child code")
}

// writeIn writes a file in a folder of the project.
func (w *projectWorld) writeIn(dir, name, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Join(w.dir, dir), 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.write(filepath.Join(dir, name), text)
}

// nothingActs checks that what a run left is text in the page's own elements, all of
// which can be seen.
func (b *tab) nothingActs(t *testing.T) {
	t.Helper()
	got := eval[[]string](b, `(() => {
		const bad = [];
		if ('owned' in window) bad.push('a script ran: ' + window.owned);
		if (document.querySelectorAll('script').length !== document.querySelectorAll('head script').length) bad.push('there is a script in the body');
		for (const top of document.querySelectorAll('#changes, #applied')) {
			for (const n of top.querySelectorAll('*')) {
				if (!['ARTICLE', 'H1', 'H2', 'H3', 'P', 'UL', 'LI', 'CODE', 'DIV', 'PRE', 'SPAN', 'BUTTON'].includes(n.tagName)) bad.push('there is a ' + n.tagName);
				for (const a of n.attributes) if (!/^(class|id|type|role|tabindex|hidden|aria-[a-z]+)$/.test(a.name)) bad.push(n.tagName + ' has ' + a.name);
			}
			if (top.hidden) continue;
			const walk = document.createTreeWalker(top, NodeFilter.SHOW_TEXT);
			while (walk.nextNode()) {
				const n = walk.currentNode, p = n.parentElement;
				const odd = n.data.match(`+unseen+`);
				if (odd) bad.push('U+' + odd[0].codePointAt(0).toString(16) + ' is in ' + n.data.slice(0, 40));
				if (!n.data.trim() || p.closest('[hidden]')) continue;
				const style = getComputedStyle(p);
				if (style.visibility !== 'visible' || style.display === 'none' || style.opacity !== '1' || parseFloat(style.fontSize) < 9) bad.push('cannot be seen: ' + n.data.slice(0, 40));
				const range = document.createRange();
				range.selectNodeContents(n);
				for (const r of range.getClientRects()) if (r.left < 0 || r.right > innerWidth + 0.5) { bad.push('is out of the window: ' + n.data.slice(0, 40)); break; }
				for (let e = p; e !== document.body; e = e.parentElement) if (e.scrollHeight > e.clientHeight + 2 && getComputedStyle(e).overflowY !== 'visible') { bad.push('is cut off: ' + n.data.slice(0, 40)); break; }
			}
		}
		return bad;
	})()`)
	if len(got) > 0 {
		t.Errorf("the page:\n%s", strings.Join(got, "\n"))
	}
}

// namesDiffer checks that a person can tell names from each other.
func (b *tab) namesDiffer(t *testing.T, selector string) {
	t.Helper()
	got := eval[[]string](b, fmt.Sprintf(`(() => {
		const seen = new Set(), bad = [];
		for (const n of document.querySelectorAll(%q)) {
			if (n.innerText !== n.textContent) bad.push(JSON.stringify(n.textContent) + ' is shown as ' + JSON.stringify(n.innerText));
			if (seen.has(n.innerText)) bad.push(JSON.stringify(n.innerText) + ' is shown twice');
			seen.add(n.innerText);
			const back = getComputedStyle(n).backgroundColor;
			if (back === getComputedStyle(n.closest('.card, .room, li')).backgroundColor || back === 'rgba(0, 0, 0, 0)') bad.push('the ends of a name cannot be seen');
		}
		if (!seen.size) bad.push('there is no name');
		return bad;
	})()`, selector))
	if len(got) > 0 {
		t.Errorf("%s:\n%s", selector, strings.Join(got, "\n"))
	}
}

// rowsAreIndented checks that only the first row of a line begins where signs are.
func (b *tab) rowsAreIndented(t *testing.T, when string) {
	t.Helper()
	got := eval[[]string](b, `(() => {
		const bad = [];
		let wrapped = 0;
		for (const pre of document.querySelectorAll('#sets .diff pre')) {
			const lines = [];
			const walk = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT);
			while (walk.nextNode()) {
				let at = 0;
				for (const line of walk.currentNode.data.split('\n')) {
					if (line) lines.push([walk.currentNode, at, line]);
					at += line.length + 1;
				}
			}
			const edge = pre.getBoundingClientRect().left + parseFloat(getComputedStyle(pre).paddingLeft);
			for (const [node, at, line] of lines) {
				const range = document.createRange();
				range.setStart(node, at); range.setEnd(node, at + line.length);
				const rows = new Map(); // top → the leftmost
				for (const r of range.getClientRects()) { const top = Math.round(r.top / 4); rows.set(top, Math.min(r.left, rows.has(top) ? rows.get(top) : Infinity)); }
				const lefts = [...rows].sort((a, b) => a[0] - b[0]).map((r) => r[1]);
				if (lefts.length > 1) wrapped++;
				for (const left of lefts.slice(1)) if (left < lefts[0] + 8) { bad.push('a row begins at ' + left + ', where signs are (' + lefts[0] + '): ' + line.slice(0, 60)); break; }
			}
		}
		if (wrapped < 5) bad.push('only ' + wrapped + ' lines are wrapped');
		return bad;
	})()`)
	if len(got) > 0 {
		t.Errorf("%s:\n%s", when, strings.Join(got, "\n"))
	}
}

// buttons are the names of the buttons of what waits.
func (b *tab) buttons() []string {
	b.t.Helper()
	return eval[[]string](b, `[...document.querySelectorAll('#sets button')].map((n) => n.textContent)`)
}

// A shownDiff is what the page shows of one change.
type shownDiff struct{ Name, Frame, Added, Removed string }

func (b *tab) diffs() []shownDiff {
	b.t.Helper()
	return eval[[]shownDiff](b, `[...document.querySelectorAll('#sets .diff')].map((d) => {
		const of = (sort) => [...d.querySelectorAll('pre .' + sort)].map((n) => n.textContent).join('\n');
		return {Name: d.querySelector('code').textContent, Frame: of('frame'), Added: of('added'), Removed: of('removed')};
	})`)
}

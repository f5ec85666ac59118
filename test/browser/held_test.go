package browser_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// A projectWorld has a tool that runs a given script in the project.
type projectWorld struct {
	*world
	dir string // of the project
}

func newProject(t *testing.T) *projectWorld {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tools := strings.Replace(toolsText, `"args": ["{{name}}"]`, `"args": ["{{name}}"], "cwd": "project"`, 1)
	return &projectWorld{openWorld(t, tools, "#!/bin/sh\neval \"$1\"\n", "PACKS_MCP_PROJECT="+dir), dir}
}

// does runs a script in the project.
func (w *projectWorld) does(b *tab, script string, says ...string) {
	w.t.Helper()
	done := w.greet(script)
	b.press(greetTitle, "Run once")
	w.want(done, false, says...)
	b.has("No call waits")
}

// file returns a file of the project; "-" if there is none.
func (w *projectWorld) file(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *projectWorld) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *projectWorld) wantFile(name, want string) {
	w.t.Helper()
	if got := w.file(name); got != want {
		w.t.Errorf("%s in the project holds %q, want %q", name, got, want)
	}
}

// set presses a button on the only card of changes.
func (b *tab) set(button string) {
	b.t.Helper()
	b.takes(fmt.Sprintf(`//div[@id="sets"]//button[normalize-space()=%q]`, button), button, func() { b.until(`document.querySelector('#sets .card')`) })
}

// alone shows one of several diffs.
func (b *tab) alone(path string) {
	b.t.Helper()
	b.takes(fmt.Sprintf(`//div[@id="sets"]//div[@class="diff"][.//code[.=%q]]//button[.="Show alone"]`, path), "Show alone", func() { b.until(`document.querySelector('#sets .diff')`) })
}

// lines returns the text of all elements of a class.
func (b *tab) lines(class string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf(`[...document.querySelectorAll('#sets .%s')].map((n) => n.textContent).join('\n')`, class))
}

// Changes that a run leaves waiting appear on the page as a diff, and reach the project only
// from there.
func TestChanges(t *testing.T) {
	t.Parallel()
	w := newProject(t)
	w.write(".envrc", "export A=1\nexport B=2\n")
	b := w.enabled()

	// Applied, and undone.
	w.does(b, `echo new >plain; printf 'export A=1\nexport B=<b>evil</b>\n' >.envrc; printf '\0\1' >.npmrc`,
		`"applied":["plain"]`, "the approval page", "packs-mcp changes show")
	b.has("Changes of 1 run wait for you")
	b.has("New: 2 changes wait in " + w.dir)
	w.wantFile("plain", "new\n")
	w.wantFile(".envrc", "export A=1\nexport B=2\n")
	b.set("Show what changes")
	b.has("+export B=<b>evil</b>")
	if added, removed := b.lines("added"), b.lines("removed"); added != "+export B=<b>evil</b>" || removed != "-export B=2" {
		t.Errorf("the diff adds %q and removes %q", added, removed)
	}
	b.has("2 bytes, sha256:")

	// Discarding several takes a second step, which can be cancelled.
	b.set("Discard all 2")
	b.has("2 changes will be lost. Nothing brings them back.")
	b.set("Keep them")
	b.has("Discard all 2")
	if got := b.buttons(); slices.Contains(got, "Keep them") {
		t.Errorf("after the second step was left there are the buttons %q", got)
	}

	// One of two, separately.
	b.alone(".npmrc")
	b.until(`document.querySelectorAll('#sets .diff').length === 1`)
	b.set("Discard")
	b.has("Discarded: 1 change in " + w.dir)
	b.has("1 change in " + w.dir)
	w.wantFile(".npmrc", "-")

	b.set("Show what changes")
	b.has("+export B=<b>evil</b>")
	b.set("Apply")
	b.has("Applied: 1 change in " + w.dir)
	b.until(`document.querySelector('#changes').hidden`)

	w.does(b, `echo x >.npmrc; echo y >.yarnrc`)
	b.set("Discard all 2")
	b.set("Yes, discard all 2")
	b.has("Discarded: 2 changes in " + w.dir)
	w.wantFile(".npmrc", "-")
	w.wantFile(".envrc", "export A=1\nexport B=<b>evil</b>\n")
}

// What the user changes after looking is not overwritten, and applied changes can be
// undone.
func TestChangesSinceShown(t *testing.T) {
	t.Parallel()
	w := newProject(t)
	w.write(".envrc", "export A=1\nexport B=2\n")
	b := w.enabled()
	w.does(b, `printf 'export A=1\nexport B=<b>evil</b>\n' >.envrc; printf '\0\1' >.npmrc`)
	b.set("Show what changes")
	b.alone(".npmrc")
	b.until(`document.querySelectorAll('#sets .diff').length === 1`)
	b.set("Discard")
	b.has("Discarded: 1 change in " + w.dir)
	b.set("Show what changes")
	b.has("+export B=<b>evil</b>")
	w.write(".envrc", "export A=1\nexport B=mine\n")
	b.set("Apply")
	b.has("The folder is not as it was shown any more: look at the changes again.")
	w.wantFile(".envrc", "export A=1\nexport B=mine\n")
	b.set("Show what changes")
	b.has("-export B=mine")
	b.set("Apply")
	b.has("Applied: 1 change in " + w.dir)
	b.until(`document.querySelector('#changes').hidden`)
	w.wantFile(".envrc", "export A=1\nexport B=<b>evil</b>\n")

	// Each change is listed where it can be undone, and nowhere else.
	b.has("you applied what waited")
	b.wantEval(`[...document.querySelectorAll('#applied li')].map((n) => [...n.querySelectorAll('code')].map((c) => c.textContent).join()).join('; ')`, ".envrc")
	b.click(`//section[@id="applied"]//li[contains(., "you applied what waited")]//button`, "Undo")
	b.has("Taken back: 1 change in " + w.dir)
	w.wantFile(".envrc", "export A=1\nexport B=mine\n")

	// A decision is in the log with its channel.
	log := w.command("audit", "show", "--json")
	for _, event := range []string{"changes.apply", "changes.discard", "changes.undo"} {
		found := false
		for line := range strings.Lines(log) {
			found = found || strings.Contains(line, `"`+event+`"`) && strings.Contains(line, `"channel":"page"`)
		}
		if !found {
			t.Errorf("no line of the log has %s on the page:\n%s", event, log)
		}
	}
}

// The changes are readable on any screen.
func TestChangesLook(t *testing.T) {
	t.Parallel()
	w := newProject(t)
	w.write(".envrc", "export A=1\nexport B=2\n"+strings.Repeat("# a comment that goes on for longer than a narrow screen is wide\n", 3))
	b := w.enabled()
	w.does(b, `echo new >plain; sed -i 's/B=2/B=3/' .envrc; printf '\0\1' >.npmrc`)
	b.judge("changes that wait")
	b.picture(t, "list")
	b.set("Show what changes")
	b.has("+export B=3")
	b.judge("the changes, shown")
	b.picture(t, "diff")

	// A person who looks only at the calls is led to the changes; nothing that moves under the
	// pointer is pressed.
	b.do(chromedp.EmulateViewport(375, 300), chromedp.Evaluate[chromedp.Void](`scrollTo(0, 0)`))
	b.until(`!document.querySelector('.settling')`)
	const jumped = `document.activeElement.id === 'held' && Math.abs(document.getElementById('changes').getBoundingClientRect().top) < 50`
	b.do(chromedp.Click(`//button[.="Changes of 1 run wait below"]`))
	b.until(jumped)
	b.until(`!document.querySelector('.settling')`)
	if !eval[bool](b, `(document.getElementById('below').click(), document.querySelector('#sets .card').classList.contains('settling'))`) {
		t.Error("after a jump to the changes, a click counts at once")
	}
}

// Two pages show the same set, and only one decision counts.
func TestChangesInTwoTabs(t *testing.T) {
	t.Parallel()
	w := newProject(t)
	b := w.enabled()
	w.does(b, `echo 1 >.envrc`)
	b.set("Show what changes")
	b.has("+1")

	// The second tab is suspended, as by a slow connection: it receives nothing, and sends what
	// it shows.
	if err := os.Remove(w.shown); err != nil {
		t.Fatal(err)
	}
	w.command("approvals", "open")
	second := w.pageIn(b.another())
	second.set("Show what changes")
	second.has("+1")
	second.do(chromedp.Evaluate[chromedp.Void](`(() => {
		const real = fetch;
		window.fetch = (path, o) => path.endsWith('changes/decide') ? new Promise((go) => { window.release = go; }).then(() => real(path, o)) : real(path, o);
	})()`))
	second.set("Apply")
	second.until(`window.release`)
	b.do(chromedp.Reload()) // signing in clears what the browser stores for the address
	b.set("Show what changes")
	b.has("+1")
	b.set("Discard")
	b.has("Discarded: 1 change in " + w.dir)
	second.until(`document.querySelector('#changes').hidden`)
	second.do(chromedp.Evaluate[chromedp.Void](`release()`))
	second.has("The folder is not as it was shown any more")
	w.wantFile(".envrc", "-")

	// Without the secret, nothing is shown or done.
	for _, path := range []string{"/changes/view", "/changes/decide"} {
		got := eval[int](b, fmt.Sprintf(`fetch(%q, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'}).then((r) => r.status)`, path))
		if got != 403 {
			t.Errorf("%s without the page's secret = %d, want 403", path, got)
		}
	}
}

// picture checks that the page is readable at two widths, light and dark, and saves pictures
// of it in CHANGES_PICTURES.
func (b *tab) picture(t *testing.T, name string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{375, 1280} {
			b.scheme(scheme)
			b.do(chromedp.EmulateViewport(width, 1000))
			if got := b.faint(); len(got) > 0 {
				t.Errorf("%s at %d pixels is not readable:\n%s", scheme, width, strings.Join(got, "\n"))
			}
			b.shoot(fmt.Sprintf("%s-%s-%d", name, scheme, width))
		}
	}
}

// shoot saves a picture of the current page in CHANGES_PICTURES.
func (b *tab) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("CHANGES_PICTURES")
	if dir == "" {
		return
	}
	b.still()
	shot, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

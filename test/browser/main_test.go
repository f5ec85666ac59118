package browser_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// update rewrites the pictures in docs/images.
var update = flag.Bool("update", false, "write docs/images")

// patience is how long a test waits for one thing that must happen. Only a failing test waits
// that long. There is no limit for a tab as a whole, since many events together take long on
// a busy machine.
const patience = 30 * time.Second

// chromium is the browser of all tests; TestMain ends it.
var chromium browser

type browser struct {
	once sync.Once
	ctx  context.Context // of the browser's first tab
	err  error
	stop func()
}

// binDir is where the program is built; TestMain creates and removes it.
var binDir string

func TestMain(m *testing.M) {
	if file := os.Getenv(showVar); file != "" {
		os.Exit(show(file))
	}
	flag.Parse()
	var err error
	if binDir, err = os.MkdirTemp("", "packs-mcp-browser-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if chromium.stop != nil {
		chromium.stop()
	}
	_ = os.RemoveAll(binDir)
	os.Exit(code)
}

// start returns the browser, and starts it on first use.
func (b *browser) start(t *testing.T) context.Context {
	t.Helper()
	b.once.Do(func() {
		var path string
		for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
			if found, err := exec.LookPath(name); err == nil {
				path = found
				break
			}
		}
		if path == "" {
			b.err = fmt.Errorf("there is no chromium on the PATH")
			return
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("lang", "en-GB"),
			// Otherwise, frames of another site are not inspected.
			chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,IsolateSandboxedIframes"))
		if os.Geteuid() == 0 {
			options = append(options, chromedp.NoSandbox) // Chromium has no sandbox for root
		}
		allocated, stopAll := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, stopFirst := chromedp.NewContext(allocated)
		b.stop = func() { stopFirst(); stopAll() }
		b.ctx = ctx
		started := make(chan error, 1)
		go func() { started <- chromedp.Do(ctx) }()
		select {
		case b.err = <-started:
		case <-time.After(patience):
			b.err = fmt.Errorf("it did not start in %v", patience)
		}
	})
	if b.err != nil {
		if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "browser") {
			t.Fatalf("browser: required by PACKS_MCP_REQUIRE, but %v", b.err)
		}
		t.Skipf("browser: %v", b.err)
	}
	return b.ctx
}

// A tab is a tab of the browser. An error in its scripts fails the test.
type tab struct {
	t    *testing.T
	ctx  context.Context
	evil atomic.Bool // it shows an attacker's page, about which the browser may complain
}

// newTab opens a tab in a new window that shares nothing with others.
func newTab(t *testing.T) *tab {
	t.Helper()
	return openTab(t, chromium.start(t), chromedp.WithNewBrowserContext())
}

// another opens a second tab of the same window, with the same cookies.
func (b *tab) another() *tab {
	b.t.Helper()
	return openTab(b.t, b.ctx)
}

func openTab(t *testing.T, parent context.Context, options ...chromedp.ContextOption) *tab {
	t.Helper()
	b, err := attach(t, parent, options...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// attach is openTab for a tab that may be gone.
func attach(t *testing.T, parent context.Context, options ...chromedp.ContextOption) (*tab, error) {
	ctx, done := chromedp.NewContext(parent, options...)
	t.Cleanup(done)
	b := &tab{t: t, ctx: ctx}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page's script failed: %s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
				t.Errorf("the page's script complains: %+v", e.Args)
			}
		case *log.EventEntryAdded:
			// A 403 response comes from "network", and some tests cause one. Violations of the
			// policy come from "security".
			if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork && !b.evil.Load() {
				t.Errorf("the browser complains: %s: %s", e.Entry.Source, e.Entry.Text)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	// The tab lives as long as the context of its first action.
	return b, chromedp.Do(ctx, chromedp.EmulateViewport(1200, 900))
}

// do runs actions that must succeed.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v\nthe page: %s", err, b.look())
	}
}

// look returns what a person reads, for error messages.
func (b *tab) look() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + '\n' + document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// until waits until an expression is true on the page.
func (b *tab) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		// The error may concern a page that is about to be replaced.
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		if ok && err == nil {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("in vain waited for %s: %v\nthe page: %s", expression, err, b.look())
		case <-tick.C:
		}
	}
}

// eval returns the value of an expression.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v\nthe page: %s", expression, err, b.look())
	}
	return v
}

// has waits until a person can read the text.
func (b *tab) has(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// settled waits until clicks count.
func (b *tab) settled() {
	b.t.Helper()
	b.until(`document.querySelector('.card') && !document.querySelector('.settling')`)
}

// still waits until the page has its new size and nothing is settling, for a picture. The
// page learns of a new size with the next frame.
func (b *tab) still() {
	b.t.Helper()
	eval[bool](b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
	b.until(`!document.querySelector('.settling')`)
}

// faint returns the texts that are hard to read and the elements that are too wide, once
// nothing is settling. Both describe the same state of the page.
func (b *tab) faint() []string {
	b.t.Helper()
	b.until(`document.querySelector('.card') && !document.querySelector('.settling') && (window.faint = ` + faint + `)`)
	return eval[[]string](b, `window.faint`)
}

// press clicks the button with this text on the card with this title, with the mouse. It
// first opens the card if necessary. On a busy machine the card may move before the click,
// which then has no effect, as for a person, so press clicks again.
func (b *tab) press(card, button string) {
	b.t.Helper()
	b.takes(onCard(card, button), button, func() { b.open(card) })
}

// click clicks the button at a path, which has this text or label, until the page accepts
// the click.
func (b *tab) click(path, button string) {
	b.t.Helper()
	b.takes(path, button, func() {})
}

// label is the path of a button with this label.
func label(text string) string { return fmt.Sprintf(`//button[@aria-label=%q]`, text) }

// takes is click, with before preparing the page for each attempt.
func (b *tab) takes(path, button string, before func()) {
	b.t.Helper()
	for range 20 {
		before()
		b.until(`!document.querySelector('.settling')`)
		eval[bool](b, fmt.Sprintf(`(() => {
			window.heard = '';
			document.addEventListener('click', (e) => {
				const on = e.target.closest('button'), names = on ? [on.innerText.trim(), on.getAttribute('aria-label')] : [];
				window.heard = e.isTrusted && names.includes(%q) && !on.closest('.settling') ? 'counts' : 'does not count';
			}, {capture: true, once: true});
			return true;
		})()`, button))
		ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
		_ = chromedp.Do(ctx, chromedp.Click(path))
		cancel()
		if eval[string](b, `window.heard`) == "counts" {
			return
		}
	}
	b.t.Fatalf("%q could not be pressed: %s", button, b.look())
}

// onCard returns the path of a button with this text on the card with this title.
func onCard(card, button string) string {
	return fmt.Sprintf(`//article[.//h2[normalize-space()=%q]]//button[normalize-space()=%q]`, card, button)
}

// open opens the card with this title if it is closed.
func (b *tab) open(card string) {
	b.t.Helper()
	opened := fmt.Sprintf(`[...document.querySelectorAll('.card:not(.closed) h2')].some((n) => n.innerText.trim() === %q)`, card)
	// The tab may still be loading the page, and a script that runs then ends with the old
	// document.
	b.until(fmt.Sprintf(`[...document.querySelectorAll('.card h2')].some((n) => n.innerText.trim() === %q)`, card))
	for range 20 {
		if eval[bool](b, opened) {
			return
		}
		b.settled()
		// It may open by itself meanwhile, when the card before it disappears.
		ctx, cancel := context.WithTimeout(b.ctx, time.Second)
		_ = chromedp.Do(ctx, chromedp.Click(fmt.Sprintf(`//article[contains(@class, "closed")][.//h2[normalize-space()=%q]]/button`, card)))
		cancel()
	}
	b.t.Fatalf("the card %q was not opened: %s", card, b.look())
}

// opens shows a text file of a run, and opens it in a separate tab, where nothing in it
// runs.
func (b *tab) opens(file, text string) {
	b.t.Helper()
	b.has(file)
	b.click(label("Show "+file), "Show "+file)
	b.has("A run wrote this text")
	b.has(text)
	b.click(label("Open in a tab: "+file), "Open in a tab: "+file)
	// A busy browser may put another tab in the place of the one it announced, so the one
	// that can be attached to counts.
	var shown *tab
	for end := time.Now().Add(patience); shown == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s was not opened: %s", file, b.look())
		}
		all, err := chromedp.Targets(b.ctx)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, i := range all {
			if strings.Contains(i.URL, "/artifact/") && i.OpenerID != "" && !i.Attached {
				if at, err := attach(b.t, b.ctx, chromedp.WithTargetID(i.TargetID)); err == nil {
					shown = at
				}
				break
			}
		}
	}
	shown.has(text)
	if got := eval[string](shown, `document.contentType + ' ' + document.title + ' ' + origin`); got != "text/plain  null" {
		b.t.Errorf("%s is shown as %q, want text of no origin", file, got)
	}
}

// holdClock stops the page's clock, so that what appears or moves from now on stays new to
// it, however slow the machine is. The caller calls release.
func (b *tab) holdClock() (release func()) {
	b.t.Helper()
	eval[bool](b, `(() => { const at = performance.now(); performance.now = () => at; return true })()`)
	return func() {
		b.t.Helper()
		// A new size makes everything new, with the clock going.
		eval[bool](b, `(() => { delete performance.now; dispatchEvent(new Event('resize')); return true })()`)
	}
}

// pressNow clicks, without waiting until the page accepts that.
func (b *tab) pressNow(card, button string) {
	b.t.Helper()
	b.do(chromedp.Click(onCard(card, button)))
}

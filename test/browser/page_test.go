package browser_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	now := time.Now()
	q := newQueue()
	d, open := openDesk(t, q, nil)
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.has("No call waits")
	if got, want := eval[string](b, "location.href"), "http://"+d.Address()+"/"; got != want {
		t.Errorf("the page is at %q, want %q", got, want)
	}
	if got := eval[string](b, "document.cookie"); got != "" {
		t.Errorf("scripts see the cookie %q", got)
	}

	// A call that has just appeared cannot be answered yet.
	release := b.holdClock()
	q.add(greet(now))
	b.has("--name=Ada")
	b.pressNow("Run tool greet of pack triage?", "Run once")
	q.wantNothing(t)
	release()
	b.showsAll(greetCard())
	b.until(`document.title.startsWith('(1) ')`)
	b.until(`/^client waits 0:\d\d more$/.test(document.querySelector('.when').textContent)`)
	b.press("Run tool greet of pack triage?", "Run once")
	q.want(t, "K7QM-2F9X once page map[]")
	b.has("No call waits")
	b.has("Allowed: Run tool greet of pack triage.")
	b.has("allowed once on this page")

	// Two at once, with separate answers.
	two := named(greet(now), "CCCC-CCCC", "Run tool close of pack triage?")
	q.edit(func() { q.pending = []queue.Pending{greet(now), two, lint(now)} })
	b.has("3 calls wait for you")
	b.has("1 of 3 · client waits 0:")
	b.press("Run tool close of pack triage?", "Deny")
	q.want(t, "CCCC-CCCC deny page map[]")
	b.has("2 calls wait for you")
	b.press("Run tool greet of pack triage?", "Always")
	q.want(t, "K7QM-2F9X always page map[]")
	b.has("1 call waits for you")
	b.press("Open the documents of pack acme/lint?", "Open once")
	q.want(t, "B3XD-77HN once page map[]")
	b.has("Tell the model to go on: the client has to make the call again.")
}

// showsAll checks that the open card shows every fact of its question as text, in its
// section.
func (b *tab) showsAll(want prompt.Card) {
	b.t.Helper()
	b.settled()
	for _, n := range eval[[]int](b, `[...document.querySelectorAll('.card details:not([open])')].map((n, i) => i)`) {
		b.do(chromedp.Click(fmt.Sprintf(`(//article//details)[%d]/summary`, n+1)))
	}
	type fact struct{ Section, Label, Value string }
	got := eval[[]fact](b, `[...document.querySelectorAll('.card .facts dd')].map((n) => ({
		Section: n.closest('details').querySelector('summary').innerText, Label: n.parentElement.querySelector('dt').innerText, Value: n.innerText}))`)
	sections := map[prompt.Section]string{"change": "What changed", "call": "What was asked for", "access": "What it may read and change", "run": "Exactly what runs", "pack": "The pack"}
	for _, f := range want.Facts {
		if !slices.Contains(got, fact{sections[f.Section], f.Label, f.Value}) {
			b.t.Errorf("the card does not show %q under %q as %q:\n%q", f.Value, sections[f.Section], f.Label, got)
		}
	}
	if len(got) != len(want.Facts) {
		b.t.Errorf("the card shows %d facts, want %d", len(got), len(want.Facts))
	}
	all := eval[string](b, `document.querySelector('.card:not(.closed)').innerText`)
	texts := []string{want.Title, want.Command}
	for _, m := range want.Marks {
		texts = append(texts, m.Text)
	}
	for _, q := range want.Quotes {
		texts = append(texts, q.Who, q.Text)
	}
	at := 0
	for i, text := range texts {
		// The title, the command and the important facts come in this order.
		from := strings.Index(all[at:], text)
		if from < 0 {
			b.t.Errorf("the card does not show %q after what matters more:\n%s", text, all)
		} else if i < 2+len(want.Marks) {
			at += from
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	now := time.Now()
	q := newQueue(greet(now), lint(now))
	_, open := openDesk(t, q, nil)
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.settled()
	// Nothing has the focus, so keys answer nothing.
	b.do(chromedp.KeyEvent("o"), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(" "))
	focus := `document.activeElement.closest('.card')?.querySelector('h2').textContent`
	b.do(chromedp.KeyEvent("j"))
	b.until(focus + ` === 'Run tool greet of pack triage?'`)
	b.do(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(" "), chromedp.KeyEvent("x"), chromedp.KeyEvent("O"))
	b.do(chromedp.KeyEvent("j"))
	b.until(focus + ` === 'Open the documents of pack acme/lint?'`)
	b.do(chromedp.KeyEvent("o"), chromedp.KeyEvent("d")) // it is closed, so nobody has read it
	b.do(chromedp.KeyEvent(kb.ArrowUp))
	b.until(focus + ` === 'Run tool greet of pack triage?'`)
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	b.until(`document.activeElement.querySelectorAll('button[data-choice]').length === 2`)
	b.settled()
	b.do(chromedp.KeyEvent("c")) // not offered
	b.do(chromedp.KeyEvent("k"))
	b.until(focus + ` === 'Run tool greet of pack triage?'`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.until(`document.activeElement.querySelectorAll('button[data-choice]').length === 4`)
	b.settled()
	q.wantNothing(t)
	b.do(chromedp.KeyEvent("c"))
	q.want(t, "K7QM-2F9X chat page map[]")
	// Pressing the key again does not reach the next call.
	b.has("1 call waits for you")
	b.settled()
	b.do(chromedp.KeyEvent("d"), chromedp.KeyEvent("o"))
	b.until(`document.activeElement.id === 'count'`)
	q.wantNothing(t)
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("d"))
	q.want(t, "B3XD-77HN deny page map[]")
}

// A call whose client is gone is allowed only if the box is ticked, by mouse or by key, and
// the appearance of the box answers nothing.
func TestClientGone(t *testing.T) {
	t.Parallel()
	const gone, box = "The client is gone. Run it anyway.", `document.querySelector('.card input[type=checkbox]')`
	call := greet(time.Now())
	q := newQueue(call)
	_, open := openDesk(t, q, nil)
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.settled()
	if got := eval[bool](b, box+" === null"); !got {
		t.Error("there is a box while the client is there")
	}
	leave := func(code string) {
		q.edit(func() {
			left := greet(time.Now())
			left.Code, left.Gone, left.Note = code, true, "The client is gone, so nobody may take the result."
			q.pending = []queue.Pending{left}
		})
		b.has(gone)
		b.settled()
	}
	leave(call.Code)
	if got := eval[bool](b, box+".checked"); got {
		t.Error("the box is ticked from the start")
	}
	for _, button := range []string{"Run once", "Always"} {
		b.press(call.Title, button)
		b.has("The client is gone. Choose “Run it anyway” first, or deny the call.")
		b.until(`document.activeElement === ` + box)
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("o"))
	b.until(`document.activeElement === ` + box)
	q.wantNothing(t)
	b.do(chromedp.Click(fmt.Sprintf(`//label[normalize-space()=%q]`, gone)))
	b.until(box + ".checked")
	q.wantNothing(t)
	b.press(call.Title, "Run once")
	q.want(t, "K7QM-2F9X once page map[] though its client is gone")
	b.has("No call waits")

	// The tick was for that call, and a denial needs none.
	leave("DDDD-DDDD")
	if got := eval[bool](b, box+".checked"); got {
		t.Error("the box of the next call is ticked")
	}
	b.press(call.Title, "Run once")
	b.has("Choose “Run it anyway” first")
	b.press(call.Title, "Deny")
	q.want(t, "DDDD-DDDD deny page map[]")
}

// When calls come or go, the focus and typed text stay; what moved under the pointer cannot
// be answered for a moment.
func TestUpdates(t *testing.T) {
	t.Parallel()
	now := time.Now()
	first, second := greet(now), lint(now)
	second.Fields = []call.Field{{Name: "city", Title: "City to look up"}}
	q := newQueue(first, second)
	_, open := openDesk(t, q, nil)
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.settled()
	b.press(second.Title, "Open once")
	b.has("Fill in “City to look up” first, or deny the call.")
	b.until(`document.activeElement.name === 'city'`)
	b.do(chromedp.KeyEvent("Rrdj")) // typed, not meant as keys
	b.open(first.Title)
	b.open(second.Title)
	third := named(greet(now), "DDDD-DDDD", "Run tool close of pack triage?")
	q.add(third)
	b.has("3 calls wait for you")
	b.has("New: Run tool close of pack triage?")
	release := b.holdClock()
	q.drop(first.Code) // everything moves up
	b.has("2 calls wait for you")
	b.pressNow(second.Title, "Open once")
	b.do(chromedp.Focus(chromedp.CSS(`input[name=city]`)))
	b.do(chromedp.KeyEvent("o"))
	q.wantNothing(t)
	release()
	if got := eval[string](b, `document.querySelector('input').value`); got != "Rrdjo" {
		t.Errorf("the field has %q, want what was typed", got)
	}
	b.press(second.Title, "Open once")
	q.want(t, "B3XD-77HN once page map[city:Rrdjo]")

	// The pack changed meanwhile: the answer is refused, and the call asks again.
	q.edit(func() {
		q.refuse = &queue.CodeError{Code: third.Code, Problem: queue.CodeWithdrawn, Detail: "the pack changed"}
	})
	b.press(third.Title, "Run once")
	b.has("The call DDDD-DDDD: the pack changed.")
	again := third
	again.Code = "EEEE-EEEE"
	again.Card.Facts = append([]prompt.Fact{{Role: prompt.RoleChange, Section: prompt.SectionChange, Label: "changed", Value: "the file greet.py changed", Weight: prompt.Danger}}, again.Card.Facts...)
	q.edit(func() { q.refuse, q.pending = nil, []queue.Pending{again} })
	b.has("the file greet.py changed") // without a click
	b.press(third.Title, "Run once")
	q.want(t, "EEEE-EEEE once page map[]")

	// Allowed but not repeated yet: it can still be withdrawn.
	held := lint(now)
	held.Answered, held.Note = queue.Once, "Allowed. It holds once."
	q.add(held)
	b.has("Your answer holds for 8:")
	if got := eval[int](b, `document.querySelectorAll('.card button').length`); got != 1 {
		t.Errorf("an answered call has %d buttons, want 1", got)
	}
	b.press(held.Title, "Deny after all")
	q.want(t, "B3XD-77HN deny page map[]")
}

// If a client makes a line of the card longer, no button takes another's place.
func TestNothingMovesUnderThePointer(t *testing.T) {
	t.Parallel()
	now := time.Now()
	call := greet(now)
	q := newQueue(call)
	_, open := openDesk(t, q, nil)
	b := newTab(t)
	b.do(chromedp.EmulateViewport(330, 900), chromedp.Navigate(open()))
	b.settled()
	const places = `[...document.querySelectorAll('.card button')].map((n) => n.getBoundingClientRect().top).join()`
	before := eval[string](b, places)
	noted := call
	noted.Note = "The client declined. If it did so by itself, answer here."
	q.edit(func() { q.pending = []queue.Pending{noted} })
	b.has("The client declined.")
	if got := eval[string](b, places); got != before {
		t.Errorf("a note moves the buttons from %s to %s", before, got)
	}
	// The call returns, and the line about its time wraps into two.
	noted.Waits = time.Time{}
	release := b.holdClock()
	q.edit(func() { q.pending = []queue.Pending{noted} })
	b.has("The client stopped waiting.")
	b.pressNow(call.Title, "Always")
	q.wantNothing(t)
	release()
	if got := eval[string](b, places); got == before {
		t.Errorf("the buttons stay at %s: this test shows nothing", got)
	}
	b.press(call.Title, "Deny")
	q.want(t, "K7QM-2F9X deny page map[]")
}

func TestReloadAndTabs(t *testing.T) {
	t.Parallel()
	now := time.Now()
	q := newQueue(greet(now))
	d, open := openDesk(t, q, nil)
	b := newTab(t)
	link := open()
	b.do(chromedp.Navigate(link))
	b.has("1 call waits for you")
	b.do(chromedp.Reload())
	b.has("1 call waits for you")
	// The key belongs to one tab: another tab of the window must sign in.
	second := b.another()
	second.do(chromedp.Navigate("http://" + d.Address() + "/"))
	second.has("This page is not signed in")
	second.do(chromedp.Navigate(open()))
	second.has("1 call waits for you")
	b.do(chromedp.Reload()) // signing in cleared what the browser stores for the address
	b.has("1 call waits for you")
	second.press("Run tool greet of pack triage?", "Run once")
	q.want(t, "K7QM-2F9X once page map[]")
	b.has("No call waits")

	// The file works once, and a separate window is not signed in.
	other := newTab(t)
	other.do(chromedp.Navigate("http://" + d.Address() + "/"))
	other.has("This page is not signed in")
	other.has("packs-mcp approvals open")
	again := open()
	other.do(chromedp.Navigate(again))
	other.has("Connected") // only then does the page know of no call either
	other.has("No call waits")
	if err := d.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	b.has("Disconnected: the server has ended")
	other.has("Disconnected: the server has ended")
}

// If the browser blocks storage, a page in the same style says so instead of the page.
func TestBrowserThatStoresNothing(t *testing.T) {
	t.Parallel()
	_, open := openDesk(t, newQueue(greet(time.Now())), nil)
	b := newTab(t)
	if _, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `Storage.prototype.setItem = () => { throw new DOMException('no', 'SecurityError') }`,
	}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(open()))
	b.has("This browser lets the page store nothing, so it cannot be used. Answer in a terminal: packs-mcp approvals")
	if got := eval[string](b, `document.getElementById('state').checkVisibility() + ' ' + getComputedStyle(document.querySelector('main')).borderRadius`); got != "false 12px" {
		t.Errorf("it still says that it opens, or has no style: %s", got)
	}
}

// Without its key, which is not in the cookie, the page gets nothing, and says so.
func TestStalePage(t *testing.T) {
	t.Parallel()
	q := newQueue(greet(time.Now()))
	_, open := openDesk(t, q, nil)
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.has("1 call waits for you")
	b.do(chromedp.Evaluate[chromedp.Void](`sessionStorage.setItem('packs-key', 'stale')`), chromedp.Reload())
	b.has("This page is not signed in. Run: packs-mcp approvals open")
	if got := eval[int](b, `document.querySelectorAll('.card').length`); got != 0 {
		t.Errorf("a stale page shows %d calls", got)
	}
}

// Another server on this host gets the cookie, but cannot use it.
func TestOtherPort(t *testing.T) {
	t.Parallel()
	q := newQueue(greet(time.Now()))
	// As on systems where all servers share one address.
	d, open := openDeskAt(t, q, nil, "127.0.0.1:0")
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.has("1 call waits for you")

	cookies := make(chan string, 10)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookies <- r.Header.Get("Cookie")
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,"><title>evil</title><form method="post" action="http://%s/decide" enctype="text/plain"><input name='{"code":"K7QM-2F9X","decision":"once","a":"' value='"}'></form><iframe id="f"></iframe>`, d.Address())
	}))
	defer evil.Close()
	b.evil.Store(true)
	b.do(chromedp.Navigate(evil.URL))
	if got := <-cookies; !strings.Contains(got, "packs-mcp-") {
		t.Errorf("the other server got %q: this test shows nothing", got)
	}
	// Its scripts run without console errors failing the test, since this test is about
	// them.
	attempt := func(what, script string) string {
		return eval[string](b, fmt.Sprintf(`(async () => { const u = 'http://%s'; try { %s } catch (e) { return 'refused' } })()`, d.Address(), script)) + " " + what
	}
	for what, script := range map[string]string{
		"a decision":     `const r = await fetch(u + '/decide', {method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"code":"K7QM-2F9X","decision":"once"}'}); return r.type === 'opaque' ? 'refused' : 'read'`,
		"reading":        `return (await (await fetch(u + '/', {mode: 'same-origin', credentials: 'include'})).text()) && 'read'`,
		"a frame":        `const f = document.getElementById('f'); await new Promise((d) => { f.onload = d; f.src = u + '/' }); try { return f.contentDocument ? 'read' : 'refused' } catch { return 'refused' }`,
		"a script of it": `await new Promise((ok, no) => { const s = document.createElement('script'); s.onload = ok; s.onerror = no; s.src = u + '/page.js'; document.head.append(s) }); return 'read'`,
		"what it kept":   `return sessionStorage.getItem('packs-key') || localStorage.length ? 'read' : 'refused'`,
		"a stylesheet":   `await new Promise((ok, no) => { const s = document.createElement('link'); s.rel = 'stylesheet'; s.onload = ok; s.onerror = no; s.href = u + '/page.css'; document.head.append(s) }); return 'read'`,
	} {
		if got := attempt(what, script); got != "refused "+what {
			t.Errorf("another port: %s", got)
		}
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.forms[0].submit()`))
	b.has("is not signed in")
	q.wantNothing(t)
}

func TestRooms(t *testing.T) {
	t.Parallel()
	now := time.Now()
	q := newQueue()
	q.history = []queue.Past{{Time: now, Chat: "chat-1", Call: "c1", Title: "Run tool greet of pack triage?", Decision: "once", Channel: "elicitation", Run: "run-1"}}
	r := theRoom(now)
	_, open := openDesk(t, q, r)
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.has("allowed once in the client · running")
	q.edit(func() { q.history[0].Outcome = "exit code 0" })
	b.has("allowed once in the client · exit code 0")

	attached := func(pack string) string {
		return fmt.Sprintf("Pack %s is attached to this chat", pack)
	}
	b.click(label(attached("acme/lint")), attached("acme/lint"))
	b.until(fmt.Sprintf(`document.querySelector('[role=switch][aria-label=%q]').getAttribute('aria-checked') === 'true'`, attached("acme/lint")))
	b.has("Attached: acme/lint")
	r.mu.Lock()
	r.refuse = errors.New("it cannot be detached now")
	r.mu.Unlock()
	b.click(label(attached("triage")), attached("triage"))
	b.has("It cannot be detached now.")

	// A file opens in a separate tab, where nothing in it runs.
	b.opens("out/report.txt", "all is well")
	b.opens("out/page.html", "<script>document.title='ran'</script>")
	if got := eval[bool](b, `document.querySelector('button[aria-label="Show out/data.bin"]').hidden`); !got {
		t.Error("a binary file can be shown")
	}
}

// What a screen reader announces.
func TestAccessibility(t *testing.T) {
	t.Parallel()
	now := time.Now()
	second := lint(now)
	second.Fields = []call.Field{{Name: "city", Title: "City to look up"}}
	q := newQueue(greet(now), second)
	_, open := openDesk(t, q, theRoom(now))
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.settled()
	have := map[string]bool{}
	read := func() {
		t.Helper()
		tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range tree.Nodes {
			if n.Role == nil || n.Ignored {
				continue
			}
			line := strings.Trim(string(n.Role.Value), `"`) + ": "
			if n.Name != nil {
				line += strings.Trim(string(n.Name.Value), `"`)
			}
			if n.Description != nil && string(n.Description.Value) != `""` {
				line += " (" + strings.Trim(string(n.Description.Value), `"`) + ")"
			}
			have[line] = true
		}
	}
	read()
	b.open(second.Title)
	read()
	for _, want := range []string{
		"main: ", "banner: ", "complementary: History, packs and files",
		"heading: 2 calls wait for you", "heading: Run tool greet of pack triage?", "article: Run tool greet of pack triage?",
		"button: Run once. Run tool greet of pack triage? (Once: this exact call, one time.)",
		"button: This chat. Run tool greet of pack triage? (This chat: this tool with any valid arguments, until this client closes.)",
		"button: Always. Run tool greet of pack triage? (Always: this tool with any valid arguments, in every client, until anything about it changes.)",
		"button: Deny. Run tool greet of pack triage?",
		"button: Show: Open the documents of pack acme/lint?", "list: What matters", "DisclosureTriangle: Exactly what runs",
		"button: Open once. Open the documents of pack acme/lint? (Once: this exact call, one time.)",
		"group: Your answer", "textbox: City to look up",
		"switch: Pack triage is attached to this chat", "button: Download out/report.txt", "status: ",
		"heading: History", "heading: Packs", "list: Packs",
	} {
		if !have[want] {
			t.Errorf("the accessibility tree has no %q", want)
		}
	}
	if t.Failed() {
		for n := range have {
			t.Log(n)
		}
	}
	// Buttons come in reading order, after the call.
	got := eval[string](b, `[...document.querySelectorAll('.card')][0].querySelectorAll('button').length + ' ' +
		[...document.querySelectorAll('[tabindex]')].filter((n) => n.tabIndex > 0).length`)
	if got != "1 0" {
		t.Errorf("buttons of the closed call, and elements out of order = %q, want 1 and 0", got)
	}
}

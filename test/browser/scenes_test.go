package browser_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/packs-mcp/packs-mcp/internal/approvals"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// Three calls arrive at once: one is open, the others take a line each, and the next one
// opens when the first is answered.
func TestThreeAtOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	q := newQueue(greet(now), lint(now), named(greet(now.Add(5*time.Second)), "CCCC-CCCC", "Run tool close of pack triage?"))
	_, open := openDesk(t, q, theRoom(now))
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.has("3 calls wait for you")
	const openCards = `[...document.querySelectorAll('.card:not(.closed) h2')].map((n) => n.innerText).join('; ')`
	b.wantEval(openCards, "Run tool greet of pack triage?")
	b.wantEval(`[...document.querySelectorAll('.when')].map((n) => n.innerText.replace(/\d:\d\d/, 'T')).join('; ')`, "1 of 3 · client waits T more; 2 of 3 · T left; 3 of 3 · client waits T more")
	// Warnings are also on a closed card.
	b.wantEval(`document.querySelector('.card.closed .marks').innerText.replace(/\s+/g, ' ').trim()`, "Careful: not trusted")
	b.judge("three at once")
	b.picture(t, "three")

	b.press("Run tool greet of pack triage?", "Run once")
	q.want(t, "K7QM-2F9X once page map[]")
	b.has("2 calls wait for you")
	b.wantEval(openCards, "Open the documents of pack acme/lint?")
	// Answer the last one first; the one before it stays.
	b.press("Run tool close of pack triage?", "Deny")
	q.want(t, "CCCC-CCCC deny page map[]")
	b.wantEval(openCards, "Open the documents of pack acme/lint?")
}

// Nobody answers in time: the card says so at once, without the server, and disappears.
func TestExpiry(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := greet(now)
	p.Expires = now.Add(4 * time.Second)
	p.Waits = time.Time{}
	q := newQueue(p, lint(now))
	_, open := openDesk(t, q, nil)
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.has("2 calls wait for you")
	b.do(chromedp.KeyEvent("j"))
	b.has("Expired. Ask the model to try again.")
	b.has("1 call waits for you")
	b.wantEval(`String(document.querySelectorAll('.card.over button').length)`, "0")
	b.until(`document.activeElement.id === 'count'`) // so no key reaches the next call
	b.do(chromedp.KeyEvent("o"))
	b.judge("expiry")
	b.picture(t, "expired")
	b.until(`!document.querySelector('.card.over')`)
	q.wantNothing(t)
}

// A call that was decided elsewhere or withdrawn says so and disappears.
func TestOver(t *testing.T) {
	t.Parallel()
	now := time.Now()
	q := newQueue(greet(now), lint(now), named(greet(now), "CCCC-CCCC", "Run tool close of pack triage?"))
	_, open := openDesk(t, q, nil)
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.has("3 calls wait for you")
	b.settled()
	q.end(queue.CodeError{Code: "K7QM-2F9X", Problem: queue.CodeAnswered, Detail: queue.Answered(queue.Once, queue.ChannelTerminal, now)})
	b.has("It was answered before: allowed, in a terminal at ")
	b.has("2 calls wait for you")
	q.end(queue.CodeError{Code: "B3XD-77HN", Problem: queue.CodeWithdrawn, Detail: "its client closed"})
	b.has("Withdrawn: its client closed.")
	q.end(queue.CodeError{Code: "CCCC-CCCC", Problem: queue.CodeExpired, Detail: "nobody answered until 14:03:27"})
	b.has("Expired. Ask the model to try again.")
	b.has("No call waits")
	b.until(`!document.querySelector('.card')`)
	b.has("Leave this page open")
}

// end removes a call from the queue, as the gate does.
func (q *fakeQueue) end(e queue.CodeError) {
	q.edit(func() { q.ended = append(slices.Clip(q.ended), e) })
	q.drop(e.Code)
}

// A call that has returned says what a late answer does.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := greet(now)
	p.Waits, p.Note = time.Time{}, "Nobody answered within 45 s."
	q := newQueue(p)
	_, open := openDesk(t, q, nil)
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.until(`/^The client stopped waiting\. Answer within 9:\d\d, then tell the model to go on\.$/.test(document.querySelector('.time').innerText)`)
	b.judge("late answer")
	b.picture(t, "late")
	b.press(p.Title, "Run once")
	b.has("Tell the model to go on: the client has to make the call again.")
	q.want(t, "K7QM-2F9X once page map[]")
}

// Keys answer the focused card if it is open.
func TestKeysLook(t *testing.T) {
	t.Parallel()
	now := time.Now()
	q := newQueue(greet(now), lint(now))
	_, open := openDesk(t, q, nil)
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.settled()
	b.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), chromedp.KeyEvent(kb.Enter))
	b.until(`document.activeElement.querySelectorAll('button[data-choice]').length === 2`)
	b.judge("keys")
	b.picture(t, "keys")
}

// A long command is folded and says how much is hidden; it can be shown in full. It wraps
// between words, and nothing is wider than the narrowest window.
func TestLongCommand(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := greet(now)
	p.Card.Command = "./changelog.sh --title '" + strings.Repeat("a word and another ", 60) + "' --to=HEAD --then=the-end"
	q := newQueue(p)
	_, open := openDesk(t, q, nil)
	b := newTab(t)
	b.do(chromedp.EmulateViewport(375, 900), chromedp.Navigate(open()))
	b.settled()
	shown := eval[string](b, `document.querySelector('.command').innerText`)
	hidden := len(p.Card.Command) - 300
	for _, want := range []string{"./changelog.sh --title 'a word", fmt.Sprintf("Show all: %d more characters", hidden), "--to=HEAD --then=the-end"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the folded command lacks %q: %q", want, shown)
		}
	}
	// No other answer is in the row of "Deny".
	if got := eval[string](b, `(() => {
		const all = [...document.querySelectorAll('.answers button')].map((n) => [n.innerText, n.getBoundingClientRect()]);
		const deny = all.find(([name]) => name === 'Deny')[1];
		return all.filter(([, r]) => r.bottom > deny.top - 8).map(([name]) => name).join();
	})()`); got != "Deny" {
		t.Errorf("at 375 pixels %q are in one row", got)
	}
	b.picture(t, "long")
	b.do(chromedp.EmulateViewport(375, 900))
	b.settled()
	b.do(chromedp.Click(chromedp.CSS(`.unfold`)))
	b.wantEval(`document.querySelector('.command code').textContent`, p.Card.Command)
	if got := b.faint(); len(got) > 0 {
		t.Errorf("not readable:\n%s", strings.Join(got, "\n"))
	}
	q.wantNothing(t)
}

// Right-to-left letters do not reorder the text between them: what comes first in the text
// is leftmost on the screen.
func TestRightToLeft(t *testing.T) {
	t.Parallel()
	const line = "if x == \u05d0\u05d1 - 5 > 10 + \u05d2\u05d3 (\u0627\u0628) end"
	now := time.Now()
	p := greet(now)
	p.Card.Command = line
	p.Card.Facts = append([]prompt.Fact{{Role: "folder", Section: prompt.SectionChange, Label: "folder", Value: line, Weight: prompt.Plain}}, p.Card.Facts...)
	q := newQueue(p)
	sets := &fakeSets{sets: []approvals.ChangeSet{{
		ID: "20261123-0900", Pack: "triage", Tool: "greet", Folder: "/home/ada/site", Made: now, Expires: now.Add(time.Hour),
		Held: []approvals.Change{{Path: "a" + line, Kind: "create", Reason: "its name is protected"}},
	}}, diff: "diff a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-" + line + "\n+" + line + " more\n"}
	_, open := openDeskWith(t, q, nil, func(o *approvals.Options) { o.Changes = sets })
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	b.settled()
	b.set("Show what changes")
	b.has("end more")
	// The positions, from the left, of the signs between the letters.
	got := eval[[]string](b, `(() => {
		const bad = [];
		const places = [...document.querySelectorAll('.command code, .card .facts dd, .diff code, .diff pre span')];
		let seen = 0;
		for (const place of places) {
			const walk = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
			const at = [];
			while (walk.nextNode()) {
				const n = walk.currentNode;
				for (let i = 0; i < n.data.length; i++) {
					if (!/[-+>5()]|1(?=0)|[\u05d0\u05d2\u0627]/.test(n.data[i])) continue;
					const range = document.createRange();
					range.setStart(n, i); range.setEnd(n, i + 1);
					const r = range.getBoundingClientRect();
					at.push([n.data[i], r.left, Math.round(r.top)]);
				}
			}
			if (!place.textContent.includes('\u05d0')) continue;
			seen++;
			// Signs in the order of the text; letters count as their word's place.
			const signs = at.filter((a) => !/[\u05d0\u05d2\u0627]/.test(a[0])), letters = at.filter((a) => /[\u05d0\u05d2\u0627]/.test(a[0]));
			for (const list of [signs, letters]) {
				for (let i = 1; i < list.length; i++) {
					if (list[i][2] === list[i - 1][2] && list[i][1] < list[i - 1][1]) bad.push(place.className + ': ' + list[i][0] + ' is left of ' + list[i - 1][0] + ' in ' + place.textContent);
				}
			}
		}
		if (seen < 4) bad.push('only ' + seen + ' places have such letters');
		return bad;
	})()`)
	if len(got) > 0 {
		t.Errorf("reordered:\n%s", strings.Join(got, "\n"))
	}
	b.picture(t, "rtl")
}

// fakeSets contains one set of changes.
type fakeSets struct {
	sets []approvals.ChangeSet
	diff string
}

func (s *fakeSets) Sets() ([]approvals.ChangeSet, error) { return s.sets, nil }
func (s *fakeSets) Changes() <-chan struct{}             { return nil }

func (s *fakeSets) View(context.Context, string, []string) (approvals.ChangeView, error) {
	return approvals.ChangeView{Diffs: []approvals.Diff{{Path: s.sets[0].Held[0].Path, Text: s.diff}}, Token: "t"}, nil
}

func (s *fakeSets) Apply(context.Context, string, string, []string) (approvals.ChangeResult, error) {
	return approvals.ChangeResult{}, errors.New("not here")
}

func (s *fakeSets) Discard(context.Context, string, []string) (approvals.ChangeResult, error) {
	return approvals.ChangeResult{}, errors.New("not here")
}

func (s *fakeSets) Undo(context.Context, string) (approvals.ChangeResult, error) {
	return approvals.ChangeResult{}, errors.New("not here")
}

// A run leaves a picture, and files that falsely claim to be pictures.
func TestPictures(t *testing.T) {
	t.Parallel()
	img := image.NewRGBA(image.Rect(0, 0, 320, 160))
	for x := range 320 {
		for y := range 160 {
			img.Set(x, y, color.RGBA{uint8(x * 255 / 320), 120, uint8(y * 255 / 160), 255})
		}
	}
	var chart bytes.Buffer
	if err := png.Encode(&chart, img); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	r := &rooms{chat: approvals.Chat{ID: "chat-1", Client: "claude 1.4.2"}, files: map[string]string{
		"out/chart.png": chart.String(), "out/false.png": "<script>document.title='ran'</script>",
		"out/x.svg": `<svg xmlns="http://www.w3.org/2000/svg"><script>document.title='ran'</script></svg>`, "out/a.txt": "plain \u05d0 \u202e text\n",
	}}
	for name, kind := range map[string]string{"out/chart.png": "image/png", "out/false.png": "image/png", "out/x.svg": "image/svg+xml", "out/a.txt": "text/plain"} {
		r.chat.Artifacts = append(r.chat.Artifacts, approvals.Artifact{Path: name, Size: int64(len(r.files[name])), MIME: kind, Modified: now})
	}
	_, open := openDesk(t, newQueue(greet(now)), r)
	b := newTab(t)
	b.do(chromedp.Navigate(open()))
	show := func(file string) {
		b.t.Helper()
		b.has(file)
		b.click(label("Show "+file), "Show "+file)
	}
	show("out/chart.png")
	b.until(`document.querySelector('figure img')?.naturalWidth === 320`)
	b.has("A run made this picture")
	show("out/false.png")
	b.has("This file is not a picture that can be shown.")
	show("out/x.svg")
	b.has("document.title='ran'</script></svg>")
	show("out/a.txt")
	b.has(`\u202e text`)
	b.wantEval(`document.title + ' ' + document.querySelectorAll('figure img, figure svg, figure iframe').length`, "(1) Approvals – packs-mcp 1")
	b.judge("files")
	b.picture(t, "files")
	b.click(label("Hide out/chart.png"), "Hide out/chart.png")
	b.until(`!document.querySelector('figure img')`)
}

// After the person closes the tab, the next call reopens the page, once a minute has passed
// since it was last opened.
func TestOpenedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PACKS_MCP_APPROVAL_WAIT=9m")
	first := w.enabled()
	if err := os.Remove(w.shown); err != nil {
		t.Fatal(err)
	}
	first.do(chromedp.Navigate("about:blank")) // as if it were closed
	done := w.greet("Ada")
	b := w.pageWithin(newTab(t), 2*time.Minute)
	b.has("1 call waits for you")
	b.judge("opened again")
	b.press(greetTitle, "Run once")
	w.want(done, false, "hello Ada")
}

// wantEval waits until an expression has this value.
func (b *tab) wantEval(expression, want string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`(%s) === %q`, expression, want))
}

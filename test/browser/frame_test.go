package browser_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// errNoCard is returned while no frame of the page shows a card.
var errNoCard = errors.New("no frame shows a card")

// inCard evaluates an expression in the frame of the card, which is in a frame of the
// client's page, possibly nested. It runs in an isolated world, which sees the document but
// not the document's scripts.
func inCard[T any](b *tab, expression string) (T, error) {
	var zero T
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	tree, err := chromedp.Call(ctx, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		return zero, err
	}
	frames := []*page.FrameTree{tree.FrameTree}
	for len(frames) > 0 {
		frame := frames[0]
		frames = append(frames[1:], frame.ChildFrames...)
		world, err := chromedp.Call(ctx, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: frame.Frame.ID})
		if err != nil {
			continue // the frame is gone
		}
		wait := true
		in := func(p *runtime.EvaluateParams) { p.ContextID, p.AwaitPromise = world.ExecutionContextID, &wait }
		if is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.title === 'Approval \u2013 packs-mcp' || Boolean(document.querySelector('main#cards'))`, in)); err != nil || !is {
			continue
		}
		return chromedp.Run(ctx, chromedp.Evaluate[T](expression, in))
	}
	return zero, errNoCard
}

// cardEval evaluates an expression in the card, which must exist.
func cardEval[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := inCard[T](b, expression)
	if err != nil {
		b.t.Fatalf("in the card, %s: %v\nthe page: %s", expression, err, b.look())
	}
	return v
}

// cardUntil waits until an expression is true in the card.
func (b *tab) cardUntil(expression string) {
	b.t.Helper()
	end := time.Now().Add(patience)
	for {
		ok, err := inCard[bool](b, "Boolean("+expression+")")
		if ok && err == nil {
			return
		}
		if time.Now().After(end) {
			text, _ := inCard[string](b, `document.body.innerText`)
			b.t.Fatalf("in vain waited for %s: %v\nthe card: %s\nthe page: %s", expression, err, text, b.look())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// cardHas waits until a person can read the text on the card.
func (b *tab) cardHas(text string) {
	b.t.Helper()
	b.cardUntil(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// cardPress clicks the button of a choice on the open card with the mouse, once clicks
// count.
func (b *tab) cardPress(choice string) {
	b.t.Helper()
	b.cardUntil(`document.querySelector('.card:not(.over)') && !document.querySelector('.settling')`)
	b.cardPressNow(choice)
}

// cardPressNow is cardPress without waiting.
func (b *tab) cardPressNow(choice string) {
	b.t.Helper()
	at := cardEval[[]float64](b, fmt.Sprintf(`(() => {
		const button = document.querySelector('.card:not(.over) button[data-choice="%s"]');
		button.scrollIntoView({block: 'nearest'});
		const r = button.getBoundingClientRect();
		return [r.left + r.width / 2, r.top + r.height / 2];
	})()`, choice))
	// The innermost frame fills the one around it, which is the widest on the page.
	frame := eval[[]float64](b, `(() => {
		const n = [...document.querySelectorAll('iframe')].sort((a, b) => b.getBoundingClientRect().width - a.getBoundingClientRect().width)[0];
		n.scrollIntoView({block: 'nearest'});
		const r = n.getBoundingClientRect();
		return [r.left + n.clientLeft, r.top + n.clientTop];
	})()`)
	b.do(chromedp.MouseClickXY(frame[0]+at[0], frame[1]+at[1]))
}

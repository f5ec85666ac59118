package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/card"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
)

// hostPage is a client's page with a card in a frame. It records what the card sends, and
// delivers messages for a test. Beside that frame is one of another site.
const hostPage = `<!doctype html><meta charset="utf-8"><title>host</title>
<style>body { margin: 0 } iframe { display: block; width: 700px; height: 700px; border: 3px solid } #other { width: 40px; height: 40px }</style>
<iframe id="card" sandbox="allow-scripts"></iframe><iframe id="other"></iframe>
<script>
const card = document.getElementById('card'), other = document.getElementById('other');
window.got = [];
window.context = {theme: 'light'};
window.holds = location.hash === '#holds';
window.deliver = (m) => card.contentWindow.postMessage({jsonrpc: '2.0', ...m}, '*');
window.begin = () => deliver({id: window.first, result: {protocolVersion: '2026-01-26', hostInfo: {name: 'test'}, hostCapabilities: {serverTools: {}, message: {}}, hostContext: window.context}});
addEventListener('message', (e) => {
  if (e.source !== card.contentWindow) return;
  const m = e.data;
  got.push(m);
  if (m.method === 'ui/initialize') { window.first = m.id; if (!window.holds) begin(); }
  if (m.method === 'ui/message') deliver({id: m.id, result: {}});
  if (m.method === 'tools/call') deliver(window.refuses ? {id: m.id, error: {code: -1, message: 'no such tool'}} :
    {id: m.id, result: {content: [], structuredContent: {recorded: !window.late}}});
});
fetch('/card').then((r) => r.text()).then((html) => { card.srcdoc = html; other.src = OTHER; });
</script>`

// otherPage is another site's page in a frame beside the card's. It does to the card what a
// test says.
const otherPage = `<!doctype html><title>other</title><script>
addEventListener('message', (e) => { for (const m of e.data) parent.frames[0].postMessage(m, '*'); parent.postMessage('done', '*'); });
</script>`

// A chatCard is a card in a client's page.
type chatCard struct{ *tab }

// newChatCard opens a client's page. With hold, the client does not answer the card yet.
func newChatCard(t *testing.T, hold bool) *chatCard {
	t.Helper()
	chromium.start(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, otherPage)
	}))
	t.Cleanup(other.Close)
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Path == "/card" {
			fmt.Fprint(w, card.Chat())
			return
		}
		fmt.Fprint(w, strings.Replace(hostPage, "OTHER", fmt.Sprintf("%q", other.URL), 1))
	}))
	t.Cleanup(host.Close)
	c := &chatCard{newTab(t)}
	address := host.URL
	if hold {
		address += "#holds"
	}
	c.do(chromedp.Navigate(address))
	want := "ui/notifications/initialized"
	if hold {
		want = "ui/initialize"
	}
	c.until(fmt.Sprintf(`window.got && got.some((m) => m.method === %q)`, want))
	return c
}

// deliver sends a message of the client to the card.
func (c *chatCard) deliver(m map[string]any) {
	c.t.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		c.t.Fatal(err)
	}
	c.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("deliver(%s)", raw)))
}

// elicits asks a question by elicitation.
func (c *chatCard) elicits(id int, q any, message string) {
	c.t.Helper()
	params := map[string]any{
		"message": message, "mode": "form",
		"requestedSchema": map[string]any{"type": "object", "properties": map[string]any{
			"decision": map[string]any{"type": "string", "enum": []string{"once", "chat", "deny"}, "enumNames": []string{"Once: this exact call", "Chat: this tool", "Deny"}},
			"url":      map[string]any{"type": "string", "title": "The address"},
		}},
	}
	if q != nil {
		params["_meta"] = map[string]any{"packs-mcp/approval": q}
	}
	c.deliver(map[string]any{"id": id, "method": "elicitation/create", "params": params})
}

// shows gives the card a tool's result with questions.
func (c *chatCard) shows(q ...any) {
	c.t.Helper()
	c.deliver(map[string]any{"method": "ui/notifications/tool-result", "params": map[string]any{
		"content": []any{}, "structuredContent": map[string]any{"waiting": len(q)},
		"_meta": map[string]any{"packs-mcp/approval": map[string]any{"questions": append([]any{}, q...), "decide": "capability_packs_decide"}},
	}})
}

// replied waits for a message of the card that satisfies fits, and returns it as JSON.
func (c *chatCard) replied(fits string) string {
	c.t.Helper()
	find := fmt.Sprintf(`got.find((m) => %s)`, fits)
	c.until(find)
	return eval[string](c.tab, "JSON.stringify("+find+")")
}

// typical returns a question with this card.
func typical(shown prompt.Card) card.Question {
	return card.Question{
		Kind: "run", Card: shown, See: "packs-mcp approvals show K7QM-2F9X", Expires: time.Now().Add(time.Hour),
		Choices: []card.Choice{
			{Value: "once", Title: "Once: this exact call", Means: "Once: this exact call, one time."},
			{Value: "chat", Title: "Chat: this tool, any arguments", Means: "This chat: this tool with any valid arguments, until this client closes."},
			{Value: "deny", Title: "Deny", Means: "Deny: the call does not happen."},
		},
	}
}

// asCard decodes a card of package gate's tests.
func asCard(t *testing.T, file string) prompt.Card {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c prompt.Card
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// Ten typical questions as a person reads them on the fully expanded card, in files beside
// those of the form, the terminal and the page. Also, every question in package gate's tests
// is shown completely, including hostile ones.
func TestChatCards(t *testing.T) {
	t.Parallel()
	c := newChatCard(t, false)
	dir := filepath.Join("..", "..", "internal", "gate", "testdata", "prompts", "card")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < 30 {
		t.Fatalf("%s has %d files (%v)", dir, len(files), err)
	}
	ten := []string{"open", "open_hidden", "read", "read_workspace", "enable", "run", "run_full", "exec", "person", "untrusted"}
	for i, file := range files {
		shown := asCard(t, file)
		c.elicits(i, typical(shown), "")
		node := fmt.Sprintf(`document.querySelectorAll('.card')[%d]`, i)
		c.cardUntil(node)
		type drawn struct {
			Title, Command       string
			Marks, Facts, Quotes []string
			Unseen               []string
			Text                 string
		}
		got := cardEval[drawn](c.tab, `(() => {
			const node = `+node+`;
			for (const n of node.querySelectorAll('.unfold')) n.click();
			for (const n of node.querySelectorAll('details')) n.open = true;
			const all = (css) => [...node.querySelectorAll(css)].map((n) => n.textContent);
			const facts = [];
			for (const row of node.querySelectorAll('.facts > div')) for (const dd of row.querySelectorAll('dd')) facts.push(row.querySelector('dt').textContent + ': ' + dd.textContent);
			return {
				Title: node.querySelector('h2').textContent, Command: (all('.command')[0] || ''),
				Marks: [...node.querySelectorAll('.mark')].map((n) => n.lastChild.textContent ? n.textContent.replace(/^(Careful|Note): /, '') : ''),
				Facts: facts, Quotes: [...node.querySelectorAll('details.quote')].map((n) => n.querySelector('summary').textContent + ': ' + n.querySelector('blockquote').textContent),
				Unseen: [...node.textContent].filter((s) => s !== '\ufffd' && (`+unseen+`).test(s)), Text: node.innerText,
			};
		})()`)
		want := drawn{Title: shown.Title, Command: shown.Command}
		for _, m := range shown.Marks {
			want.Marks = append(want.Marks, m.Text)
		}
		for _, f := range shown.Facts {
			want.Facts = append(want.Facts, f.Label+": "+f.Value)
		}
		for _, q := range shown.Quotes {
			want.Quotes = append(want.Quotes, q.Who+": "+q.Text)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		text := got.Text
		got.Text = ""
		slices.Sort(got.Facts)
		slices.Sort(want.Facts)
		if diff := cmp.Diff(want, got, cmpEmpty); diff != "" {
			t.Errorf("%s is not shown completely (-want +got):\n%s", name, diff)
		}
		if slices.Contains(ten, name) {
			sameAsFile(t, filepath.Join("testdata", "cards", name+".txt"), text+"\n")
		}
	}
}

// cmpEmpty treats a nil list as an empty one.
var cmpEmpty = cmp.Transformer("empty", func(l []string) []string { return append([]string{}, l...) })

// sameAsFile compares text with a file, which -update rewrites.
func sameAsFile(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); -update writes it anew:\n%s", file, diff)
	}
}

// A person's press answers an elicitation, whose id may be 0; a script's press does not.
func TestChatCardElicited(t *testing.T) {
	t.Parallel()
	c := newChatCard(t, false)
	c.elicits(0, typical(greetCard()), "")
	c.cardHas("Run tool greet of pack triage?")
	c.cardHas("In a terminal: packs-mcp approvals show K7QM-2F9X")
	c.cardUntil(`!document.querySelector('.settling')`)
	cardEval[bool](c.tab, `(() => {
		for (const n of document.querySelectorAll('.answers button')) { n.click(); n.dispatchEvent(new MouseEvent('click', {bubbles: true})); }
		return true;
	})()`)
	if sent := eval[int](c.tab, `got.filter((m) => 'result' in m).length`); sent != 0 {
		t.Error("a script's click answers the question")
	}
	c.cardPress("chat")
	if got, want := c.replied(`m.id === 0 && m.result`), `{"jsonrpc":"2.0","id":0,"result":{"action":"accept","content":{"decision":"chat"}}}`; got != want {
		t.Errorf("the card answers %s, want %s", got, want)
	}
	c.cardHas("You allowed it.")

	// Values that the call still needs are filled in on the card.
	q := typical(greetCard())
	q.Fields = []card.Field{{Name: "url", Title: "The address"}}
	c.elicits(1, q, "")
	c.cardPress("once")
	c.cardHas("Fill in \u201cThe address\u201d first")
	cardEval[bool](c.tab, `(document.querySelector('.card:not(.over) input').value = 'https://a.example', true)`)
	c.cardPress("once")
	if got, want := c.replied(`m.id === 1 && m.result`), `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"url":"https://a.example","decision":"once"}}}`; got != want {
		t.Errorf("the card answers %s, want %s", got, want)
	}

	// Withdrawn by the client.
	c.elicits(2, typical(greetCard()), "")
	c.cardUntil(`document.querySelector('.card:not(.over)')`)
	c.deliver(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": 2}})
	c.cardHas("Withdrawn")
	if n := cardEval[int](c.tab, `document.querySelectorAll('.answers button').length`); n != 0 {
		t.Errorf("%d buttons are left", n)
	}
}

// Missing facts are not left out silently.
func TestChatCardIncomplete(t *testing.T) {
	t.Parallel()
	const message = "`greet Ada`\n\u25b8 writes <b>everything</b>\n"
	broken := func(change func(map[string]any)) any {
		raw, err := json.Marshal(typical(greetCard()))
		if err != nil {
			t.Fatal(err)
		}
		var q map[string]any
		if err := json.Unmarshal(raw, &q); err != nil {
			t.Fatal(err)
		}
		change(q)
		return q
	}
	facts := func(q map[string]any) []any { return q["card"].(map[string]any)["facts"].([]any) }
	c := newChatCard(t, false)
	id := 0
	for name, q := range map[string]any{
		"no facts at all":    nil,
		"another shape":      "facts",
		"a fact is a number": broken(func(q map[string]any) { facts(q)[0].(map[string]any)["value"] = 7 }),
		"a fact is null":     broken(func(q map[string]any) { facts(q)[1] = nil }),
		"no list of facts":   broken(func(q map[string]any) { delete(q["card"].(map[string]any), "facts") }),
		"a mark is a text":   broken(func(q map[string]any) { q["card"].(map[string]any)["marks"] = []any{"x"} }),
		"no title":           broken(func(q map[string]any) { q["card"].(map[string]any)["title"] = "" }),
		"no choices":         broken(func(q map[string]any) { q["choices"] = []any{} }),
	} {
		id++
		c.elicits(id, q, message)
		c.cardUntil(`document.querySelector('.card:not(.over)')`)
		got := cardEval[[]string](c.tab, `[...document.querySelectorAll('.card:not(.over)')].flatMap((n) => [n.querySelector('.message').textContent, ...[...n.querySelectorAll('.answers button')].map((b) => b.innerText)])`)
		if want := []string{message, "Allow once", "This chat", "Deny"}; !slices.Equal(got, want) {
			t.Errorf("%s: the card shows %q, want the whole message", name, got)
		}
		c.deliver(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": id}})
		c.cardUntil(`!document.querySelector('.card:not(.over)')`)
	}
	// Without the message too, nothing can be allowed.
	c.elicits(99, nil, "")
	c.cardHas("it cannot be allowed here. Look with: packs-mcp approvals")
	if got := cardEval[string](c.tab, `[...document.querySelectorAll('.card:not(.over) .answers button')].map((b) => b.innerText).join()`); got != "Deny" {
		t.Errorf("the card offers %q, want Deny alone", got)
	}
	c.cardPress("deny")
	if got := c.replied(`m.id === 99 && m.result`); !strings.Contains(got, `"decision":"deny"`) {
		t.Errorf("the card answers %s", got)
	}
}

// Whatever a pack, a model or a client's page puts into a question is plain text.
func TestChatCardHostile(t *testing.T) {
	t.Parallel()
	const html = `</script></style></main><script>parent.postMessage('owned', '*')</script><img src=x onerror="parent.postMessage('owned', '*')">` +
		`<svg onload="parent.postMessage('owned', '*')"><iframe srcdoc="<script>top.postMessage('owned', '*')</script>"></iframe><base href="//evil.example/"><style>button{display:none!important}</style>`
	bidi := "rm \u202e-rf\u2066 \u05d0\u05d1 / \u05d2\u05d3 \u202c safe"
	long := strings.Repeat("a long argument ", 4000)
	q := typical(prompt.Card{
		Title: html, Command: html + long,
		Marks:  []prompt.Mark{{Role: "x", Text: html, Weight: prompt.Weight("danger\" onclick=\"x")}},
		Facts:  []prompt.Fact{{Section: prompt.Section(html), Label: html, Value: html, Weight: "plain"}, {Section: "call", Label: "__proto__", Value: bidi}, {Section: "constructor", Label: "argument", Value: long}},
		Quotes: []prompt.Quote{{Who: html, Text: html}},
	})
	q.Kind, q.See, q.Limit = html, html, html
	q.Fields = []card.Field{{Name: html, Title: html}}
	q.Choices = append(q.Choices, card.Choice{Value: html, Title: html, Means: html})
	c := newChatCard(t, false)
	c.elicits(1, q, html)
	c.elicits(2, nil, html)
	c.cardUntil(`document.querySelectorAll('.card').length === 2`)
	c.deliver(map[string]any{"method": "ui/notifications/host-context-changed", "params": map[string]any{
		"theme": html, "styles": map[string]any{"variables": map[string]any{"--color-x": "url(//evil.example)", "display": "none", "--other": "x", "--color-background-primary": "}" + html}},
	}})
	type made struct {
		Scripts, Strange, Buttons, Facts int
		Styles                           string
	}
	got := cardEval[made](c.tab, `({
		Scripts: document.querySelectorAll('script').length,
		Strange: document.querySelectorAll('img, svg, iframe, base, a, object, form, [onclick], [onerror], main style').length,
		Buttons: [...document.querySelectorAll('.answers button')].filter((n) => n.getBoundingClientRect().height > 20).length,
		Facts: document.querySelectorAll('.facts dd').length,
		Styles: document.documentElement.getAttribute('style') || '',
	})`)
	got.Styles = strings.Join(strings.Fields(got.Styles), " ")
	if got.Scripts != 2 || got.Strange != 0 || got.Buttons != 7 || got.Facts != 3 || strings.Contains(got.Styles, "display") || strings.Contains(got.Styles, "--other") {
		t.Errorf("the card made %+v of hostile texts", got)
	}
	// A long value is folded, with a note.
	c.cardHas("more characters")
	c.cardUntil(`!document.querySelector('.settling')`)
	c.cardPress("deny")
	c.replied(`m.id === 1 && m.result`)
	if n := eval[int](c.tab, `got.filter((m) => m === 'owned').length`); n != 0 {
		t.Error("a text of a question acted")
	}
}

// The card trusts only the client's page, not another site's frame beside it, neither before
// nor after the client has answered.
func TestChatCardOtherOrigin(t *testing.T) {
	t.Parallel()
	c := newChatCard(t, true)
	c.until(`new Promise((done) => { other.onload = () => done(true); if (other.src && other.contentWindow.length === 0) setTimeout(() => done(true), 0); })`)
	forged, err := json.Marshal([]any{
		map[string]any{"jsonrpc": "2.0", "id": 1, "result": map[string]any{"hostCapabilities": map[string]any{}, "hostContext": map[string]any{"theme": "dark"}}},
		map[string]any{"jsonrpc": "2.0", "id": 5, "method": "elicitation/create", "params": map[string]any{"message": "forged", "_meta": map[string]any{"packs-mcp/approval": typical(greetCard())}}},
		map[string]any{"jsonrpc": "2.0", "method": "ui/notifications/tool-result", "params": map[string]any{"_meta": map[string]any{"packs-mcp/approval": map[string]any{"questions": []any{typical(greetCard())}, "decide": "x"}}}},
		map[string]any{"jsonrpc": "2.0", "id": 6, "method": "ui/resource-teardown"},
	})
	if err != nil {
		t.Fatal(err)
	}
	attack := func() {
		t.Helper()
		// The other site reports when it has sent everything.
		ok := eval[bool](c.tab, fmt.Sprintf(`new Promise((done) => {
			addEventListener('message', function heard(e) { if (e.data === 'done') { removeEventListener('message', heard); done(true); } });
			const send = () => other.contentWindow.postMessage(%s, '*');
			send();
			window.resend = setInterval(send, 300);
		}).then((ok) => { clearInterval(window.resend); return ok; })`, forged))
		if !ok {
			t.Fatal("the other site did nothing")
		}
	}
	attack()
	// Messages of the client arrive after those.
	c.do(chromedp.Evaluate[chromedp.Void](`begin()`))
	c.until(`got.some((m) => m.method === 'ui/notifications/initialized')`)
	attack()
	c.elicits(0, typical(greetCard()), "")
	c.cardHas("Run tool greet of pack triage?")
	if n := cardEval[int](c.tab, `document.querySelectorAll('.card').length`); n != 1 {
		t.Errorf("%d cards, want the client's own alone", n)
	}
	if sent := eval[string](c.tab, `JSON.stringify(got.filter((m) => 'result' in m || 'error' in m))`); sent != "[]" {
		t.Errorf("the card answers another site: %s", sent)
	}
	// An answer to the card's own requests is not accepted from there either.
	attack()
	c.cardPress("once")
	c.replied(`m.id === 0 && m.result`)
}

// Beside a tool's result, the card answers with a call, shows the outcome, and tells the
// model to continue once nothing waits.
func TestChatCardBesideResult(t *testing.T) {
	t.Parallel()
	c := newChatCard(t, false)
	secret := func(q card.Question, s string) card.Question {
		q.Secret = s
		q.Choices = []card.Choice{q.Choices[0], q.Choices[2]}
		return q
	}
	limited := secret(typical(lintCard()), "BBBB.secret")
	limited.Choices, limited.Limit = limited.Choices[1:], "The pack is not trusted, so this card can only deny it."
	c.shows(secret(typical(greetCard()), "AAAA.secret"), limited)
	c.cardHas("The pack is not trusted, so this card can only deny it.")
	if got := cardEval[string](c.tab, `[...document.querySelectorAll('.answers button')].map((b) => b.innerText).join()`); got != "Run once,Deny,Deny" {
		t.Errorf("the cards offer %q", got)
	}
	c.do(chromedp.Evaluate[chromedp.Void](`window.refuses = true`))
	c.cardPress("once")
	c.cardHas("It was not answered: no such tool")
	c.do(chromedp.Evaluate[chromedp.Void](`window.refuses = false`))
	c.cardPress("once")
	c.cardHas("You allowed it.")
	want := `{"name":"capability_packs_decide","arguments":{"secret":"AAAA.secret","decision":"once"}}`
	if got := eval[string](c.tab, `JSON.stringify(got.filter((m) => m.method === 'tools/call').pop().params)`); got != want {
		t.Errorf("the card calls %s, want %s", got, want)
	}
	if n := eval[int](c.tab, `got.filter((m) => m.method === 'ui/message').length`); n != 0 {
		t.Error("the model is told to go on while a call waits")
	}
	c.do(chromedp.Evaluate[chromedp.Void](`window.late = true`))
	c.cardPress("deny")
	c.cardHas("Nothing was recorded: it was answered elsewhere before, or is over.")
	c.until(`got.some((m) => m.method === 'ui/message')`)

	// No question, a question that cannot be shown, and an error.
	c.shows()
	c.cardHas("No call waits for you.")
	c.shows(map[string]any{"secret": "CCCC.secret"})
	c.cardHas("cannot show. Look with: packs-mcp approvals")
	c.deliver(map[string]any{"method": "ui/notifications/tool-result", "params": map[string]any{"isError": true, "content": []any{map[string]any{"type": "text", "text": "<b>broken</b>"}}}})
	c.cardHas("Nothing can be answered here. <b>broken</b>")
	c.deliver(map[string]any{"method": "ui/notifications/tool-result", "params": map[string]any{"content": []any{}}})
	c.cardHas("The client passed no question to this card.")
}

// An expired card cannot be answered.
func TestChatCardExpires(t *testing.T) {
	t.Parallel()
	c := newChatCard(t, false)
	q := typical(greetCard())
	q.Expires = time.Now().Add(time.Second)
	c.elicits(0, q, "")
	c.cardHas("Expired. Ask the model to try again.")
	if n := cardEval[int](c.tab, `document.querySelectorAll('button').length`); n != 0 {
		t.Errorf("%d buttons are left", n)
	}
}

// The card is readable in the client's theme, whatever the system's is, and in a narrow
// frame.
func TestChatCardLooks(t *testing.T) {
	t.Parallel()
	c := newChatCard(t, false)
	c.elicits(0, typical(asCard(t, filepath.Join("..", "..", "internal", "gate", "testdata", "prompts", "card", "changed_several.json"))), "")
	c.elicits(1, typical(asCard(t, filepath.Join("..", "..", "internal", "gate", "testdata", "prompts", "card", "run_full.json"))), "")
	c.cardUntil(`document.querySelectorAll('.card').length === 2`)
	if !cardEval[bool](c.tab, `Boolean(document.querySelector('.changed').compareDocumentPosition(document.querySelector('.answers')) & Node.DOCUMENT_POSITION_FOLLOWING)`) {
		t.Error("what changed is not before the answers")
	}
	judge, noAxe := axe()
	c.do(chromedp.EmulateViewport(720, 1300), chromedp.Evaluate[chromedp.Void](`card.style.height = '1290px'`))
	for _, system := range []string{"light", "dark"} {
		c.scheme(system)
		for _, theme := range []string{"light", "dark"} {
			c.deliver(map[string]any{"method": "ui/notifications/host-context-changed", "params": map[string]any{"theme": theme}})
			back := map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(27, 32, 39)"}[theme]
			c.cardUntil(fmt.Sprintf(`getComputedStyle(document.querySelector('.card')).backgroundColor === %q`, back))
			for _, width := range []int{340, 700} {
				c.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`card.style.width = '%dpx'`, width)))
				c.cardUntil(fmt.Sprintf(`innerWidth === %d && !document.querySelector('.settling')`, width))
				if got := cardEval[[]string](c.tab, faint); len(got) > 0 {
					t.Errorf("system %s, client %s, %d pixels: not readable:\n%s", system, theme, width, strings.Join(got, "\n"))
				}
				if system == theme && noAxe == nil {
					if got := cardEval[[]string](c.tab, judge+"; "+violations); len(got) > 0 {
						t.Errorf("client %s, %d pixels: axe-core finds\n%s", theme, width, strings.Join(got, "\n"))
					}
				}
				c.shoot(fmt.Sprintf("chat-%s-%s-%d", system, theme, width))
			}
		}
	}
	c.until(`got.some((m) => m.method === 'ui/notifications/size-changed' && m.params.height > 300)`)
}

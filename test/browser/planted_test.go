package browser_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// evilPage is an attacker's replacement for the approval page. With the same origin, it can
// access everything that the page can.
const evilPage = `<!doctype html><link rel="icon" href="data:,"><title>evil</title><script>
fetch('/decide', {method: 'POST', body: JSON.stringify({code: 'K7QM-2F9X', decision: 'always', values: {}}),
  headers: {'Content-Type': 'application/json', 'X-Packs-Key': sessionStorage.getItem('packs-key') || localStorage.getItem('packs-key') || ''}}).then(() => { document.title = 'done' })
</script>`

// Whatever another program that once had the address left in the browser, it cannot answer
// for the person.
func TestPlanted(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, worker string // its response to the request that signs the browser in
		refused      bool   // the browser does not get signed in
	}{
		{"a worker", `return`, false},
		{"a worker that passes the entry on", `return e.respondWith(fetch(e.request))`, true},
		{"a worker that answers the entry", `return e.respondWith(e.request.text().then((body) => new Response(EVIL, {headers: {'Content-Type': 'text/html'}})))`, true},
		{"a cached page", ``, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newTab(t)
			b.evil.Store(true)
			evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				switch {
				case r.URL.Path == "/sw.js":
					w.Header().Set("Content-Type", "text/javascript")
					fmt.Fprintf(w, "const EVIL = `%s`;\n"+`
						addEventListener('install', () => skipWaiting());
						addEventListener('activate', (e) => e.waitUntil(clients.claim()));
						addEventListener('fetch', (e) => {
							if (new URL(e.request.url).pathname === '/enter') { %s }
							e.respondWith(new Response(EVIL, {headers: {'Content-Type': 'text/html'}}));
						});`, evilPage, tc.worker)
				case tc.worker == "" && r.URL.Path == "/":
					w.Header().Set("Cache-Control", "max-age=31536000, immutable")
					fmt.Fprint(w, evilPage)
				default:
					fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"><script>
						const ready = navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready).then(() => { document.title = 'planted' });</script>`)
				}
			}))
			address := evil.Listener.Addr().String()
			if tc.worker == "" {
				b.do(chromedp.Navigate("http://" + address + "/"))
				b.until(`document.title === 'evil' || document.title === 'done'`)
			} else {
				b.do(chromedp.Navigate("http://" + address + "/plant"))
				b.until(`document.title === 'planted' && navigator.serviceWorker.controller`)
			}
			b.do(chromedp.Navigate("about:blank"))
			evil.CloseClientConnections()
			evil.Close()

			q := newQueue(greet(time.Now()))
			d, open := openDeskAt(t, q, nil, address)
			b.do(chromedp.Navigate(open()))
			if tc.refused {
				b.until(`location.pathname === '/enter' && document.readyState === 'complete'`)
				// Its final page contains no secret.
				b.do(chromedp.Navigate("http://" + address + "/"))
				b.until(`document.title !== 'evil' && document.readyState === 'complete'`)
			} else {
				b.has("1 call waits for you")
				b.do(chromedp.Reload())
				b.press("Run tool greet of pack triage?", "Deny")
				q.want(t, "K7QM-2F9X deny page map[]")
			}
			q.wantNothing(t)
			if cookies := eval[string](b, `document.cookie + (sessionStorage.getItem('packs-key') || '') + (localStorage.getItem('packs-key') || '')`); tc.refused && cookies != "" {
				t.Errorf("the worker has %q", cookies)
			}
			if !tc.refused && eval[bool](b, `Boolean(navigator.serviceWorker.controller)`) {
				t.Error("the worker is still there")
			}
			other, _ := openDesk(t, newQueue(), nil)
			host, _, _ := net.SplitHostPort(other.Address())
			if l, err := net.Listen("tcp", "127.1.2.3:0"); err == nil {
				l.Close()
				if host == "127.0.0.1" {
					t.Errorf("by default the desk is at %s, like the attacker", d.Address())
				}
			}
		})
	}
}

// A tab that another program once filled at this address has the page's origin and the
// cookie. But it lacks the key, cannot install a worker, and cannot close the page.
func TestOldTab(t *testing.T) {
	t.Parallel()
	old := newTab(t)
	old.evil.Store(true)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sw.js" {
			w.Header().Set("Content-Type", "text/javascript")
			w.Header().Set("Cache-Control", "max-age=31536000, immutable")
			fmt.Fprint(w, `addEventListener('fetch', (e) => e.respondWith(new Response('evil')))`)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><link rel="icon" href="data:,"><title>evil</title><script>fetch('/sw.js')</script>`)
	}))
	address := evil.Listener.Addr().String()
	old.do(chromedp.Navigate("http://" + address + "/"))
	old.until(`document.title === 'evil' && performance.getEntriesByName(location.origin + '/sw.js').length === 1`)
	evil.CloseClientConnections()
	evil.Close()

	q := newQueue(greet(time.Now()))
	_, open := openDeskAt(t, q, nil, address)
	b := old.another()
	b.do(chromedp.Navigate(open()))
	b.has("1 call waits for you")
	attempt := func(script string) string {
		return eval[string](old, fmt.Sprintf(`(async () => { try { %s } catch (e) { return 'refused' } })()`, script))
	}
	for _, tc := range []struct{ what, script, want string }{
		{"the key", `return sessionStorage.getItem('packs-key') || localStorage.getItem('packs-key') || 'refused'`, "refused"},
		{"the first page, with the cookie", `return String((await fetch('/')).status)`, "200"},
		{"the calls", `return String((await fetch('/events')).status)`, "403"},
		{"a decision", `return String((await fetch('/decide', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{"code":"K7QM-2F9X","decision":"always"}'})).status)`, "403"},
		{"a worker", `await navigator.serviceWorker.register('/sw.js', {updateViaCache: 'all'}); return 'registered'`, "refused"},
		{"a worker of the page's script", `await navigator.serviceWorker.register('/page.js'); return 'registered'`, "refused"},
		{"signing in", `return String((await fetch('/enter', {method: 'POST', body: new URLSearchParams({token: 'x'})})).status)`, "403"},
		{"its window", `const w = window.open('/', 'w'); if (!w) return 'refused'; await new Promise((d) => setTimeout(d, 300)); let k = ''; try { k = w.sessionStorage.getItem('packs-key') } catch { }; w.close(); return k || 'refused'`, "refused"},
	} {
		if got := attempt(tc.script); got != tc.want {
			t.Errorf("an old tab: %s: %s, want %s", tc.what, got, tc.want)
		}
	}
	q.wantNothing(t)
	b.do(chromedp.Reload())
	b.press("Run tool greet of pack triage?", "Deny")
	q.want(t, "K7QM-2F9X deny page map[]")
	if eval[bool](b, `Boolean(navigator.serviceWorker.controller)`) {
		t.Error("a worker is there")
	}
}

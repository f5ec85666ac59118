package approvals

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"html"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/page"
	"github.com/packs-mcp/packs-mcp/internal/approvals/runfolder"
)

const (
	// maxEntries is how many files that lead to the page exist at a time.
	maxEntries = 16
	// The files lead to enterPath. The body of a request there may take
	// enterTime and have maxEnter bytes: a browser sends all of it at once.
	enterPath = "/enter"
	enterTime = 2 * time.Second
	maxEnter  = 4 << 10
)

// entries are the files that lead a browser to the page. Each works only once.
type entries struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]entry // :: digest of the token → entry
}

type entry struct {
	name    string       // of the file, in the run folder
	place   string       // the query of the address in the file; see place
	reading *atomic.Bool // a request's body is being read
	expires time.Time
	timer   *time.Timer // removes the file
}

// writeEntry writes a new file and returns its path. The token is only in the
// file, which posts it, so it appears in no address and in no process list. The
// address has the entry's place, which signs nobody in: it only permits sending
// a body.
func (d *Desk) writeEntry() (file string, err error) {
	if !d.o.Page {
		return "", errNoPage
	}
	token, place := secret(), secret()
	content := strings.NewReplacer(
		"{{style}}", page.Style(),
		"{{action}}", html.EscapeString(d.origin+enterPath+"?"+place),
		"{{token}}", html.EscapeString(token),
	).Replace(page.Text("redirect.html"))
	e := entry{name: runfolder.EntryPrefix + secret() + ".html", place: place, reading: new(atomic.Bool), expires: d.o.Now().Add(runfolder.EntryTime)}
	digest := sha256.Sum256([]byte(token))

	d.entries.mu.Lock()
	defer d.entries.mu.Unlock()
	if d.ctx.Err() != nil {
		return "", errors.New("the server is ending")
	}
	if len(d.entries.all) >= maxEntries {
		return "", errors.New("too many files that open the page are waiting; use one of them, or try again in two minutes")
	}
	if err := d.folder.Write(e.name, []byte(content)); err != nil {
		return "", err
	}
	d.wg.Add(1)
	e.timer = time.AfterFunc(runfolder.EntryTime, func() {
		defer d.wg.Done()
		d.entries.mu.Lock()
		defer d.entries.mu.Unlock()
		delete(d.entries.all, digest)
		_ = d.folder.Remove(e.name)
	})
	if d.entries.all == nil {
		d.entries.all = make(map[[sha256.Size]byte]entry)
	}
	d.entries.all[digest] = e
	return filepath.Join(d.folder.Path(), e.name), nil
}

// place takes an entry's one place for a request in progress, and returns the
// function that gives it back; nil if there is no such entry or another request
// has the place. So a body is read only from a client that has the file, and
// each file has its own place.
func (e *entries) place(name string) (leave func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range e.all {
		if same(one.place, name) && one.reading.CompareAndSwap(false, true) {
			return func() { one.reading.Store(false) }
		}
	}
	return nil
}

// redeem reports whether the token still works, and spends it.
func (d *Desk) redeem(token string) bool {
	d.entries.mu.Lock()
	defer d.entries.mu.Unlock()
	digest := sha256.Sum256([]byte(token))
	e, ok := d.entries.all[digest]
	if !ok {
		return false
	}
	_ = d.drop(digest)
	return d.o.Now().Before(e.expires)
}

// drop forgets an entry and removes its file; entries.mu is held.
func (d *Desk) drop(digest [sha256.Size]byte) error {
	e := d.entries.all[digest]
	delete(d.entries.all, digest)
	if e.timer.Stop() {
		d.wg.Done()
	}
	return d.folder.Remove(e.name)
}

// dropEntry revokes a file that writeEntry returned.
func (d *Desk) dropEntry(file string) error {
	d.entries.mu.Lock()
	defer d.entries.mu.Unlock()
	for digest, e := range d.entries.all {
		if e.name == filepath.Base(file) {
			return d.drop(digest)
		}
	}
	return nil
}

// dropEntries revokes all files.
func (d *Desk) dropEntries() error {
	d.entries.mu.Lock()
	defer d.entries.mu.Unlock()
	var errs []error
	for _, digest := range slices.Collect(maps.Keys(d.entries.all)) {
		errs = append(errs, d.drop(digest))
	}
	return errors.Join(errs...)
}

// enter signs in a browser that presents the token of a file. The form is posted
// from a file, so this is the only request that need not come from the page.
func (d *Desk) enter(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !fromFile(r) || !control.IsType(r, "application/x-www-form-urlencoded") {
		d.stranger(w)
		refusePage(w, "")
		return
	}
	const used = "This link was used already, or is too old."
	leave := d.entries.place(r.URL.RawQuery)
	if leave == nil {
		d.stranger(w)
		refusePage(w, used)
		return
	}
	defer leave()
	keepConn(r)
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(cmp.Or(d.o.slow, enterTime)))
	r.Body = http.MaxBytesReader(w, r.Body, maxEnter)
	if r.ParseForm() != nil || len(r.PostForm["token"]) != 1 || !d.redeem(r.PostForm["token"][0]) {
		d.stranger(w)
		refusePage(w, used)
		return
	}
	script := page.Text("enter.js")
	h := w.Header()
	// This page holds both secrets: it loads nothing.
	h.Set("Content-Security-Policy", "default-src 'none'; script-src "+page.Inline(script)+"; "+
		"style-src "+page.Inline(page.Style())+"; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
	// Another program may have left something in the browser for this address,
	// above all a service worker, which could intercept the page. The browser
	// removes it before the script below stores the key, and no worker can be
	// installed again: every request for one is refused. A worker that withholds
	// this response, or that forwards the request itself, gets nothing; see
	// [fromFile].
	h.Set("Clear-Site-Data", `"cache", "storage"`)
	http.SetCookie(w, &http.Cookie{
		Name: d.cookieName(), Value: d.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = strings.NewReplacer("{{key}}", html.EscapeString(d.pageKey), "{{script}}", script, "{{style}}", page.Style()).WriteString(w, page.Text("enter.html"))
}

// fromFile reports whether a browser sent the request to navigate a window from
// a file. For a file, browsers send the origin "null" or none; WebKit may send
// the file scheme, which no web page can have.
func fromFile(r *http.Request) bool {
	switch o := r.Header["Origin"]; {
	case len(o) > 1, len(o) == 1 && o[0] != "null" && o[0] != "file://":
		return false
	}
	// A worker that forwards the request would receive the response; its request
	// has these headers.
	for name, not := range map[string]func(string) bool{
		"Sec-Fetch-Dest": func(v string) bool { return v != "document" },
		"Sec-Fetch-Mode": func(v string) bool { return v != "navigate" },
		"Sec-Fetch-Site": func(v string) bool { return v == "same-origin" || v == "same-site" },
	} {
		if slices.ContainsFunc(r.Header[name], not) {
			return false
		}
	}
	return true
}

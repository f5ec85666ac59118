package approvals

import (
	"crypto/sha256"
	"encoding/base64"
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
)

const (
	// entryTime is how long a file that leads to the page works.
	entryTime = 2 * time.Minute
	// maxEntries is how many such files there are at a time.
	maxEntries = 16
	// entryPrefix begins their names.
	entryPrefix = "open-"
	// enterPath is where they lead, enterTime how long the body of the request may
	// take, and maxEnter its bytes: a browser has all of it at once.
	enterPath = "/enter"
	enterTime = 2 * time.Second
	maxEnter  = 4 << 10
)

// entries are the files that lead a browser to the page. Each works once.
type entries struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]entry // :: digest of the token → entry
}

type entry struct {
	name    string       // of the file, in the run folder
	place   string       // the query of the address that the file leads to; see place
	reading *atomic.Bool // a request's body is being read
	expires time.Time
	timer   *time.Timer // removes the file
}

// writeEntry writes a new file and returns its path. The token stands in the
// file alone, which posts it: so it is in no address and in no process list. The
// address has the entry's place, which lets nobody in: whoever knows it may send
// a body.
func (d *Desk) writeEntry() (file string, err error) {
	if !d.o.Page {
		return "", errNoPage
	}
	token, place := secret(), secret()
	text, err := pageFiles.ReadFile("page/redirect.html")
	if err != nil {
		return "", err
	}
	content := strings.NewReplacer(
		"{{action}}", html.EscapeString(d.origin+enterPath+"?"+place),
		"{{token}}", html.EscapeString(token),
	).Replace(string(text))
	e := entry{name: entryPrefix + secret() + ".html", place: place, reading: new(atomic.Bool), expires: d.o.Now().Add(entryTime)}
	digest := sha256.Sum256([]byte(token))

	d.entries.mu.Lock()
	defer d.entries.mu.Unlock()
	if d.ctx.Err() != nil {
		return "", errors.New("the server is ending")
	}
	if len(d.entries.all) >= maxEntries {
		return "", errors.New("too many files that open the page are waiting; use one of them, or try again in two minutes")
	}
	if err := d.folder.write(e.name, []byte(content)); err != nil {
		return "", err
	}
	d.wg.Add(1)
	e.timer = time.AfterFunc(entryTime, func() {
		defer d.wg.Done()
		d.entries.mu.Lock()
		defer d.entries.mu.Unlock()
		delete(d.entries.all, digest)
		_ = d.folder.remove(e.name)
	})
	if d.entries.all == nil {
		d.entries.all = make(map[[sha256.Size]byte]entry)
	}
	d.entries.all[digest] = e
	return filepath.Join(d.folder.path, e.name), nil
}

// place takes the one place that an entry has for a request under way, and
// returns what gives it back; nil when there is no such entry, or a request has
// it. So a body is read only from a client that has the file, and each file's
// place is its own.
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

// redeem reports whether the token is one that still works, and spends it.
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
	return d.folder.remove(e.name)
}

// dropEntry takes back a file that writeEntry returned.
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

// dropEntries takes all of them back.
func (d *Desk) dropEntries() error {
	d.entries.mu.Lock()
	defer d.entries.mu.Unlock()
	var errs []error
	for _, digest := range slices.Collect(maps.Keys(d.entries.all)) {
		errs = append(errs, d.drop(digest))
	}
	return errors.Join(errs...)
}

// enter signs a browser in that brings the token of a file. The form is posted
// from a file, so this is the only request that need not come from the page.
func (d *Desk) enter(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !fromFile(r) || !isType(r, "application/x-www-form-urlencoded") {
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
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(enterTime))
	r.Body = http.MaxBytesReader(w, r.Body, maxEnter)
	if r.ParseForm() != nil || len(r.PostForm["token"]) != 1 || !d.redeem(r.PostForm["token"][0]) {
		d.stranger(w)
		refusePage(w, used)
		return
	}
	text, err := pageFiles.ReadFile("page/enter.html")
	if err != nil {
		panic(err) // it is in the binary
	}
	script, err := pageFiles.ReadFile("page/enter.js")
	if err != nil {
		panic(err)
	}
	digest := sha256.Sum256(script)
	h := w.Header()
	// This page holds both secrets: it loads nothing.
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'sha256-"+base64.StdEncoding.EncodeToString(digest[:])+"'; "+
		"img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
	// What another program left in the browser for this address, a worker above
	// all, would come between. It goes before the script below stores the key, and
	// nothing can put a worker there again: every request for one is refused. One
	// that keeps this answer from the browser, or passes the request on by itself,
	// gets nothing; see [fromFile].
	h.Set("Clear-Site-Data", `"cache", "storage"`)
	http.SetCookie(w, &http.Cookie{
		Name: d.cookieName(), Value: d.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = strings.NewReplacer("{{key}}", html.EscapeString(d.pageKey), "{{script}}", string(script)).WriteString(w, string(text))
}

// fromFile reports whether a browser sends the request for a page of its own
// window that came from a file. Browsers say "null" for one, or nothing; WebKit
// may name the scheme, which no page of the web can have.
func fromFile(r *http.Request) bool {
	switch o := r.Header["Origin"]; {
	case len(o) > 1, len(o) == 1 && o[0] != "null" && o[0] != "file://":
		return false
	}
	// A worker that passes the request on gets the answer: then it has these.
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

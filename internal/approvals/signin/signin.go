// Package signin shows the approval page of a team's server to people who log in to it
// with a browser, at the identity provider, and keeps their sessions.
//
// A session is a cookie with a secret that means nothing elsewhere, and a second secret
// that only the page's script sends. What the person may see and answer is decided
// elsewhere. Sessions are in the memory of this process, or in a store that replicas share.
package signin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/page"
	"github.com/packs-mcp/packs-mcp/internal/oidc"
	"github.com/packs-mcp/packs-mcp/internal/oidc/login"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/store"
)

// Prefix is where the page is, below the public URL.
const Prefix = control.TeamPrefix

// Options configure a [Desk]. All down to Logger are required.
type Options struct {
	// PublicURL is the URL by which browsers reach the server: an https URL, or http on
	// this machine.
	PublicURL string
	// Provider says at which identity provider people log in, and as which client.
	Provider login.Options
	// Verify says whose an access token is, as for calls.
	Verify func(ctx context.Context, token string) (*oidc.Identity, error)
	Logger *slog.Logger
	Now    func() time.Time // nil is time.Now
	// Shared is the store in which replicas keep sessions, sealed; nil: this server is
	// alone. Keys are then the secrets of logins that have begun, which all replicas
	// have: the first is the newest.
	Shared *store.Mirror
	Keys   [][]byte
	// Revoked reports whether the operator took back what a person may do since a time. It
	// is asked after each Sync of Shared, and only with it.
	Revoked func(person string, since time.Time) bool
}

// A Desk signs people in. Make one with [New].
type Desk struct {
	o       Options
	origin  string // of the page
	path    string // of the page for a browser, without its last slash
	session string // name of the cookie with the session
	attempt string // name of the cookie with a login that has begun
	secure  bool   // cookies go over TLS only
	box     *login.Box

	opening  sync.Mutex
	provider *login.Provider // nil: not asked yet
	asked    time.Time       // when provider was asked

	sessions sessions
	shared   *store.Mirror // nil: sessions are here alone
	patience time.Duration // how long another replica may take to renew one; providerTime
}

const (
	// attemptTime is how long a person may take to log in.
	attemptTime = 10 * time.Minute
	// freshProvider is how long what the provider says of itself is used.
	freshProvider = 15 * time.Minute
	// providerTime bounds a question to the provider while a browser waits.
	providerTime = 15 * time.Second
	// maxCookie is the longest cookie that is looked at, in bytes.
	maxCookie = 4 << 10
)

// New returns a desk. It asks the provider nothing yet.
func New(o Options) (*Desk, error) {
	u, err := url.Parse(o.PublicURL)
	if err != nil || u.Hostname() == "" || !oidc.Trusted(u) {
		return nil, errors.New("the approval page needs http.public_url, an https URL: others on the network could read the cookies of people")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	box, err := login.NewBox(o.Keys...)
	if err != nil {
		return nil, err
	}
	d := &Desk{
		o: o, origin: u.Scheme + "://" + u.Host, path: strings.TrimRight(u.EscapedPath(), "/") + Prefix, secure: u.Scheme == "https", box: box, shared: o.Shared, patience: providerTime,
		session: "__Host-packs-session", attempt: "__Host-packs-login",
	}
	if !d.secure { // cookies are not bound to a port
		d.session, d.attempt = "packs-session-"+u.Port(), "packs-login-"+u.Port()
	}
	return d, nil
}

// at returns the provider, and asks what it offers if that is not known or old.
func (d *Desk) at(ctx context.Context) (*login.Provider, error) {
	d.opening.Lock()
	defer d.opening.Unlock()
	if d.provider != nil && d.o.Now().Sub(d.asked) < freshProvider {
		return d.provider, nil
	}
	p, err := login.Open(ctx, d.o.Provider)
	if err != nil {
		return nil, err
	}
	d.provider, d.asked = p, d.o.Now()
	return p, nil
}

// Enter answers a request without a session: it sends a browser to the provider, takes the
// provider's answer, or refuses. err is the one of [Desk.Session].
func (d *Desk) Enter(w http.ResponseWriter, r *http.Request, err error) {
	page.Guard(w.Header())
	switch at := strings.TrimPrefix(r.URL.EscapedPath(), Prefix); {
	case page.ForWorker(r), !d.ours(r):
		d.say(w, http.StatusForbidden, "This request did not come from the page", "")
	case err != nil:
		d.away(w, err) // nobody knows whether there is a session
	case r.Method != http.MethodGet:
		control.Fail(w, http.StatusUnauthorized, control.ProblemForbidden, "you are not logged in")
	case at == "":
		d.redirect(w, d.path+"/")
	case at == "/callback":
		d.callback(w, r)
	case at == "/" && navigates(r) && r.URL.RawQuery == "out":
		d.say(w, http.StatusOK, "You are logged out", "You may still be logged in at your identity provider.")
	case at == "/" && navigates(r):
		d.begin(w, r)
	default:
		control.Fail(w, http.StatusUnauthorized, control.ProblemForbidden, "you are not logged in")
	}
}

// ours reports whether nothing that the browser says of where a request is from
// contradicts that it is from the page, or from a person who opens it.
func (d *Desk) ours(r *http.Request) bool {
	switch origin := r.Header.Values("Origin"); {
	case len(origin) > 1, len(origin) == 1 && origin[0] != d.origin, len(origin) == 0 && r.Method != http.MethodGet:
		return false
	}
	site := r.Header.Values("Sec-Fetch-Site")
	return len(site) == 0 || len(site) == 1 && (site[0] == "same-origin" || r.Method == http.MethodGet && navigates(r))
}

// navigates reports whether a browser shows the answer in a window of its own. Older
// browsers do not say.
func navigates(r *http.Request) bool {
	mode, dest := r.Header.Get("Sec-Fetch-Mode"), r.Header.Get("Sec-Fetch-Dest")
	return (mode == "" || mode == "navigate") && (dest == "" || dest == "document")
}

// begin sends a browser to the provider.
func (d *Desk) begin(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), providerTime)
	defer cancel()
	p, err := d.at(ctx)
	if err != nil {
		d.away(w, err)
		return
	}
	a, err := p.Begin(d.o.PublicURL + Prefix + "/callback")
	if err != nil {
		d.away(w, err)
		return
	}
	kept, err := d.box.Close(a, d.o.Now().Add(attemptTime))
	if err != nil {
		d.away(w, err)
		return
	}
	d.setCookie(w, d.attempt, kept, attemptTime)
	d.redirect(w, a.URL)
}

// callback takes the provider's answer. It has to belong to the login that this browser
// began: nobody can log in a person's browser as themselves.
func (d *Desk) callback(w http.ResponseWriter, r *http.Request) {
	const again = "Open the page again to log in."
	if !navigates(r) {
		d.say(w, http.StatusForbidden, "This request did not come from the page", "")
		return
	}
	d.setCookie(w, d.attempt, "", 0) // it is good once
	kept, ok := d.cookie(r, d.attempt)
	if !ok {
		d.say(w, http.StatusBadRequest, "This login was not begun in this browser", again)
		return
	}
	a, err := d.box.Open(kept, d.o.Now())
	if err != nil {
		d.say(w, http.StatusBadRequest, "This login took too long, or was not begun here", again)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), providerTime)
	defer cancel()
	p, err := d.at(ctx)
	if err != nil {
		d.away(w, err)
		return
	}
	tokens, err := p.Finish(ctx, a, r.URL.Query())
	refused, isRefused := errors.AsType[*login.RefusedError](err)
	switch {
	case errors.Is(err, login.ErrNotOurs):
		d.say(w, http.StatusBadRequest, "This answer does not belong to the login of this browser", again)
		return
	case isRefused:
		d.say(w, http.StatusForbidden, "Your identity provider refused", refused.Error())
		return
	case err != nil:
		d.away(w, err)
		return
	}
	who, err := d.o.Verify(ctx, tokens.Access)
	switch {
	case errors.Is(err, oidc.ErrForbidden):
		d.say(w, http.StatusForbidden, "You are in none of the groups that may use this server", "Ask its operator.")
		return
	case err != nil:
		d.away(w, err)
		return
	}
	cookie, err := d.start(ctx, r, who, tokens)
	switch {
	case errors.Is(err, errRevoked):
		d.say(w, http.StatusForbidden, "Your access was revoked a moment ago", "If that was not meant for good, log in again in ten minutes.")
		return
	case err != nil:
		d.away(w, err)
		return
	}
	d.setCookie(w, d.session, cookie, longest)
	d.redirect(w, d.path+"/")
}

// start begins a session in place of the one that the browser has.
func (d *Desk) start(ctx context.Context, r *http.Request, who *oidc.Identity, tokens login.Tokens) (cookie string, err error) {
	if old, ok := d.cookie(r, d.session); ok {
		if err := d.end(ctx, idOf(old)); err != nil {
			return "", err
		}
	}
	if d.shared == nil {
		return d.sessions.begin(who, tokens, d.o.Now()), nil
	}
	return d.share(ctx, who, tokens)
}

// away says that nobody can log in now. The log has why.
func (d *Desk) away(w http.ResponseWriter, err error) {
	d.o.Logger.Warn("a person could not log in to the approval page", "err", safetext.Line(err.Error()))
	w.Header().Set("Retry-After", "10")
	d.say(w, http.StatusServiceUnavailable, "You cannot log in now", "The server's log says why. Try again in a moment.")
}

// say shows a page with a sentence, and a way back.
func (d *Desk) say(w http.ResponseWriter, status int, title, more string) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src "+page.Inline(page.Style())+"; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = strings.NewReplacer(
		"{{style}}", page.Style(), "{{title}}", html.EscapeString(title), "{{more}}", html.EscapeString(safetext.Line(more)), "{{at}}", html.EscapeString(d.path+"/"),
	).WriteString(w, page.Text("login.html"))
}

// redirect sends a browser to an address of ours, or of the provider.
func (d *Desk) redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// setCookie has the browser keep a cookie, or forget it if the value is empty.
func (d *Desk) setCookie(w http.ResponseWriter, name, value string, age time.Duration) {
	// Lax: a person comes to the page by a link in a message, and from the provider. Only
	// reading the page takes a cookie alone; see [Desk.Serve].
	seconds := int(age / time.Second)
	if value == "" {
		seconds = -1 // the browser forgets it
	}
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: seconds, Secure: d.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// cookie returns a cookie of the request's, unless there are several of that name.
func (d *Desk) cookie(r *http.Request, name string) (string, bool) {
	all := r.CookiesNamed(name)
	if len(all) != 1 || all[0].Value == "" || len(all[0].Value) > maxCookie {
		return "", false
	}
	return all[0].Value, true
}

// proofHeader carries the second secret of a session. Another site cannot send it.
const proofHeader = "X-Packs-Key"

// Serve answers a request of a session. What it has no answer to is for the page's desk:
// then it returns true, and the request has the session's second secret.
func (d *Desk) Serve(w http.ResponseWriter, r *http.Request, s *Session) (more bool) {
	page.Guard(w.Header())
	at := strings.TrimPrefix(r.URL.EscapedPath(), Prefix)
	if page.ForWorker(r) || !d.ours(r) {
		control.Fail(w, http.StatusForbidden, control.ProblemForbidden, "this request did not come from the page")
		return false
	}
	if r.Method == http.MethodGet {
		switch at {
		case "":
			d.redirect(w, d.path+"/")
			return false
		case "/":
			if !navigates(r) {
				control.Fail(w, http.StatusForbidden, control.ProblemForbidden, "this request did not come from the page")
				return false
			}
			page.Send(w, "index.html", page.Index(s.proof, true))
			return false
		case "/callback":
			d.callback(w, r)
			return false
		}
		if text, ok := page.Asset(strings.TrimPrefix(at, "/")); ok {
			page.Send(w, at, text)
			return false
		}
	}
	if given := r.Header.Values(proofHeader); len(given) != 1 || subtle.ConstantTimeCompare([]byte(given[0]), []byte(s.proof)) != 1 {
		control.Fail(w, http.StatusForbidden, control.ProblemForbidden, "this request did not come from the page")
		return false
	}
	if r.Method == http.MethodPost && at == "/logout" {
		d.logout(w, r, s)
		return false
	}
	return true
}

// logout ends a session, and tells the provider that nobody may renew it.
func (d *Desk) logout(w http.ResponseWriter, r *http.Request, s *Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), providerTime)
	defer cancel()
	if err := d.end(ctx, s.id); err != nil {
		d.o.Logger.Warn("a person could not log out of the approval page", "err", safetext.Line(err.Error()))
		control.Fail(w, http.StatusServiceUnavailable, control.ProblemInternal, "the store that the servers share cannot be reached, so you are still logged in; try again in a moment")
		return
	}
	d.setCookie(w, d.session, "", 0)
	if p, err := d.at(ctx); err == nil {
		if err := p.Revoke(ctx, s.kept()); err != nil {
			d.o.Logger.Warn("the identity provider was not told that a person logged out", "err", safetext.Line(err.Error()))
		}
	}
	control.Answer(w, struct{}{})
}

// idOf returns the name under which a session is kept: who reads this process's memory
// later finds no cookie there.
func idOf(cookie string) [sha256.Size]byte { return sha256.Sum256([]byte(cookie)) }

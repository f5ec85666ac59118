package approvals

import (
	"encoding/base64"
	"errors"
	"html"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/page"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// keyHeader carries the page's second secret. Another site cannot send it, and
// another server on this host receives the cookie but does not know this secret.
const keyHeader = "X-Packs-Key"

// cookieName returns a name with the port in it, because cookies are not bound
// to a port.
func (d *Desk) cookieName() string {
	_, port, _ := net.SplitHostPort(d.address)
	return "packs-mcp-" + port
}

// page answers the page's requests. It refuses any request without the page's
// cookie.
func (d *Desk) page(w http.ResponseWriter, r *http.Request) {
	route := r.Method + " " + r.URL.Path
	ticket, isTicket := strings.CutPrefix(route, "GET /artifact/")
	asset, isAsset := "", false
	if name, ok := strings.CutPrefix(route, "GET /"); ok {
		asset, isAsset = page.Asset(name)
	}
	switch {
	case !d.fromPage(r), r.ContentLength != 0 && !d.hasKey(r):
		d.refuse(w, r)
	case route == "GET /":
		page.Send(w, "index.html", page.Index("", false))
	case isAsset:
		page.Send(w, r.URL.Path, asset)
	case isTicket:
		d.artifact(w, r, ticket)
	case !d.hasKey(r):
		d.refuse(w, r)
	default:
		if leave := d.place(w, r); leave != nil {
			defer leave()
			d.pageWithKey(w, r, route)
		}
	}
}

// pageWithKey answers requests from the page's own script.
func (d *Desk) pageWithKey(w http.ResponseWriter, r *http.Request, route string) {
	switch route {
	case "GET /events":
		d.events(w, r)
	case "POST /decide":
		var in struct {
			Code     string            `json:"code"`
			Decision string            `json:"decision"`
			Values   map[string]string `json:"values"`
			Gone     bool              `json:"client_gone"`
		}
		if control.ReadJSON(w, r, &in) {
			d.decide(w, control.Decision{Code: in.Code, Decision: in.Decision, Values: in.Values, Gone: in.Gone}, queue.ChannelPage)
		}
	case "POST /attach":
		d.attach(w, r)
	case "POST /changes/view":
		d.viewChanges(w, r)
	case "POST /changes/decide":
		d.decideChanges(w, r)
	case "POST /artifact":
		d.mintTicket(w, r)
	case "POST /artifact/text":
		d.artifactText(w, r)
	default:
		d.refuse(w, r)
	}
}

// fromPage reports whether the request can be the page's own: it has the cookie,
// and nothing that the browser says about its origin contradicts that.
func (d *Desk) fromPage(r *http.Request) bool {
	origin, there := only(r, "Origin")
	switch {
	case len(r.Header.Values("Origin")) > 1, there && origin != d.origin:
		return false
	case !there && r.Method != http.MethodGet:
		return false
	}
	if site, there := only(r, "Sec-Fetch-Site"); there && site != "same-origin" {
		// A navigation by the person, such as typing the address, is "none".
		if site != "none" || r.Method != http.MethodGet {
			return false
		}
	} else if len(r.Header.Values("Sec-Fetch-Site")) > 1 {
		return false
	}
	// Another server on this host can add cookies with that name, but with wrong
	// values.
	return slices.ContainsFunc(r.CookiesNamed(d.cookieName()), func(c *http.Cookie) bool { return same(c.Value, d.cookie) })
}

// hasKey reports whether the request was made by the page's own script.
func (d *Desk) hasKey(r *http.Request) bool {
	if site, there := only(r, "Sec-Fetch-Site"); there && site != "same-origin" {
		return false
	}
	key, ok := only(r, keyHeader)
	return ok && same(key, d.pageKey)
}

// refuse refuses a request in the form that its sender reads: a script or a
// person.
func (d *Desk) refuse(w http.ResponseWriter, r *http.Request) {
	d.stranger(w)
	if r.Method == http.MethodPost && r.URL.Path != enterPath || r.URL.Path == "/events" {
		control.Fail(w, http.StatusForbidden, control.ProblemForbidden, notSignedIn)
		return
	}
	refusePage(w, "")
}

const notSignedIn = "This page is not signed in. Run: packs-mcp approvals open"

// sentence formats a text as a sentence for the page.
func sentence(s string) string {
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

// refusePage sends what a person sees who is not signed in. why may be empty.
func refusePage(w http.ResponseWriter, why string) {
	if why != "" {
		why = "<p>" + html.EscapeString(sentence(why)) + "</p>\n"
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src "+page.Inline(page.Style())+"; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusForbidden)
	_, _ = strings.NewReplacer("{{why}}\n", why, "{{style}}", page.Style()).WriteString(w, page.Text("refused.html"))
}

// The JSON that the page receives.
type (
	pageHello struct {
		Server  string    `json:"server"`
		Project string    `json:"project"`
		Version string    `json:"version"`
		Now     time.Time `json:"now"`
	}
	// pageEnd says why a call left the queue.
	pageEnd struct {
		Code    string `json:"code"`
		Problem string `json:"problem"` // a queue.CodeProblem
		Detail  string `json:"detail"`
	}
	pagePast struct {
		Time     time.Time `json:"time"`
		Chat     string    `json:"chat"`
		Call     string    `json:"call"`
		Title    string    `json:"title"`
		Decision string    `json:"decision"`
		Channel  string    `json:"channel"`
		Reason   string    `json:"reason"`
		Run      string    `json:"run"`
		Outcome  string    `json:"outcome"`
	}
)

// events serves the page's event stream.
func (d *Desk) events(w http.ResponseWriter, r *http.Request) {
	hello := pageHello{
		Server: safetext.Line(d.o.Server), Project: safetext.Line(d.o.Project), Version: safetext.Line(d.o.Version), Now: d.o.Now(),
	}
	done := d.beginPage()
	defer d.endPage(done)
	d.stream(w, r, done, []part{
		{"hello", func() any { return hello }},
		{"rooms", func() any {
			if d.o.Chats == nil {
				return []pageChat{}
			}
			return pageChats(d.o.Chats.Chats())
		}},
		{"ended", func() any { return d.ended() }}, // before the queue that lacks them
		{"pending", func() any { return d.queue() }},
		{"changes", func() any { return d.changeSets() }},
		{"history", func() any {
			all := []pagePast{}
			for _, p := range d.o.Calls.History() {
				all = append(all, pagePast{
					Time: p.Time, Chat: p.Chat, Call: p.Call, Title: p.Title, Decision: p.Decision,
					Channel: p.Channel, Reason: p.Reason, Run: p.Run, Outcome: p.Outcome,
				})
			}
			return all
		}},
	})
}

// maxEnded is how many ends the page receives at a time. A page that was connected
// needs only those since the last event.
const maxEnded = 50

// ended returns how the last calls left the queue.
func (d *Desk) ended() []pageEnd {
	all := []pageEnd{}
	ended := d.o.Calls.Ended()
	for _, e := range ended[max(0, len(ended)-maxEnded):] {
		all = append(all, pageEnd{Code: e.Code, Problem: string(e.Problem), Detail: safetext.Line(e.Detail)})
	}
	return all
}

// attach attaches a pack to a chat, or detaches it.
func (d *Desk) attach(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Chat string `json:"chat"`
		Pack string `json:"pack"`
		On   *bool  `json:"on"`
	}
	if !control.ReadJSON(w, r, &in) {
		return
	}
	if d.o.Chats == nil || in.On == nil {
		control.Fail(w, http.StatusBadRequest, control.ProblemInvalid, "say which pack, of which chat, and whether on or off")
		return
	}
	if err := d.o.Chats.SetAttached(in.Chat, in.Pack, *in.On); err != nil {
		control.Fail(w, http.StatusBadRequest, control.ProblemInvalid, safetext.Line(err.Error()))
		return
	}
	control.Answer(w, struct{}{})
}

// pathOf decodes a key that the page received to its path.
func pathOf(key string) (path string, err error) {
	b, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil || len(b) == 0 {
		return "", errors.New("there is no such file")
	}
	return string(b), nil
}

package approvals

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

const (
	// ticketTime is how long a ticket stays valid. It works once.
	ticketTime = 30 * time.Second
	maxTickets = 64
	// artifactTime is how long sending an artifact may take.
	artifactTime = 10 * time.Minute
)

// artifactPolicy lets the browser only display a file, because a run wrote it.
const artifactPolicy = "sandbox; default-src 'none'; frame-ancestors 'none'"

// tickets are one-time addresses of artifacts. A new tab cannot send the page's
// header, so the page asks for a ticket first.
type tickets struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]ticket // :: digest of the ticket's id → ticket
}

type ticket struct {
	chat, path string
	as         artifactUse
	expires    time.Time
}

// An artifactUse says what a ticket's file is fetched for.
type artifactUse string

const (
	asTab      artifactUse = "tab"      // shown in a tab of its own
	asDownload artifactUse = "download" // saved
	asPicture  artifactUse = "picture"  // shown on the page, as a picture
)

// mintTicket sends the page a ticket's address.
func (d *Desk) mintTicket(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Chat string      `json:"chat"`
		Key  string      `json:"key"`
		As   artifactUse `json:"as"`
	}
	if !control.ReadJSON(w, r, &in) {
		return
	}
	if in.As != asTab && in.As != asDownload && in.As != asPicture {
		control.Fail(w, http.StatusBadRequest, control.ProblemInvalid, "say what the file is for: tab, download or picture")
		return
	}
	// Open the file now too, so that the page can show an error.
	f, about, name, err := d.openArtifact(in.Chat, in.Key)
	if err != nil {
		control.Fail(w, http.StatusNotFound, control.ProblemInvalid, artifactProblem(err))
		return
	}
	defer f.Close()
	if in.As == asPicture {
		if _, err := readPicture(f, about); err != nil {
			control.Fail(w, http.StatusConflict, control.ProblemInvalid, err.Error())
			return
		}
	}

	now := d.o.Now()
	d.tickets.mu.Lock()
	defer d.tickets.mu.Unlock()
	maps.DeleteFunc(d.tickets.all, func(_ [sha256.Size]byte, t ticket) bool { return !now.Before(t.expires) })
	if len(d.tickets.all) >= maxTickets {
		control.Fail(w, http.StatusServiceUnavailable, control.ProblemInternal, "too many files are being opened; try again in half a minute")
		return
	}
	if d.tickets.all == nil {
		d.tickets.all = make(map[[sha256.Size]byte]ticket)
	}
	id := secret()
	d.tickets.all[sha256.Sum256([]byte(id))] = ticket{in.Chat, name, in.As, now.Add(ticketTime)}
	control.Answer(w, map[string]string{"url": "/artifact/" + id})
}

// openArtifact opens a file that the page lists, and no other file of the workspace.
func (d *Desk) openArtifact(chat, key string) (f io.ReadSeekCloser, about Artifact, name string, err error) {
	name, err = pathOf(key)
	if err != nil || d.o.Chats == nil {
		return nil, Artifact{}, "", fs.ErrNotExist
	}
	for _, c := range d.o.Chats.Chats() {
		if c.ID == chat && slices.ContainsFunc(c.Artifacts, func(a Artifact) bool { return a.Path == name }) {
			f, about, err = d.o.Chats.OpenArtifact(chat, name)
			return f, about, name, err
		}
	}
	return nil, Artifact{}, "", fs.ErrNotExist
}

// maxShownText is how much of a text the page shows, in bytes.
const maxShownText = 64 << 10

// artifactText sends the page the beginning of a file as text that is safe to show.
func (d *Desk) artifactText(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Chat string `json:"chat"`
		Key  string `json:"key"`
	}
	if !control.ReadJSON(w, r, &in) {
		return
	}
	f, about, _, err := d.openArtifact(in.Chat, in.Key)
	if err != nil {
		control.Fail(w, http.StatusNotFound, control.ProblemInvalid, artifactProblem(err))
		return
	}
	defer f.Close()
	if shownOnPage(about) != shownText {
		control.Fail(w, http.StatusConflict, control.ProblemInvalid, "this file is not text")
		return
	}
	b, err := io.ReadAll(io.LimitReader(f, maxShownText+1))
	if err != nil {
		control.Fail(w, http.StatusNotFound, control.ProblemInvalid, artifactProblem(err))
		return
	}
	cut := len(b) > maxShownText
	if cut {
		b = b[:maxShownText]
		for i := 0; i < utf8.UTFMax && !utf8.Valid(b); i++ {
			b = b[:len(b)-1] // not in the middle of a character
		}
	}
	control.Answer(w, struct {
		Text string `json:"text"`
		Cut  bool   `json:"cut"`
	}{safetext.Text(string(b)), cut})
}

// How the page itself shows a file.
const (
	shownPicture = "picture"
	shownText    = "text"
)

// shownOnPage returns how the page shows a file; empty: not at all.
func shownOnPage(a Artifact) string {
	switch kind, inline := shownAs(a.MIME); {
	case !inline:
		return ""
	case strings.HasPrefix(kind, "image/"):
		return shownPicture
	default:
		return shownText
	}
}

// take spends a ticket.
func (d *Desk) take(id string) (ticket, bool) {
	d.tickets.mu.Lock()
	defer d.tickets.mu.Unlock()
	digest := sha256.Sum256([]byte(id))
	t, ok := d.tickets.all[digest]
	delete(d.tickets.all, digest)
	return t, ok && d.o.Now().Before(t.expires)
}

// artifact sends the file that a ticket is for.
func (d *Desk) artifact(w http.ResponseWriter, r *http.Request, id string) {
	t, ok := d.take(id)
	if !ok {
		d.stranger(w)
		refusePage(w, "This address was used already, or is too old. Open the file from the page.")
		return
	}
	leave := d.place(w, r)
	if leave == nil {
		return
	}
	defer leave()
	f, a, err := d.o.Chats.OpenArtifact(t.chat, t.path)
	if err != nil {
		control.Fail(w, http.StatusNotFound, control.ProblemInvalid, artifactProblem(err))
		return
	}
	defer f.Close()
	kind, inline := shownAs(a.MIME)
	content := io.ReadSeeker(f)
	if t.as == asPicture {
		// The file may be another one than when the ticket was made.
		if content, err = readPicture(f, a); err != nil {
			control.Fail(w, http.StatusConflict, control.ProblemInvalid, err.Error())
			return
		}
	}
	disposition := "attachment"
	if inline && t.as != asDownload {
		disposition = "inline"
	}
	name := strings.ReplaceAll(safetext.Line(path.Base(t.path)), `\`, "_")
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": name}))
	h.Set("Content-Security-Policy", artifactPolicy)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(artifactTime))
	http.ServeContent(w, r, "", time.Time{}, content)
}

// shownAs returns the media type under which the browser gets a file, and
// reports whether it may display it. A file that could hold a script is sent as
// text, or can only be saved.
func shownAs(kind string) (as string, inline bool) {
	media, _, err := mime.ParseMediaType(kind)
	if err != nil {
		return "application/octet-stream", false
	}
	switch media {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return media, true
	case "application/json", "application/x-ndjson", "application/xml", "application/xhtml+xml", "application/yaml",
		"application/javascript", "application/x-sh", "image/svg+xml":
		return "text/plain; charset=utf-8", true
	}
	if strings.HasPrefix(media, "text/") {
		return "text/plain; charset=utf-8", true
	}
	return "application/octet-stream", false
}

// artifactProblem tells a person why a file is unavailable. It does not include
// a path on this machine.
func artifactProblem(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "this file is no longer there"
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return "this file cannot be opened: " + safetext.Line(err.Error())
}

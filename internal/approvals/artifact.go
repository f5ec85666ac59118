package approvals

import (
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

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
	download   bool
	expires    time.Time
}

// mintTicket sends the page a ticket's address.
func (d *Desk) mintTicket(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Chat     string `json:"chat"`
		Key      string `json:"key"`
		Download bool   `json:"download"`
	}
	if !readJSON(w, r, &in) {
		return
	}
	name, err := pathOf(in.Key)
	if err != nil || d.o.Rooms == nil {
		fail(w, http.StatusNotFound, problemInvalid, "there is no such file")
		return
	}
	// Open the file now too, so that the page can show an error.
	f, _, err := d.o.Rooms.OpenArtifact(in.Chat, name)
	if err != nil {
		fail(w, http.StatusNotFound, problemInvalid, artifactProblem(err))
		return
	}
	_ = f.Close()

	now := d.o.Now()
	d.tickets.mu.Lock()
	defer d.tickets.mu.Unlock()
	maps.DeleteFunc(d.tickets.all, func(_ [sha256.Size]byte, t ticket) bool { return !now.Before(t.expires) })
	if len(d.tickets.all) >= maxTickets {
		fail(w, http.StatusServiceUnavailable, problemInternal, "too many files are being opened; try again in half a minute")
		return
	}
	if d.tickets.all == nil {
		d.tickets.all = make(map[[sha256.Size]byte]ticket)
	}
	id := secret()
	d.tickets.all[sha256.Sum256([]byte(id))] = ticket{in.Chat, name, in.Download, now.Add(ticketTime)}
	answer(w, map[string]string{"url": "/artifact/" + id})
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
	f, a, err := d.o.Rooms.OpenArtifact(t.chat, t.path)
	if err != nil {
		fail(w, http.StatusNotFound, problemInvalid, artifactProblem(err))
		return
	}
	defer f.Close()
	kind, inline := shownAs(a.MIME)
	disposition := "attachment"
	if inline && !t.download {
		disposition = "inline"
	}
	name := strings.ReplaceAll(safetext.Line(path.Base(t.path)), `\`, "_")
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": name}))
	h.Set("Content-Security-Policy", artifactPolicy)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(artifactTime))
	http.ServeContent(w, r, "", time.Time{}, f)
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

package approvals

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/runfolder"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// Calls is the queue of waiting calls. [gate.Gate] implements it.
type Calls interface {
	// Pending returns the waiting calls, oldest first.
	Pending() []queue.Pending
	// History returns past decisions, newest first.
	History() []queue.Past
	// Ended returns the calls that left the queue, and how, newest last.
	Ended() []queue.CodeError
	// Decide answers a call; an error is a [*queue.CodeError] unless something
	// broke. The call comes back as it was decided.
	Decide(code string, v queue.Verdict) (queue.Pending, error)
	// Changes returns a channel that is closed at the next change of the queue
	// or the history. A call that expires need not close it.
	Changes() <-chan struct{}
}

// Options configure a [Desk].
type Options struct {
	Calls Calls // required
	// Grants are what was allowed in the server's chats; nil: nothing.
	Grants Grants
	// Chats supplies the chats that the page shows beside the calls; nil shows
	// none.
	Chats ChatSource
	// Changes supplies the changes of runs, which a person can view, apply,
	// discard and undo on the page; nil shows none.
	Changes Changes
	// RunDir is the folder for the announcement and for the files that lead to
	// the page. Open creates it if needed and closes it to other users.
	RunDir string
	Server string // names this process, as in the audit log
	// Project is the project's folder, to tell servers apart; may be empty.
	Project string
	Version string // of the program
	// Page serves the approval page.
	Page bool
	// Terminal lets other programs of the same user see and answer the calls.
	// Without it they can only ask for the page, and for what was allowed in
	// chats, to take it back.
	Terminal bool
	// Listen is the loopback address to listen on; empty is a free port of a
	// random address in 127.0.0.0/8.
	Listen string
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil is time.Now
	// OpenBrowser shows a file in the user's browser, without waiting; if nil,
	// opening the page fails.
	OpenBrowser func(file string) error
	// Notify has the system show a notification, without waiting; nil shows none.
	Notify func(title, text string) error

	// quiet is the time between two alerts; 0 is alertTime.
	quiet time.Duration
	// stall is how long a write may take before the reader counts as gone; 0 is
	// stallTime.
	stall time.Duration
	// slow is how long a client may take to send its headers or a body; 0 is
	// headerTime, readTime and enterTime.
	slow time.Duration
}

// The limits of a desk. Its users are one person and that person's scripts.
const (
	maxStrangers = 256      // connections that have not shown a key
	maxFromOne   = 192      // of these, from one remote address
	maxConns     = 128      // connections that have shown a key
	maxRequests  = 64       // concurrent requests with a key, including streams
	maxStreams   = 16       // streams of events
	maxPages     = 4        // streams of pages; browsers allow six connections to one address
	maxHeader    = 16 << 10 // bytes
	headerTime   = 5 * time.Second
	readTime     = 10 * time.Second // for headers and body
	stallTime    = 10 * time.Second
	beatTime     = 15 * time.Second       // between heartbeats on a stream
	restTime     = 100 * time.Millisecond // between two updates of a stream
	closeTime    = 300 * time.Millisecond // for requests in progress at the end
	alertTime    = time.Minute            // between two alerts
	secretBytes  = 32
)

// A Desk shows the calls of one server on the approval page and in terminals,
// and passes the answers on. Create one with [Open], and close it.
type Desk struct {
	o       Options
	address string // host:port; the Host header must equal it
	origin  string // of the page
	started time.Time
	folder  *runfolder.Folder
	http    *http.Server

	key     string // of /control
	cookie  string // of the page, HttpOnly; browsers send it to every port of this address
	pageKey string // the page's second secret, sent in a header; only the page's own origin has it

	ctx  context.Context // ends with the desk
	stop context.CancelFunc
	wg   sync.WaitGroup // counts everything that runs for the desk

	entries entries // the one-time files
	tickets tickets
	refused atomic.Int64 // requests without a key

	mu       sync.Mutex
	closed   bool
	busy     int             // requests with a key in progress
	streams  int             // of these, streams of events
	pages    []chan struct{} // of these, pages, oldest first; closed by the code that removes one
	alert    *time.Timer     // the next alert; nil: none is planned
	alerted  time.Time       // the last alert
	answered time.Time       // the last answer by the page or the terminal
	announce string          // the announcement's name in the folder
}

// Open starts listening, and announces the desk in the run folder.
func Open(o Options) (*Desk, error) {
	if o.Calls == nil || o.RunDir == "" {
		return nil, errors.New("approvals: a queue and a run folder are required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.stall <= 0 {
		o.stall = stallTime
	}
	if o.quiet <= 0 {
		o.quiet = alertTime
	}
	f, err := runfolder.Open(o.RunDir)
	if err != nil {
		return nil, err
	}
	l, err := listenOn(o.Listen)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listening for the approval page: %w", err), f.Close())
	}
	if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("listening for the approval page: %q is not on the loopback interface", o.Listen), l.Close(), f.Close())
	}
	d := &Desk{
		o: o, folder: f, started: o.Now(),
		address: l.Addr().String(), origin: "http://" + l.Addr().String(),
		key: secret(), cookie: secret(), pageKey: secret(),
	}
	d.ctx, d.stop = context.WithCancel(context.Background())
	d.http = &http.Server{
		Handler:           http.HandlerFunc(d.serve),
		ReadHeaderTimeout: cmp.Or(o.slow, headerTime),
		ReadTimeout:       cmp.Or(o.slow, readTime),
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		ConnContext:       withConn,
		// Its handler of "OPTIONS *" would read a body.
		DisableGeneralOptionsHandler: true,
	}
	d.wg.Go(func() {
		bounded := &strangerListener{Listener: l, most: maxStrangers, each: maxFromOne, mostKeys: maxConns}
		if err := d.http.Serve(bounded); !errors.Is(err, http.ErrServerClosed) {
			d.o.Logger.Error("the approval page and the terminal are no longer served", "err", err)
		}
	})
	// Announce last, when everything that the announcement promises works.
	d.announce, err = f.Announce(control.Announcement{
		Version: control.Version, PID: os.Getpid(), Server: o.Server, Address: d.address, Key: d.key, Started: d.started, Project: o.Project,
	})
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Address returns the host and port that the desk listens on.
func (d *Desk) Address() string { return d.address }

// Close stops the desk, removes its files, and waits for everything that runs
// for it. It does not answer waiting calls.
func (d *Desk) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	if d.alert != nil && d.alert.Stop() {
		d.wg.Done()
	}
	name := d.announce
	d.mu.Unlock()

	var errs []error
	if name != "" {
		// Remove it first, so that no client is led to a desk that is closing.
		errs = append(errs, d.folder.Remove(name))
	}
	d.stop() // ends the streams and lets nothing new begin
	errs = append(errs, d.dropEntries())
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if d.http.Shutdown(ctx) != nil {
		errs = append(errs, d.http.Close())
	}
	d.wg.Wait()
	if n := d.refused.Load(); n > 0 {
		d.o.Logger.Debug("requests to the approval page were refused: they had no key", "count", n)
	}
	return errors.Join(append(errs, d.folder.Close())...)
}

// errNoPage is shown to people.
var errNoPage = errors.New("this server does not have the approval page: its configuration leaves it out")

// OpenPage opens the page in the user's browser, through a file that works once.
func (d *Desk) OpenPage() error {
	if d.o.OpenBrowser == nil {
		return errors.New("there is no browser")
	}
	file, err := d.writeEntry()
	if err != nil {
		return err
	}
	if err := d.o.OpenBrowser(file); err != nil {
		return errors.Join(err, d.dropEntry(file))
	}
	return nil
}

// secret returns 256 random bits as letters, digits, "-" and "_".
func secret() string {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}

// begin counts a request, and returns the function to call at its end; nil if
// the desk is closed.
func (d *Desk) begin() (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.wg.Add(1)
	return d.wg.Done
}

// place takes a place among the requests with a key, and returns the function
// that gives it back. If all places are taken, it answers the request and
// returns nil. Requests without a key take no place: they are answered from
// their headers alone.
func (d *Desk) place(w http.ResponseWriter, r *http.Request) (leave func()) {
	keepConn(r)
	d.mu.Lock()
	full := d.busy >= maxRequests
	if !full {
		d.busy++
	}
	d.mu.Unlock()
	if full {
		control.Fail(w, http.StatusServiceUnavailable, control.ProblemInternal, "too many requests at once; try again in a moment")
		return nil
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.busy--
	}
}

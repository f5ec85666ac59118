package approvals

import (
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

	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// Calls is the queue of the calls that wait. It is [gate.Gate].
type Calls interface {
	// Pending is the calls that wait, oldest first.
	Pending() []queue.Pending
	// History is the decisions that were made, newest first.
	History() []queue.Past
	// Decide answers a call; an error is a [*queue.CodeError] unless something
	// broke. The call comes back as it was decided.
	Decide(code string, v queue.Verdict) (queue.Pending, error)
	// Changes returns a channel that is closed at the next change of the queue
	// or the history.
	Changes() <-chan struct{}
}

// Options are what a desk is made of.
type Options struct {
	Calls Calls // required
	// Rooms is what the page shows beside the calls; nil is nothing.
	Rooms Rooms
	// Changes is what runs changed, which a person can look at, apply, discard and
	// take back on the page; nil is nothing.
	Changes Changes
	// RunDir is the folder for the announcement and for the files that lead to
	// the page. It is made, and made the user's alone.
	RunDir string
	Server string // names this process, as in the audit log
	// Project is the project's folder, to tell servers apart; may be empty.
	Project string
	Version string // of the program
	// Page serves the approval page.
	Page bool
	// Terminal lets other programs of the same user see the calls and answer them.
	// Without it they can only have the page opened.
	Terminal bool
	// Listen is the address to listen on, of the loopback interface; empty is a
	// free port of an address of 127.0.0.0/8 that nobody knows before.
	Listen string
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil is time.Now
	// OpenBrowser shows a file in the user's browser, and does not wait for it;
	// nil is an error.
	OpenBrowser func(file string) error

	// stall is how long a write may take before the reader counts as gone; 0 is
	// stallTime.
	stall time.Duration
}

// The limits of a desk. The people who use one are a person and his scripts.
const (
	maxStrangers = 256      // connections on which no key was shown
	maxFromOne   = 192      // of these, from one remote address
	maxConns     = 128      // connections on which a key was shown
	maxRequests  = 64       // requests with a key under way, streams included
	maxStreams   = 16       // streams of events
	maxPages     = 4        // streams of pages; browsers have six connections for one address
	maxHeader    = 16 << 10 // bytes
	maxRequest   = 64 << 10 // bytes of a body
	headerTime   = 5 * time.Second
	stallTime    = 10 * time.Second
	beatTime     = 15 * time.Second       // between signs of life on a stream
	restTime     = 100 * time.Millisecond // between two looks at what a stream shows
	closeTime    = 300 * time.Millisecond // for requests that are under way at the end
	secretBytes  = 32
)

// A Desk shows the calls of one server on the approval page and to terminals,
// and passes the answers on. Make one with [Open], and close it.
type Desk struct {
	o       Options
	address string // host:port, what Host has to be
	origin  string // of the page
	started time.Time
	folder  *folder
	http    *http.Server

	key     string // of /control
	cookie  string // of the page, HttpOnly; browsers send it to every port of this address
	pageKey string // of the page too, in a header; only the page's own origin has it

	ctx  context.Context // ends with the desk
	stop context.CancelFunc
	wg   sync.WaitGroup // of everything that runs for the desk

	entries entries // the one-time files
	tickets tickets
	refused atomic.Int64 // requests without a key

	mu       sync.Mutex
	closed   bool
	busy     int             // requests with a key under way
	streams  int             // of these, streams of events
	pages    []chan struct{} // of these, pages, oldest first; closed by whoever takes one out
	opened   bool            // OpenOnce was called
	announce string          // the announcement's name in the folder
}

// Open listens, and announces the desk in the run folder.
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
	f, err := openFolder(o.RunDir)
	if err != nil {
		return nil, err
	}
	l, err := listenOn(o.Listen)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listening for the approval page: %w", err), f.Close())
	}
	if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("listening for the approval page: %q is not of the loopback interface", o.Listen), l.Close(), f.Close())
	}
	d := &Desk{
		o: o, folder: f, started: o.Now(),
		address: l.Addr().String(), origin: "http://" + l.Addr().String(),
		key: secret(), cookie: secret(), pageKey: secret(),
	}
	d.ctx, d.stop = context.WithCancel(context.Background())
	d.http = &http.Server{
		Handler:           http.HandlerFunc(d.serve),
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       10 * time.Second,
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
	// Announced last, when everything it promises is there.
	d.announce, err = f.announce(Announcement{
		Version: 1, PID: os.Getpid(), Server: o.Server, Address: d.address, Key: d.key, Started: d.started, Project: o.Project,
	})
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Address is the host and port that the desk listens on.
func (d *Desk) Address() string { return d.address }

// Close stops the desk, removes its files, and waits for everything that runs
// for it. Calls that wait are not answered by it.
func (d *Desk) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	name := d.announce
	d.mu.Unlock()

	var errs []error
	if name != "" {
		// First of all, so that nobody comes who finds nothing.
		errs = append(errs, d.folder.remove(name))
	}
	d.stop() // the streams end, and nothing new begins
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

// errNoPage is for people.
var errNoPage = errors.New("this server does not have the approval page: its configuration leaves it out")

// OpenPage opens the page in the user's browser, by a file that works once.
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

// OpenOnce is [Desk.OpenPage] the first time that it is called, unless the page
// is open already. After that it does nothing: a browser window is not thrown at
// a person twice.
func (d *Desk) OpenOnce() error {
	d.mu.Lock()
	skip := d.opened || len(d.pages) > 0
	d.opened = true
	d.mu.Unlock()
	if skip {
		return nil
	}
	return d.OpenPage()
}

// secret is 256 random bits, as letters, digits, "-" and "_".
func secret() string {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}

// begin counts a request, and returns what to call at its end; nil when the desk
// is closed.
func (d *Desk) begin() (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.wg.Add(1)
	return d.wg.Done
}

// place takes a place among the requests with a key, and returns what gives it
// back. When all are taken it has answered, and returns nil. Requests without a
// key take none: they are answered from their headers alone.
func (d *Desk) place(w http.ResponseWriter, r *http.Request) (leave func()) {
	keepConn(r)
	d.mu.Lock()
	full := d.busy >= maxRequests
	if !full {
		d.busy++
	}
	d.mu.Unlock()
	if full {
		fail(w, http.StatusServiceUnavailable, problemInternal, "too many requests at once; try again in a moment")
		return nil
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.busy--
	}
}

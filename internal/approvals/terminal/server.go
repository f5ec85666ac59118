package terminal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/runfolder"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

const (
	dialTimeout = 2 * time.Second
	// requestTimeout bounds every request except the event stream. A decision is
	// on disk before its response is sent.
	requestTimeout = 15 * time.Second
	// maxQueue is the longest response that is read: a question has up to 16,000
	// characters, and hundreds may wait.
	maxQueue = 32 << 20
	// maxRefusal is how much of a refusal in plain text is shown, in bytes.
	maxRefusal = 300
)

// A Server is a running server of this user, as the terminal sees it. All
// strings that its methods return are safe to show. It is safe for concurrent
// use.
type Server struct {
	PID     int
	Name    string // as in the audit log
	Project string // the project's folder; may be empty
	Started time.Time
	// PageOnly reports whether the server takes answers on its page only: then
	// all it does for the terminal is open the page.
	PageOnly bool

	base   string // of every request's URL
	key    func(context.Context) (string, error)
	runDir string
	client *http.Client
}

func newServer(a control.Announcement, runDir string) *Server {
	dialer := net.Dialer{Timeout: dialTimeout}
	return &Server{
		PID: a.PID, Name: oneLine(a.Server), Project: oneLine(a.Project), Started: a.Started,
		base: "http://" + a.Address, key: Fixed(a.Key), runDir: runDir,
		client: &http.Client{
			Transport: &http.Transport{
				// The key must go to this address only, so ignore the
				// environment's proxies.
				Proxy: nil,
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return dialer.DialContext(ctx, "tcp", a.Address)
				},
				DisableKeepAlives:      true, // leaves no connection that a caller would have to close
				DisableCompression:     true,
				ResponseHeaderTimeout:  requestTimeout,
				MaxResponseHeaderBytes: 64 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Fixed returns a token that stays the same, for [Remote].
func Fixed(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

// Remote returns a team's server, as the holder of a token sees it: the calls that this
// person may decide about. The address is an https URL, or http on this machine: who
// could read the token could answer. Each request asks for the token anew.
func Remote(address string, token func(context.Context) (string, error)) (*Server, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q is not the URL of a server, such as https://packs.example.com", address)
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return nil, fmt.Errorf("%q is not an https URL: others on the network could read the token", address)
	}
	base := strings.TrimSuffix(strings.TrimSuffix(u.String(), "/"), "/mcp")
	return &Server{
		Name: base, base: base + control.TeamPrefix, key: token,
		client: &http.Client{
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: dialTimeout * 5,
				DisableCompression: true, ResponseHeaderTimeout: requestTimeout, MaxResponseHeaderBytes: 64 << 10,
			},
			// Elsewhere is another server, which must not get the token.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// isLoopback reports whether a host is certainly this machine.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// ID identifies this server. A later server with the same pid has another ID.
func (s *Server) ID() string { return s.Name + " " + s.base }

// A RefusedError says why a server refused a request.
type RefusedError struct {
	Status  int    // of HTTP
	Problem string // a queue.CodeProblem, or "forbidden", "invalid", "internal", "page_only"; empty when it did not say
	Message string // one line, safe to show
}

func (e *RefusedError) Error() string { return e.Message }

// Pending returns the waiting calls, oldest first.
func (s *Server) Pending(ctx context.Context) ([]control.Call, error) {
	var q control.Queue
	if err := s.do(ctx, http.MethodGet, control.PathPending, nil, &q); err != nil {
		return nil, err
	}
	return safeCalls(q.Pending), nil
}

// Decide sends a decision to the server. If it returns a *[RefusedError], the
// decision did not count, and the error says why. After any other error it is
// not known whether the server received the decision.
func (s *Server) Decide(ctx context.Context, d control.Decision) (control.Decided, error) {
	var done control.Decided
	err := s.do(ctx, http.MethodPost, control.PathDecide, d, &done)
	done.Title = oneLine(done.Title)
	return done, err
}

// Why asks the server why a code that is not among [Server.Pending] is invalid.
// It returns the answer as a *[RefusedError], or another error if the server
// gave none. It never decides anything, even if the call does wait.
func (s *Server) Why(ctx context.Context, code string) error {
	// The server gives the reason in response to a decision. This decision fills
	// in a field without a name, which no call has, so it cannot count.
	_, err := s.Decide(ctx, control.Decision{Code: code, Decision: string(queue.Once), Values: map[string]string{"": "?"}})
	if r, ok := errors.AsType[*RefusedError](err); ok && r.Problem != string(queue.CodeInvalid) {
		return err
	}
	return errors.Join(errors.New("the server does not say why"), err)
}

// OpenPage has the server write a one-time file that leads this user's browser
// to its page, and returns the file's absolute path.
func (s *Server) OpenPage(ctx context.Context) (string, error) {
	var o control.Opened
	if err := s.do(ctx, http.MethodPost, control.PathOpen, struct{}{}, &o); err != nil {
		return "", err
	}
	// Send the browser only to a file in the run folder.
	file := filepath.Join(s.runDir, filepath.Base(filepath.Clean(o.File)))
	fi, err := os.Lstat(file)
	if err != nil {
		return "", fmt.Errorf("the server named a file that is not there: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return "", fmt.Errorf("the server named %q, which is not a regular file", file)
	}
	if why := runfolder.Exposed(fi); why != "" {
		return "", fmt.Errorf("the server named %q, which %s", file, why)
	}
	return file, nil
}

// Watch yields the waiting calls, oldest first, now and after every change. It
// ends when ctx ends, or after yielding an error: a *[RefusedError] if the
// server refuses, any other error if the server has gone.
func (s *Server) Watch(ctx context.Context) iter.Seq2[[]control.Call, error] {
	return func(yield func([]control.Call, error) bool) {
		err := s.watch(ctx, func(q control.Queue) bool { return yield(safeCalls(q.Pending), nil) })
		if err != nil && ctx.Err() == nil {
			yield(nil, err)
		}
	}
}

// watch passes each event to use. It returns nil once use returns false.
func (s *Server) watch(ctx context.Context, use func(control.Queue) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the request
	res, err := s.send(ctx, http.MethodGet, control.PathEvents, nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxQueue)
	event, data := "", []byte(nil)
	for lines.Scan() {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(lines.Bytes()) == 0: // the end of one event
			if event == "pending" && data != nil {
				var q control.Queue
				if err := json.Unmarshal(data, &q); err != nil {
					return fmt.Errorf("the server's event is not right: %w", err)
				}
				if !use(q) {
					return nil
				}
			}
			event, data = "", nil
		case string(name) == "event":
			event = string(value)
		case string(name) == "data":
			if data != nil {
				data = append(data, '\n')
			}
			if len(data)+len(value) > maxQueue {
				return errors.New("the server's event is too long")
			}
			data = append(data, value...)
		} // ignore comments and other fields
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("listening to the server: %w", err)
	}
	return io.EOF
}

// do makes one request and reads its answer into out.
func (s *Server) do(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	res, err := s.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	data, err := readAtMost(res.Body, maxQueue)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("the server's answer is not right: %w", err)
	}
	return nil
}

// send makes one request. A response that is not 200 is an error.
func (s *Server) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("asking the server: %w", err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("asking the server: %w", err)
	}
	key, err := s.key(ctx)
	if err != nil {
		return nil, err
	}
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token is empty, or has characters that no token has")
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the server: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		return nil, refused(res)
	}
	return res, nil
}

// refused reads from a response why the server refused the request.
func refused(res *http.Response) error {
	e := &RefusedError{Status: res.StatusCode}
	var f control.Failure
	data, err := readAtMost(res.Body, 1<<20)
	if err == nil && json.Unmarshal(data, &f) == nil {
		e.Problem, e.Message = oneLine(f.Error.Problem), oneLine(f.Error.Message)
	}
	if e.Message == "" {
		e.Message = fmt.Sprintf("the server answered with the status %d", res.StatusCode)
		if strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") && len(data) <= maxRefusal {
			e.Message += ": " + oneLine(strings.TrimSpace(string(data)))
		}
	}
	return e
}

func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading the server's answer: %w", err)
	}
	if int64(len(data)) > limit {
		return nil, errors.New("the server's answer is too long")
	}
	return data, nil
}

// oneLine makes a server's text safe for one line of a terminal.
func oneLine(s string) string { return safetext.Line(s) }

// safeCalls makes calls safe to show. The server has escaped text that others
// wrote, but a terminal must not depend on that.
func safeCalls(calls []control.Call) []control.Call {
	safe := make([]control.Call, len(calls))
	for i, c := range calls {
		c.Code, c.Chat, c.Client, c.Person = oneLine(c.Code), oneLine(c.Chat), oneLine(c.Client), oneLine(c.Person)
		c.Kind, c.Pack, c.Title, c.Card = oneLine(c.Kind), oneLine(c.Pack), oneLine(c.Title), c.Card.Safe()
		c.Note, c.Answered = oneLine(c.Note), oneLine(c.Answered)
		choices, fields := make([]control.Choice, len(c.Choices)), make([]control.Field, len(c.Fields))
		for j, ch := range c.Choices {
			choices[j] = control.Choice{Value: oneLine(ch.Value), Title: oneLine(ch.Title), Means: oneLine(ch.Means), Lasts: ch.Lasts}
		}
		for j, f := range c.Fields {
			fields[j] = control.Field{Name: oneLine(f.Name), Title: oneLine(f.Title)}
		}
		c.Choices, c.Fields = choices, fields
		safe[i] = c
	}
	return safe
}

package served

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

// token is the token of clients over HTTP.
const token = "served-0123456789abcdef0123456789abcdef"

// version is the last protocol version with sessions, and with notifications without
// a subscription.
const version = "2025-11-25"

// A Server is one process.
type Server struct {
	w     *World
	cmd   *exec.Cmd
	log   *logbuf.Buffer
	ended chan struct{} // closed when the process has ended, and its log is complete
	url   string        // of the HTTP server; empty on standard input and output
	// quit says that the server was told to print its stacks and end.
	quit atomic.Bool
}

// PID returns the process id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log returns what the server wrote to standard error.
func (s *Server) Log() string { return s.log.String() }

// start starts a process whose pipes are already set up.
func (w *World) start(cmd *exec.Cmd) *Server {
	w.T.Helper()
	s := &Server{w: w, cmd: cmd, log: new(logbuf.Buffer), ended: make(chan struct{})}
	cmd.Stderr = s.log
	if err := cmd.Start(); err != nil {
		w.T.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is in ProcessState
		close(s.ended)
	}()
	return s
}

// finish waits until the process has ended, and kills it if it takes too long.
func (s *Server) finish() {
	s.w.T.Helper()
	select {
	case <-s.ended:
	case <-time.After(Patience):
		_ = s.cmd.Process.Kill()
		<-s.ended
		s.w.T.Errorf("the server did not end by itself; it logged:\n%s", s.Log())
	}
}

// Serve starts a server over HTTP.
func (w *World) Serve(flags ...string) *Server {
	w.T.Helper()
	s := w.start(w.Command(context.Background(), append([]string{"serve", "--packs", w.Packs, "--http", "127.0.0.1:0"}, flags...)...))
	w.T.Cleanup(func() {
		_ = s.cmd.Process.Signal(os.Interrupt)
		s.finish()
		s.good()
	})
	where := regexp.MustCompile(`url=(http://[^ ]+)/mcp`)
	w.Until("the server says where it is", func() bool {
		select {
		case <-s.ended:
			w.T.Fatalf("the server ended, and logged:\n%s", s.Log())
		default:
		}
		if m := where.FindStringSubmatch(s.Log()); m != nil {
			s.url = m[1]
		}
		return s.url != ""
	})
	return s
}

// good checks what the server logged.
func (s *Server) good() {
	s.w.T.Helper()
	if s.quit.Load() {
		return
	}
	if text := s.Log(); strings.Contains(text, "level=ERROR") || strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic") {
		s.w.T.Errorf("the server logged:\n%s", text)
	}
}

// A Client speaks with one server; on standard input and output, with one of its
// own.
type Client struct {
	*mcpgo.Client
	*Server
	decision string // what its person chooses

	mu    sync.Mutex
	heard map[string]int // :: method → how often
	wake  chan struct{}  // has a value if a notification came since the last receive
}

// Stdio starts a server and a client whose person always gives the same decision.
// args, if any, replace "serve --packs".
func (w *World) Stdio(decision string, args ...string) *Client {
	w.T.Helper()
	if len(args) == 0 {
		args = []string{"serve", "--packs", w.Packs}
	}
	cmd := w.Command(context.Background(), args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		w.T.Fatal(err)
	}
	out, pipe := io.Pipe() // unlike the command's own, read to the end
	cmd.Stdout = pipe
	s := w.start(cmd)
	go func() {
		<-s.ended
		_ = pipe.Close()
	}()
	w.T.Cleanup(func() {
		_ = in.Close()
		s.finish()
	})
	return s.connect(transport.NewIO(out, in, io.NopCloser(strings.NewReader(""))), decision)
}

// Client connects one more client to an HTTP server.
func (s *Server) Client(decision string) *Client {
	s.w.T.Helper()
	way, err := transport.NewStreamableHTTP(s.url+"/mcp", transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}),
		transport.WithHTTPLogger(slog.New(slog.DiscardHandler)),
		//lint:ignore SA1019 sessions have no other stream for notifications
		transport.WithContinuousListening())
	if err != nil {
		s.w.T.Fatal(err)
	}
	return s.connect(way, decision)
}

func (s *Server) connect(way transport.Interface, decision string) *Client {
	s.w.T.Helper()
	c := &Client{Server: s, decision: decision, heard: make(map[string]int), wake: make(chan struct{}, 1)}
	c.Client = mcpgo.NewClient(way, mcpgo.WithProtocolVersion(version), mcpgo.WithElicitationHandler(c))
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		c.mu.Lock()
		c.heard[n.Method]++
		c.mu.Unlock()
		select {
		case c.wake <- struct{}{}:
		default:
		}
	})
	// Closing a client twice is harmless.
	s.w.T.Cleanup(func() { _ = c.Client.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	err := c.Start(context.Background()) // what it begins lasts until Close
	if err == nil {
		_, err = c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
			ProtocolVersion: version, ClientInfo: mcp.Implementation{Name: "served", Version: "1"},
		}})
	}
	if err != nil {
		s.w.T.Fatalf("connecting: %v; the server logged:\n%s", err, s.Log())
	}
	return c
}

// Elicit is the person.
func (c *Client) Elicit(context.Context, mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{
		Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"decision": c.decision},
	}}, nil
}

// End ends the session, and the client's own server, if it has one, which must end
// cleanly.
func (c *Client) End() {
	c.w.T.Helper()
	if err := c.Client.Close(); err != nil {
		c.w.T.Errorf("Close() = %v", err)
	}
	if c.url != "" {
		return
	}
	c.finish()
	if status := c.cmd.ProcessState.ExitCode(); status != 0 {
		c.w.T.Errorf("the server ended with %d, and logged:\n%s", status, c.Log())
	}
	c.good()
}

// Wake has a value if a notification came since the last receive.
func (c *Client) Wake() <-chan struct{} { return c.wake }

// Heard returns how many notifications of a method came.
func (c *Client) Heard(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard[method]
}

// An Answer is the result of a tool call.
type Answer struct {
	Content json.RawMessage // structured
	Code    string          // of the error; empty when there is none
	Message string          // of the error
}

// Into decodes the content.
func (a Answer) Into(v any) error {
	if err := json.Unmarshal(a.Content, v); err != nil {
		return fmt.Errorf("reading the answer %s: %w", a.Content, err)
	}
	return nil
}

// Call calls a tool. The error is that there was no answer.
func (c *Client) Call(ctx context.Context, tool string, args map[string]any) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if args == nil {
		args = map[string]any{}
	}
	result, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: tool, Arguments: args}})
	if err != nil {
		return Answer{}, fmt.Errorf("calling %q with %v: %w", tool, args, err)
	}
	var a Answer
	if a.Content = result.RawStructuredContent; a.Content == nil {
		if a.Content, err = json.Marshal(result.StructuredContent); err != nil {
			return Answer{}, err
		}
	}
	var e struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(a.Content, &e); err != nil {
		return Answer{}, err
	}
	a.Code, a.Message = e.Error.Code, e.Error.Message
	return a, nil
}

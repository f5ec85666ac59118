package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A Session is what the library knows about a client. On a connection, an older
// client has one session from initialize on. A request of 2026-07-28 or later
// has its own, since it declares everything about the client again. So has every
// request over HTTP, since its answer is its own stream. Every session belongs
// to a chat.
type Session struct {
	*Peer
	host   Host
	sender Sender
	chat   Chat
	logger *slog.Logger
	// listenID is the id of the modern request that this session was made for;
	// it tags what is sent on that request's stream.
	listenID json.RawMessage

	mu       sync.Mutex
	notes    chan mcp.JSONRPCNotification // created when first used; drainNotes reads it
	drained  chan struct{}                // closed by drainNotes when it ends
	isReady  bool                         // the client said that it is initialized, or its stream was acknowledged
	missed   []Note                       // notes from before that
	filter   mcp.SubscriptionFilter
	isClosed bool
	closed   chan struct{} // closed by close
}

// A Peer is what a client declared about itself. An older client declares it
// once, and its sessions share it; a client of 2026-07-28 or later declares it
// with every request.
type Peer struct {
	asked       questions
	initialized atomic.Bool

	mu      sync.Mutex
	info    mcp.Implementation
	caps    mcp.ClientCapabilities
	apps    appsSupport
	version string
	uris    map[string]string // :: canonical spelling of a subscribed URI → the client's spelling
}

var (
	_ mcpserver.ClientSession                 = (*Session)(nil)
	_ mcpserver.SessionWithClientInfo         = (*Session)(nil)
	_ mcpserver.SessionWithElicitation        = (*Session)(nil)
	_ mcpserver.SessionWithProtocolVersion    = (*Session)(nil)
	_ mcpserver.SessionWithSubscriptionFilter = (*Session)(nil)

	_ mcpserver.SessionWithResourceSubscriptionsErr = (*Session)(nil)
)

// NewSession returns a session of a client; listenID is nil for an older client.
func NewSession(host Host, to Sender, ch Chat, of *Peer, listenID json.RawMessage) *Session {
	return &Session{Peer: of, host: host, sender: to, chat: ch, listenID: listenID, logger: host.Logger(), closed: make(chan struct{})}
}

// Chat returns the session's chat, as its [Host] opened it.
func (s *Session) Chat() Chat { return s.chat }

func (s *Session) SessionID() string { return s.chat.ID() }
func (p *Peer) Initialize()          { p.initialized.Store(true) }
func (p *Peer) Initialized() bool    { return p.initialized.Load() }

// NotificationChannel returns the channel on which the library sends the one
// notification that it makes itself, the acknowledgement of a stream. Notify
// writes all others, in order with the replies.
func (s *Session) NotificationChannel() chan<- mcp.JSONRPCNotification {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notes == nil {
		s.notes = make(chan mcp.JSONRPCNotification, 4)
		s.drained = make(chan struct{})
		go s.drainNotes()
	}
	return s.notes
}

// drainNotes writes the library's notifications until the session is closed.
func (s *Session) drainNotes() {
	defer close(s.drained)
	for {
		select {
		case n := <-s.notes:
			s.send(n)
		case <-s.closed:
			for {
				select {
				case n := <-s.notes:
					s.send(n)
				default:
					return
				}
			}
		}
	}
}

func (s *Session) send(n mcp.JSONRPCNotification) {
	ack := n.Method == mcp.MethodNotificationSubscriptionsAcknowledged
	if ack {
		n.Params.Meta[mcp.MetaKeySubscriptionID] = s.listenID // exactly as it arrived
		// The library says what was requested; this is what was granted.
		established, _ := s.SubscriptionFilter()
		established.ResourceSubscriptions = s.SubscribedResources()
		n.Params.AdditionalFields["notifications"] = established
	}
	s.sender.Send(n)
	if ack {
		s.Ready()
	}
}

// Ready is called when the client may be told about changes. Earlier changes are
// told now.
func (s *Session) Ready() {
	s.mu.Lock()
	s.isReady = true
	missed := s.missed
	s.missed = nil
	s.mu.Unlock()
	for _, n := range missed {
		s.Tell(n)
	}
}

// SetSubscriptionFilter is called with what a client subscribed to when it opens
// a stream, and with the zero filter when that stream ends.
func (s *Session) SetSubscriptionFilter(f mcp.SubscriptionFilter) {
	s.mu.Lock()
	s.filter = f
	s.mu.Unlock()
	if f.IsEmpty() {
		s.chat.Unlisten(s)
	} else {
		s.chat.Listen(s)
	}
}

func (s *Session) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.filter, !s.filter.IsEmpty()
}

func (p *Peer) GetClientInfo() mcp.Implementation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.info
}

// SetClientInfo keeps the client's name and version, cut to a readable length: they
// live as long as the session, are shown with each question, and are in each line of
// the audit log. A token in them is removed completely.
func (s *Session) SetClientInfo(i mcp.Implementation) {
	kept := mcp.Implementation{Name: cutName(s.host.Redact(i.Name)), Version: cutName(s.host.Redact(i.Version))}
	s.Peer.mu.Lock()
	defer s.Peer.mu.Unlock()
	s.Peer.info = kept
}

// maxClientName is how many characters of a client's name, and of its version,
// are kept.
const maxClientName = 100

// cutName returns the beginning of a name, without keeping the rest in memory.
func cutName(name string) string {
	count := 0
	for i := range name {
		if count == maxClientName {
			return strings.Clone(name[:i]) + "…"
		}
		count++
	}
	return name
}

func (p *Peer) GetClientCapabilities() mcp.ClientCapabilities {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.caps
}

// SetClientCapabilities keeps what CanAsk, ShowsCards and RendersForms need. The rest
// is not used here, and may be large.
func (p *Peer) SetClientCapabilities(c mcp.ClientCapabilities) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.caps = mcp.ClientCapabilities{Elicitation: c.Elicitation}
	p.apps = readApps(c.Extensions[ExtensionApps])
}

// ProtocolVersion returns the version negotiated by initialize; the library sets
// it through SetProtocolVersion.
func (p *Peer) ProtocolVersion() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

func (p *Peer) SetProtocolVersion(v string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version = v
}

var ErrClosed = errors.New("the client closed the connection")

// Ambiguous returns why the result of an elicitation can be read in two ways, or "":
// encoding/json takes the last of two values with one key, and the library does not mind
// the case of letters.
func Ambiguous(result json.RawMessage) string {
	n, wrong := strictjson.Parse(result)
	if wrong != nil {
		return wrong.Problem
	}
	for _, m := range n.Members {
		for _, name := range []string{"action", "content"} {
			if m.Key != name && strings.EqualFold(m.Key, name) {
				return fmt.Sprintf("key %q must be written %q", m.Key, name)
			}
		}
	}
	return ""
}

// RequestElicitation sends elicitation/create and waits for the answer. If ctx
// ends first, it withdraws the question with notifications/cancelled.
func (s *Session) RequestElicitation(ctx context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	s.mu.Lock()
	gone := s.isClosed
	s.mu.Unlock()
	if gone {
		return nil, ErrClosed
	}
	id, answer, forget := s.asked.open()
	defer forget()

	message := struct {
		JSONRPC string                `json:"jsonrpc"`
		ID      json.RawMessage       `json:"id"`
		Method  string                `json:"method"`
		Params  mcp.ElicitationParams `json:"params"`
	}{mcp.JSONRPC_VERSION, json.RawMessage(id), string(mcp.MethodElicitationCreate), req.Params}
	if err := s.sender.SendWhenRoom(ctx, message); err != nil {
		return nil, fmt.Errorf("asking the client: %w", err)
	}
	select {
	case e := <-answer:
		if e.Error != nil {
			return nil, errors.New("the client answered with an error")
		}
		if why := Ambiguous(e.Result); why != "" {
			return nil, fmt.Errorf("reading the client's answer: %s", why)
		}
		var result mcp.ElicitationResult
		if err := json.Unmarshal(e.Result, &result); err != nil {
			return nil, fmt.Errorf("reading the client's answer: %w", err)
		}
		return &result, nil
	case <-s.closed:
		return nil, ErrClosed
	case <-ctx.Done():
		s.Notify("notifications/cancelled", map[string]any{
			"requestId": json.RawMessage(id), "reason": "the question is no longer open",
		})
		return nil, context.Cause(ctx)
	}
}

// Answer passes a client's response to the goroutine that asked, and drops one
// that none waits for.
func (s *Session) Answer(e Envelope) {
	if !s.asked.answer(e) {
		s.logger.Debug("an answer came that nobody waits for", "id", string(e.ID))
	}
}

// Notify sends a notification, after everything that was sent before it.
func (s *Session) Notify(method string, params map[string]any) {
	n := struct {
		JSONRPC string         `json:"jsonrpc"`
		Method  string         `json:"method"`
		Params  map[string]any `json:"params,omitempty"`
	}{mcp.JSONRPC_VERSION, method, params}
	s.sender.Send(n)
}

// A Note tells a client that something it may have read has changed.
type Note struct {
	Method string
	URI    string // of notifications/resources/updated; empty otherwise
}

// Tell tells the client about a change, if it wants to know. It holds notes back
// until the client is initialized, or its stream is acknowledged.
func (s *Session) Tell(n Note) {
	s.mu.Lock()
	ready, wanted := s.isReady, s.wants(n)
	if !ready && wanted && !slices.Contains(s.missed, n) {
		s.missed = append(s.missed, n)
	}
	s.mu.Unlock()
	if !ready || !wanted {
		return
	}
	params := make(map[string]any)
	if n.URI != "" {
		params["uri"] = s.spelled(n.URI)
	}
	if s.listenID != nil {
		params["_meta"] = map[string]any{mcp.MetaKeySubscriptionID: s.listenID}
	}
	s.Notify(n.Method, params)
}

// wants reports whether the client asked for notes like this. An older client
// gets notes about lists without asking. The caller holds the lock.
func (s *Session) wants(n Note) bool {
	switch {
	case n.Method == mcp.MethodNotificationResourceUpdated:
		return s.IsSubscribedToResource(n.URI)
	case s.listenID == nil:
		return true
	case n.Method == mcp.MethodNotificationToolsListChanged:
		return s.filter.ToolsListChanged
	case n.Method == mcp.MethodNotificationPromptsListChanged:
		return s.filter.PromptsListChanged
	case n.Method == mcp.MethodNotificationResourcesListChanged:
		return s.filter.ResourcesListChanged
	default:
		return false
	}
}

// CanAsk reports whether the client declared that it can show a form. An empty
// capability means form, as it did before other modes existed.
func (p *Peer) CanAsk() bool {
	e := p.GetClientCapabilities().Elicitation
	return e != nil && (e.Form != nil || e.URL == nil)
}

// ShowsCards reports whether the client declared that it shows documents of ours
// beside the results of tools.
func (p *Peer) ShowsCards() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.apps.cards
}

// RendersForms reports whether the client declared that it can show a document of ours
// in place of its own form.
func (p *Peer) RendersForms() bool {
	if !p.CanAsk() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.apps.forms
}

// TakesQuestions reports whether we can send the client a question now.
func (s *Session) TakesQuestions() bool { return s.sender.Asks() }

// Close ends the session's questions, writes the library's remaining
// notifications, and waits for the session's goroutine. It may be called more
// than once.
func (s *Session) Close() {
	s.mu.Lock()
	if !s.isClosed {
		s.isClosed = true
		close(s.closed)
	}
	drained := s.drained
	s.mu.Unlock()
	if drained != nil {
		<-drained
	}
}

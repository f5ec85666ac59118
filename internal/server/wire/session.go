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
)

// A Session is what the library knows of a client. On a connection, an older
// client has one from initialize on; a request of 2026-07-28 or later has one of
// its own, since it says everything about itself anew, and so has every request
// over HTTP, whose answer is a stream of its own. All belong to a chat.
type Session struct {
	*Peer
	host   Host
	sender Sender
	chat   Chat
	logger *slog.Logger
	// listenID is the id of the modern request this session was made for; it
	// tags what is sent on that request's stream.
	listenID json.RawMessage

	mu       sync.Mutex
	notes    chan mcp.JSONRPCNotification // made when first asked for; drainNotes reads it
	drained  chan struct{}                // closed by drainNotes when it ends
	isReady  bool                         // the client said that it is initialized, or its stream was acknowledged
	missed   []Note                       // what there was to tell before that
	filter   mcp.SubscriptionFilter
	isClosed bool
	closed   chan struct{} // closed by close
}

// A Peer is what a client said of itself. An older one says it once, and its
// sessions share it; one of 2026-07-28 or later says it with every request.
type Peer struct {
	asked       questions
	initialized atomic.Bool

	mu      sync.Mutex
	info    mcp.Implementation
	caps    mcp.ClientCapabilities
	version string
	uris    map[string]string // :: the one spelling of a URI that it subscribed to → its own
}

var (
	_ mcpserver.ClientSession                 = (*Session)(nil)
	_ mcpserver.SessionWithClientInfo         = (*Session)(nil)
	_ mcpserver.SessionWithElicitation        = (*Session)(nil)
	_ mcpserver.SessionWithProtocolVersion    = (*Session)(nil)
	_ mcpserver.SessionWithSubscriptionFilter = (*Session)(nil)

	_ mcpserver.SessionWithResourceSubscriptionsErr = (*Session)(nil)
)

// NewSession makes a session of a client; listenID is nil for an older one's.
func NewSession(host Host, to Sender, ch Chat, of *Peer, listenID json.RawMessage) *Session {
	return &Session{Peer: of, host: host, sender: to, chat: ch, listenID: listenID, logger: host.Logger(), closed: make(chan struct{})}
}

// Chat is the chat that the session belongs to, as its [Host] made it.
func (s *Session) Chat() Chat { return s.chat }

func (s *Session) SessionID() string { return s.chat.ID() }
func (p *Peer) Initialize()          { p.initialized.Store(true) }
func (p *Peer) Initialized() bool    { return p.initialized.Load() }

// NotificationChannel is how the library sends the one notification it makes
// itself here, the acknowledgement of a stream. Everything else is written by
// notify, in order with the replies.
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

// drainNotes writes what the library sends, until the session is closed.
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
		n.Params.Meta[mcp.MetaKeySubscriptionID] = s.listenID // exactly as it came
		// The library says what was asked for; this is what came of it.
		established, _ := s.SubscriptionFilter()
		established.ResourceSubscriptions = s.SubscribedResources()
		n.Params.AdditionalFields["notifications"] = established
	}
	s.sender.Send(n)
	if ack {
		s.Ready()
	}
}

// Ready is called when the client may be told of changes. Those that were there
// before are told now.
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

// SetSubscriptionFilter is called with what the client may hear when it opens
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

// SetClientInfo keeps the client's name and version, as much of them as a person
// reads: they stay for as long as the session, are shown with each question, and
// are in each line of the audit log. Of a token not even the beginning is left.
func (s *Session) SetClientInfo(i mcp.Implementation) {
	kept := mcp.Implementation{Name: cutName(s.host.Redact(i.Name)), Version: cutName(s.host.Redact(i.Version))}
	s.Peer.mu.Lock()
	defer s.Peer.mu.Unlock()
	s.Peer.info = kept
}

// maxClientName is how many characters are kept of a client's name, and of its
// version.
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

// SetClientCapabilities keeps what CanAsk needs. The rest is of no use here,
// and may be large.
func (p *Peer) SetClientCapabilities(c mcp.ClientCapabilities) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.caps = mcp.ClientCapabilities{Elicitation: c.Elicitation}
}

// ProtocolVersion is the version agreed on with initialize; the library sets
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

// RequestElicitation sends elicitation/create and waits for the answer. When
// ctx ends first the question is withdrawn with notifications/cancelled.
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

// Answer gives a response of the client to whoever asked; one that nobody
// waits for is dropped.
func (s *Session) Answer(e Envelope) {
	if !s.asked.answer(e) {
		s.logger.Debug("an answer came that nobody waits for", "id", string(e.ID))
	}
}

// Notify sends a notification, after whatever was sent before it.
func (s *Session) Notify(method string, params map[string]any) {
	n := struct {
		JSONRPC string         `json:"jsonrpc"`
		Method  string         `json:"method"`
		Params  map[string]any `json:"params,omitempty"`
	}{mcp.JSONRPC_VERSION, method, params}
	s.sender.Send(n)
}

// A Note tells a client that something it may have is no longer what is there.
type Note struct {
	Method string
	URI    string // of notifications/resources/updated; empty otherwise
}

// Tell tells the client of a change, if it wants to know. Nothing is said before
// the client is initialized, or before its stream's acknowledgement.
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

// wants reports whether the client asked for notes like this. An older one gets
// those about lists without asking. The caller holds the lock.
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
// capability means form, as it did before there were other modes.
func (p *Peer) CanAsk() bool {
	e := p.GetClientCapabilities().Elicitation
	return e != nil && (e.Form != nil || e.URL == nil)
}

// TakesQuestions reports whether a question of ours can be sent to the client now.
func (s *Session) TakesQuestions() bool { return s.sender.Asks() }

// Close ends the session's questions, writes what the library still had to
// say, and waits for the session's goroutine. It may be called more than once.
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

package server

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

// A session is what the library knows of a client. On a connection, an older
// client has one from initialize on; a request of 2026-07-28 or later has one of
// its own, since it says everything about itself anew, and so has every request
// over HTTP, whose answer is a stream of its own. All belong to a chat.
type session struct {
	*peer
	wire   wire
	chat   *chat
	logger *slog.Logger
	tokens []string // of this server, which nobody is shown
	// listenID is the id of the modern request this session was made for; it
	// tags what is sent on that request's stream.
	listenID json.RawMessage

	mu       sync.Mutex
	notes    chan mcp.JSONRPCNotification // made when first asked for; drainNotes reads it
	drained  chan struct{}                // closed by drainNotes when it ends
	isReady  bool                         // the client said that it is initialized, or its stream was acknowledged
	missed   []note                       // what there was to tell before that
	filter   mcp.SubscriptionFilter
	isClosed bool
	closed   chan struct{} // closed by close
}

// A peer is what a client said of itself. An older one says it once, and its
// sessions share it; one of 2026-07-28 or later says it with every request.
type peer struct {
	asked       questions
	initialized atomic.Bool

	mu      sync.Mutex
	info    mcp.Implementation
	caps    mcp.ClientCapabilities
	version string
	uris    map[string]string // :: the one spelling of a URI that it subscribed to → its own
}

var (
	_ mcpserver.ClientSession                 = (*session)(nil)
	_ mcpserver.SessionWithClientInfo         = (*session)(nil)
	_ mcpserver.SessionWithElicitation        = (*session)(nil)
	_ mcpserver.SessionWithProtocolVersion    = (*session)(nil)
	_ mcpserver.SessionWithSubscriptionFilter = (*session)(nil)

	_ mcpserver.SessionWithResourceSubscriptionsErr = (*session)(nil)
)

// newSession makes a session of a client; listenID is nil for an older one's.
func (s *Server) newSession(w wire, ch *chat, of *peer, listenID json.RawMessage) *session {
	return &session{peer: of, wire: w, chat: ch, listenID: listenID, logger: s.logger, tokens: s.opts.Tokens, closed: make(chan struct{})}
}

func (s *session) SessionID() string { return s.chat.id }
func (p *peer) Initialize()          { p.initialized.Store(true) }
func (p *peer) Initialized() bool    { return p.initialized.Load() }

// NotificationChannel is how the library sends the one notification it makes
// itself here, the acknowledgement of a stream. Everything else is written by
// notify, in order with the replies.
func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification {
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
func (s *session) drainNotes() {
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

func (s *session) send(n mcp.JSONRPCNotification) {
	ack := n.Method == mcp.MethodNotificationSubscriptionsAcknowledged
	if ack {
		n.Params.Meta[mcp.MetaKeySubscriptionID] = s.listenID // exactly as it came
		// The library says what was asked for; this is what came of it.
		established, _ := s.SubscriptionFilter()
		established.ResourceSubscriptions = s.SubscribedResources()
		n.Params.AdditionalFields["notifications"] = established
	}
	s.wire.send(n)
	if ack {
		s.ready()
	}
}

// ready is called when the client may be told of changes. Those that were there
// before are told now.
func (s *session) ready() {
	s.mu.Lock()
	s.isReady = true
	missed := s.missed
	s.missed = nil
	s.mu.Unlock()
	for _, n := range missed {
		s.tell(n)
	}
}

// SetSubscriptionFilter is called with what the client may hear when it opens
// a stream, and with the zero filter when that stream ends.
func (s *session) SetSubscriptionFilter(f mcp.SubscriptionFilter) {
	s.mu.Lock()
	s.filter = f
	s.mu.Unlock()
	if f.IsEmpty() {
		s.chat.unlisten(s)
	} else {
		s.chat.listen(s)
	}
}

func (s *session) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.filter, !s.filter.IsEmpty()
}

func (p *peer) GetClientInfo() mcp.Implementation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.info
}

// SetClientInfo keeps the client's name and version, as much of them as a person
// reads: they stay for as long as the session, are shown with each question, and
// are in each line of the audit log. Of a token not even the beginning is left.
func (s *session) SetClientInfo(i mcp.Implementation) {
	kept := mcp.Implementation{Name: cutName(hide(i.Name, s.tokens)), Version: cutName(hide(i.Version, s.tokens))}
	s.peer.mu.Lock()
	defer s.peer.mu.Unlock()
	s.peer.info = kept
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

func (p *peer) GetClientCapabilities() mcp.ClientCapabilities {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.caps
}

// SetClientCapabilities keeps what [canAsk] needs. The rest is of no use here,
// and may be large.
func (p *peer) SetClientCapabilities(c mcp.ClientCapabilities) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.caps = mcp.ClientCapabilities{Elicitation: c.Elicitation}
}

// ProtocolVersion is the version agreed on with initialize; the library sets
// it through SetProtocolVersion.
func (p *peer) ProtocolVersion() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

func (p *peer) SetProtocolVersion(v string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version = v
}

var errClosed = errors.New("the client closed the connection")

// RequestElicitation sends elicitation/create and waits for the answer. When
// ctx ends first the question is withdrawn with notifications/cancelled.
func (s *session) RequestElicitation(ctx context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	s.mu.Lock()
	gone := s.isClosed
	s.mu.Unlock()
	if gone {
		return nil, errClosed
	}
	id, answer, forget := s.asked.open()
	defer forget()

	message := struct {
		JSONRPC string                `json:"jsonrpc"`
		ID      json.RawMessage       `json:"id"`
		Method  string                `json:"method"`
		Params  mcp.ElicitationParams `json:"params"`
	}{mcp.JSONRPC_VERSION, json.RawMessage(id), string(mcp.MethodElicitationCreate), req.Params}
	if err := s.wire.sendWhenRoom(ctx, message); err != nil {
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
		return nil, errClosed
	case <-ctx.Done():
		s.notify("notifications/cancelled", map[string]any{
			"requestId": json.RawMessage(id), "reason": "the question is no longer open",
		})
		return nil, context.Cause(ctx)
	}
}

// answer gives a response of the client to whoever asked; one that nobody
// waits for is dropped.
func (s *session) answer(e envelope) {
	if !s.asked.answer(e) {
		s.logger.Debug("an answer came that nobody waits for", "id", string(e.ID))
	}
}

// notify sends a notification, after whatever was sent before it.
func (s *session) notify(method string, params map[string]any) {
	n := struct {
		JSONRPC string         `json:"jsonrpc"`
		Method  string         `json:"method"`
		Params  map[string]any `json:"params,omitempty"`
	}{mcp.JSONRPC_VERSION, method, params}
	s.wire.send(n)
}

// tell tells the client of a change, if it wants to know. Nothing is said before
// the client is initialized, or before its stream's acknowledgement.
func (s *session) tell(n note) {
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
	if n.uri != "" {
		params["uri"] = s.spelled(n.uri)
	}
	if s.listenID != nil {
		params["_meta"] = map[string]any{mcp.MetaKeySubscriptionID: s.listenID}
	}
	s.notify(n.method, params)
}

// wants reports whether the client asked for notes like this. An older one gets
// those about lists without asking. The caller holds the lock.
func (s *session) wants(n note) bool {
	switch {
	case n.method == mcp.MethodNotificationResourceUpdated:
		return s.IsSubscribedToResource(n.uri)
	case s.listenID == nil:
		return true
	case n.method == toolsChanged:
		return s.filter.ToolsListChanged
	case n.method == promptsChanged:
		return s.filter.PromptsListChanged
	case n.method == resourcesChanged:
		return s.filter.ResourcesListChanged
	default:
		return false
	}
}

// canAsk reports whether the client declared that it can show a form. An empty
// capability means form, as it did before there were other modes.
func canAsk(caps mcp.ClientCapabilities) bool {
	e := caps.Elicitation
	return e != nil && (e.Form != nil || e.URL == nil)
}

// close ends the session's questions, writes what the library still had to
// say, and waits for the session's goroutine. It may be called more than once.
func (s *session) close() {
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

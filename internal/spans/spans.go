// Package spans is what a collector of traces is told of a call: one span a
// request, with the gate's decision, the run of a program and each line of the
// audit log as its children.
//
// Spans go to somebody else. What can be said in one is what this package has a
// method for: names that are ours or a pack's, decisions, exit codes, times. It
// has none for arguments, results, files, questions, errors' texts or persons,
// and it is not told them. It knows the API for traces and neither how spans are
// sent, nor whether they are: that is package telemetry.
//
// A nil [Tracer], [Span] or [Step] does nothing, and costs nothing.
package spans

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// maxText is how many bytes of a name are said.
const maxText = 200

// A Tracer makes the spans of requests. Make one with [New]; it is safe for
// concurrent use.
type Tracer struct {
	tracer trace.Tracer
	joins  bool

	mu    sync.Mutex
	calls map[string]*Span // :: id of a call under way → the span of its request
}

// New returns a tracer whose spans t makes. With joins, the trace context that a
// client sends is the parent of what it asked for.
func New(t trace.Tracer, joins bool) *Tracer {
	return &Tracer{tracer: t, joins: joins, calls: make(map[string]*Span)}
}

// A Request is what is known of a request before anybody has looked at it.
type Request struct {
	Method  string // as the client wrote it; said only if it is one of MCP's
	ID      string // the request's, as written
	Session string // the chat's
	// TraceParent and TraceState are the trace context in the request's _meta.
	TraceParent, TraceState string
}

// A Span is the span of one request. It is safe for concurrent use.
type Span struct {
	of   *Tracer
	span trace.Span

	mu    sync.Mutex
	calls []string // ids under which of knows it
	gate  *Step    // the decision under way
}

type (
	spanKey struct{}
	webKey  struct{}
)

// A web is what the HTTP request says, in which a message came.
type web struct{ parent, state string }

// OverHTTP tells of the HTTP request in which a message came: that it did, and
// the trace context of its header, which counts where _meta has none.
func (t *Tracer) OverHTTP(ctx context.Context, h http.Header) context.Context {
	if t == nil {
		return ctx
	}
	return context.WithValue(ctx, webKey{}, web{h.Get("Traceparent"), h.Get("Tracestate")})
}

// Begin begins the span of a request; End ends it. Without a span, because
// nobody collects this one, the context is ctx and the span nil.
func (t *Tracer) Begin(ctx context.Context, r Request) (context.Context, *Span) {
	if t == nil || !telling(r.Method) {
		return ctx, nil
	}
	w, overHTTP := ctx.Value(webKey{}).(web)
	method := r.Method
	if !known(method) {
		method = otherMethod
	}
	attrs := []attribute.KeyValue{
		attribute.String("mcp.method.name", method),
		attribute.String("jsonrpc.request.id", text(strings.Trim(r.ID, `"`))),
		attribute.String("mcp.session.id", text(r.Session)),
	}
	if overHTTP {
		attrs = append(attrs, attribute.String("network.transport", "tcp"), attribute.String("network.protocol.name", "http"))
	} else {
		attrs = append(attrs, attribute.String("network.transport", "pipe"))
	}
	parent := context.Background()
	if t.joins {
		parent = remote(r.TraceParent, r.TraceState)
		if !trace.SpanContextFromContext(parent).IsValid() {
			parent = remote(w.parent, w.state)
		}
	}
	_, span := t.tracer.Start(parent, method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attrs...))
	if !span.IsRecording() {
		return ctx, nil
	}
	s := &Span{of: t, span: span}
	return context.WithValue(ctx, spanKey{}, s), s
}

// remote is a context with the trace context of a client, if it is one.
func remote(parent, state string) context.Context {
	return propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": parent, "tracestate": state})
}

// From returns the span of the request that ctx belongs to; nil when it has
// none.
func From(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// End ends the span.
func (s *Span) End() {
	if s == nil {
		return
	}
	s.mu.Lock()
	calls := s.calls
	s.calls = nil
	s.mu.Unlock()
	s.of.forget(calls)
	s.span.End()
}

// Version says which version of the protocol the request is of.
func (s *Span) Version(v string) {
	if s != nil {
		s.say("mcp.protocol.version", v)
	}
}

// Tool says which tool is called, by a name that is on the server's list.
func (s *Span) Tool(name string) {
	if s == nil {
		return
	}
	name = text(name)
	s.span.SetName("tools/call " + name)
	s.span.SetAttributes(attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", name))
}

// Prompt says which of the server's prompts is asked for.
func (s *Span) Prompt(name string) {
	if s == nil {
		return
	}
	name = text(name)
	s.span.SetName("prompts/get " + name)
	s.span.SetAttributes(attribute.String("gen_ai.prompt.name", name))
}

// Call gives the span the call's id in the logs. What the audit log has of that
// call is from then on part of the span.
func (s *Span) Call(id string) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attribute.String("packs_mcp.call.id", id))
	s.of.mu.Lock()
	s.of.calls[id] = s
	s.of.mu.Unlock()
	s.mu.Lock()
	s.calls = append(s.calls, id)
	s.mu.Unlock()
}

// About says what kind of call it is, and which pack and declared tool it is
// about; empty for none.
func (s *Span) About(kind, pack, tool string) {
	if s == nil {
		return
	}
	s.say("packs_mcp.call.kind", kind, "packs_mcp.pack.id", pack, "packs_mcp.pack.tool", tool)
}

// say sets pairs of key and text; one with an empty text is left out.
func (s *Span) say(pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			s.span.SetAttributes(attribute.String(pairs[i], text(pairs[i+1])))
		}
	}
}

// ToolFailed says that the result of the tool is an error. The code is one of
// the server's own; empty when the program itself failed.
func (s *Span) ToolFailed(code string) {
	if s == nil {
		return
	}
	s.failed("tool_error", code)
}

// Refused says that the answer is an error of JSON-RPC. The name is one of the
// server's own codes; empty for none.
func (s *Span) Refused(code, name string) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attribute.String("rpc.response.status_code", code))
	s.failed(code, name)
}

// Unanswered says that the client cancelled the request, and gets no answer.
func (s *Span) Unanswered() {
	if s == nil {
		return
	}
	s.failed("cancelled", "cancelled")
}

func (s *Span) failed(kind, code string) {
	s.span.SetAttributes(attribute.String("error.type", kind))
	if code != "" {
		s.span.SetAttributes(attribute.String("packs_mcp.error.code", code))
	}
	s.span.SetStatus(codes.Error, code)
}

// A Step is a part of a request: a child of its span.
type Step struct {
	parent *Span
	span   trace.Span
}

// step begins a child.
func (s *Span) step(name string) *Step {
	_, span := s.of.tracer.Start(trace.ContextWithSpan(context.Background(), s.span), name)
	return &Step{parent: s, span: span}
}

// Gate begins the decision about the call: from asking the gate to what it said
// in the end, with the time that a person took.
func (s *Span) Gate() *Step {
	if s == nil {
		return nil
	}
	g := s.step("gate")
	s.mu.Lock()
	s.gate = g
	s.mu.Unlock()
	return g
}

// Waiting says that the call waits for a person, until the returned function is
// called.
func (s *Span) Waiting() (answered func()) {
	if s == nil {
		return func() {}
	}
	s.mu.Lock()
	g := s.gate
	s.mu.Unlock()
	if g == nil {
		return func() {}
	}
	began := time.Now()
	g.span.AddEvent("waiting for a person")
	return func() {
		g.span.AddEvent("no longer waiting")
		g.span.SetAttributes(attribute.Int64("packs_mcp.gate.waited_ms", time.Since(began).Milliseconds()))
	}
}

// Asked says that the client got the question and calls again with the answer:
// the time that the person takes is between two requests.
func (g *Step) Asked() {
	if g != nil {
		g.span.AddEvent("the client asks a person")
	}
}

// decided says what the audit log says, on the call and on the decision.
func (s *Span) decided(decision, channel, level string) {
	s.mu.Lock()
	g := s.gate
	s.mu.Unlock()
	for _, to := range []*Span{s, g.asSpan()} {
		if to != nil {
			to.say("packs_mcp.decision", decision, "packs_mcp.channel", channel, "packs_mcp.sandbox.level", level)
		}
	}
}

func (g *Step) asSpan() *Span {
	if g == nil {
		return nil
	}
	return &Span{of: g.parent.of, span: g.span}
}

// Run begins the run of a program: from waiting for its place to its end.
func (s *Span) Run(id string) *Step {
	if s == nil {
		return nil
	}
	r := s.step("run")
	r.span.SetAttributes(attribute.String("packs_mcp.run.id", id))
	return r
}

// Placed says that the run had its place among those of the chat.
func (r *Step) Placed() {
	if r != nil {
		r.span.AddEvent("the run has its place")
	}
}

// An Outcome is how a program ended.
type Outcome struct {
	OK       bool
	ExitCode int
	Signal   string        // empty: none
	Cause    string        // why it ended, in the sandbox's words
	Level    string        // of the sandbox
	Took     time.Duration // the program alone
}

// Ran says how the program ended.
func (r *Step) Ran(o Outcome) {
	if r == nil {
		return
	}
	r.asSpan().say("packs_mcp.run.signal", o.Signal, "packs_mcp.run.cause", o.Cause, "packs_mcp.sandbox.level", o.Level)
	r.span.SetAttributes(
		attribute.Int("process.exit.code", o.ExitCode),
		attribute.Int64("packs_mcp.run.program_ms", o.Took.Milliseconds()),
	)
	if !o.OK {
		r.span.SetStatus(codes.Error, "")
	}
}

// End ends a step. A step that failed did not come to what it is there for; a
// denial is no failure of the gate.
func (g *Step) End(failed bool) {
	if g == nil {
		return
	}
	if failed {
		g.span.SetStatus(codes.Error, "")
	}
	g.span.End()
}

// text is a name as it may be said: safe to show, and not too long.
func text(s string) string {
	s = safetext.Line(s)
	if len(s) <= maxText {
		return s
	}
	s = s[:maxText]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

func (t *Tracer) forget(calls []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range calls {
		delete(t.calls, id)
	}
}

func (t *Tracer) callSpan(id string) *Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[id]
}

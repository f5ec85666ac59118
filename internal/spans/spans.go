// Package spans defines what a collector learns about a call: one span per request, with
// the gate's decision, the run of a program and each entry of the audit log as its
// children; and metrics, which count and time the same.
//
// Spans and metrics leave this machine. They contain only what this package has a method
// for: names that this program defines, decisions, exit codes and times; spans also have
// the names of packs and of their tools. There is no method for arguments, results,
// files, questions, error texts or persons, so the package never receives them. It uses
// OpenTelemetry's API, but does not know whether or how data is sent: package telemetry
// does.
//
// A nil [Tracer], [Span] or [Step] does nothing at no cost.
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

// maxText is how many bytes of a name a span holds.
const maxText = 200

// A Tracer creates the spans of requests, and measures them. Create one with
// [New]; it is safe for concurrent use.
type Tracer struct {
	tracer trace.Tracer
	joins  bool
	meters *Meters // nil: nothing is measured

	mu    sync.Mutex
	calls map[string]*Span // :: id of a call in progress → the span of its request
}

// New returns a tracer that creates spans with t and measures with m, which may be
// nil. With joins, the trace context that a client sends becomes the parent of its
// request.
func New(t trace.Tracer, joins bool, m *Meters) *Tracer {
	return &Tracer{tracer: t, joins: joins, meters: m, calls: make(map[string]*Span)}
}

// A Request is what is known about a request before it is handled.
type Request struct {
	Method  string // as the client wrote it; recorded only if it is one of MCP's
	ID      string // the request's, as written
	Session string // the chat's
	// TraceParent and TraceState are the trace context in the request's _meta.
	TraceParent, TraceState string
}

// A Span is the span of one request. It is safe for concurrent use.
type Span struct {
	of    *Tracer
	span  trace.Span
	began time.Time

	mu    sync.Mutex
	calls []string // ids of this span's calls in of.calls
	gate  *Step    // the decision in progress
	end   end      // what the metrics need to know about it
}

type (
	spanKey struct{}
	webKey  struct{}
)

// A web is the trace context of the HTTP request that carried a message.
type web struct{ parent, state string }

// OverHTTP records that a message arrived in an HTTP request, and the trace
// context of its headers, which is used if _meta has none.
func (t *Tracer) OverHTTP(ctx context.Context, h http.Header) context.Context {
	if t == nil {
		return ctx
	}
	return context.WithValue(ctx, webKey{}, web{h.Get("Traceparent"), h.Get("Tracestate")})
}

// Begin begins the span of a request; End ends it. If the span is not collected
// and nothing is measured, Begin returns ctx and nil.
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
		attribute.String(keyMethod, method),
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
	if !span.IsRecording() && t.meters == nil {
		return ctx, nil
	}
	t.meters.began(method)
	s := &Span{of: t, span: span, began: time.Now(), end: end{method: method}}
	return context.WithValue(ctx, spanKey{}, s), s
}

// remote returns a context with the trace context of a client, if that is valid.
func remote(parent, state string) context.Context {
	return propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": parent, "tracestate": state})
}

// From returns the span of the request that ctx belongs to; nil if there is
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
	calls, end := s.calls, s.end
	s.calls = nil
	s.mu.Unlock()
	s.of.forget(calls)
	s.span.End()
	end.took = time.Since(s.began)
	s.of.meters.ended(end)
}

// Version records the request's protocol version.
func (s *Span) Version(v string) {
	if s != nil {
		s.say("mcp.protocol.version", v)
	}
}

// Tool records which tool is called, by a name from the server's list.
func (s *Span) Tool(name string) {
	if s == nil {
		return
	}
	name = text(name)
	s.span.SetName("tools/call " + name)
	s.span.SetAttributes(attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", name))
}

// Handled records which of the server's own tools does the work of a call. For a
// tool of a pack, that is the one that runs any of them.
func (s *Span) Handled(tool string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.end.tool = tool
	s.mu.Unlock()
}

// Prompt records which of the server's prompts is requested.
func (s *Span) Prompt(name string) {
	if s == nil {
		return
	}
	name = text(name)
	s.span.SetName("prompts/get " + name)
	s.span.SetAttributes(attribute.String("gen_ai.prompt.name", name))
}

// Call gives the span the call's id in the logs. From then on, the audit log's
// lines about that call become part of the span.
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

// About records the kind of call, and its pack and declared tool; empty for
// none.
func (s *Span) About(kind, pack, tool string) {
	if s == nil {
		return
	}
	s.say("packs_mcp.call.kind", kind, "packs_mcp.pack.id", pack, "packs_mcp.pack.tool", tool)
}

// say sets pairs of key and text, and skips a pair with an empty text.
func (s *Span) say(pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			s.span.SetAttributes(attribute.String(pairs[i], text(pairs[i+1])))
		}
	}
}

// ToolFailed records that the tool's result is an error. The code is one of the
// server's own; empty if the program itself failed.
func (s *Span) ToolFailed(code string) {
	if s == nil {
		return
	}
	s.failed("tool_error", code)
}

// Refused records that the answer is a JSON-RPC error. The name is one of the
// server's own codes; empty for none.
func (s *Span) Refused(code, name string) {
	if s == nil {
		return
	}
	s.span.SetAttributes(attribute.String("rpc.response.status_code", code))
	s.failed(code, name)
}

// Unanswered records that the client cancelled the request and gets no answer.
func (s *Span) Unanswered() {
	if s == nil {
		return
	}
	s.failed("cancelled", "cancelled")
}

func (s *Span) failed(kind, code string) {
	s.mu.Lock()
	s.end.kind, s.end.code = kind, code
	s.mu.Unlock()
	s.span.SetAttributes(attribute.String(keyErrorType, kind))
	if code != "" {
		s.span.SetAttributes(attribute.String(keyErrorCode, code))
	}
	s.span.SetStatus(codes.Error, code)
}

// A Step is part of a request: a child of its span.
type Step struct {
	parent *Span
	span   trace.Span
}

// step begins a child.
func (s *Span) step(name string) *Step {
	_, span := s.of.tracer.Start(trace.ContextWithSpan(context.Background(), s.span), name)
	return &Step{parent: s, span: span}
}

// Gate begins the step of the decision about the call, from asking the gate to
// its final answer, including the time that a person took.
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

// Waiting records that the call waits for a person, until the returned function
// is called.
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
		took := time.Since(began)
		g.span.AddEvent("no longer waiting")
		g.span.SetAttributes(attribute.Int64("packs_mcp.gate.waited_ms", took.Milliseconds()))
		s.of.meters.waited(took)
	}
}

// Asked records that the client received the question and will call again with
// the answer: the person's time falls between two requests.
func (g *Step) Asked() {
	if g != nil {
		g.span.AddEvent("the client asks a person")
	}
}

// decided records what the audit log says, on the call and on the decision.
func (s *Span) decided(decision, channel, level string) {
	s.mu.Lock()
	g := s.gate
	s.mu.Unlock()
	for _, to := range []*Span{s, g.asSpan()} {
		if to != nil {
			to.say(keyDecision, decision, keyChannel, channel, "packs_mcp.sandbox.level", level)
		}
	}
}

func (g *Step) asSpan() *Span {
	if g == nil {
		return nil
	}
	return &Span{of: g.parent.of, span: g.span}
}

// Run begins the step of a program's run, from waiting for its place to its end.
func (s *Span) Run(id string) *Step {
	if s == nil {
		return nil
	}
	r := s.step("run")
	r.span.SetAttributes(attribute.String("packs_mcp.run.id", id))
	return r
}

// Placed records that the run got its place among the chat's runs.
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

// Ran records how the program ended.
func (r *Step) Ran(o Outcome) {
	if r == nil {
		return
	}
	r.asSpan().say("packs_mcp.run.signal", o.Signal, keyCause, o.Cause, "packs_mcp.sandbox.level", o.Level)
	r.span.SetAttributes(
		attribute.Int("process.exit.code", o.ExitCode),
		attribute.Int64("packs_mcp.run.program_ms", o.Took.Milliseconds()),
	)
	if !o.OK {
		r.span.SetStatus(codes.Error, "")
	}
}

// End ends a step. A step failed if it did not do its job; a denial is not a
// failure of the gate.
func (g *Step) End(failed bool) {
	if g == nil {
		return
	}
	if failed {
		g.span.SetStatus(codes.Error, "")
	}
	g.span.End()
}

// text returns a name made safe to show and not too long.
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

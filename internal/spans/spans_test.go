package spans

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

func newTracer(o ...sdktrace.TracerProviderOption) (*Tracer, *tracetest.InMemoryExporter) {
	kept := tracetest.NewInMemoryExporter()
	o = append(o, sdktrace.WithSyncer(kept))
	return New(sdktrace.NewTracerProvider(o...).Tracer("test"), true, nil), kept
}

// A fakeLog fails with err.
type fakeLog struct {
	err   error
	lines int
}

func (l *fakeLog) Append(audit.Entry) error     { l.lines++; return l.err }
func (l *fakeLog) AppendLazy(audit.Entry) error { l.lines++; return l.err }
func (l *fakeLog) Failures() int                { return 0 }

// A nil tracer, span or step does nothing.
func TestNil(t *testing.T) {
	var none *Tracer
	log := new(fakeLog)
	if got := none.Recorder(log); got != Recorder(log) {
		t.Errorf("Recorder() of no tracer = %v, want the log itself", got)
	}
	if ctx := none.OverHTTP(t.Context(), http.Header{}); ctx != t.Context() {
		t.Error("OverHTTP() of no tracer makes a context")
	}
	unsampled, kept := newTracer(sdktrace.WithSampler(sdktrace.NeverSample()))
	for _, tracer := range []*Tracer{none, unsampled} {
		ctx, s := tracer.Begin(t.Context(), Request{Method: "tools/call"})
		if s != nil || From(ctx) != nil || ctx != t.Context() {
			t.Error("Begin() makes a span that nobody collects")
		}
		s.Tool("x")
		s.Prompt("x")
		s.Version("x")
		s.Call("x")
		s.About("x", "x", "x")
		s.Waiting()()
		s.ToolFailed("x")
		s.Refused("x", "x")
		s.Unanswered()
		g, r := s.Gate(), s.Run("x")
		g.Asked()
		g.End(true)
		r.Placed()
		r.Ran(Outcome{})
		r.End(true)
		s.End()
	}
	if n := len(kept.GetSpans()); n != 0 {
		t.Errorf("%d spans, want none", n)
	}
}

// Names are safe to show everywhere, and short.
func TestText(t *testing.T) {
	tracer, kept := newTracer()
	_, s := tracer.Begin(t.Context(), Request{Method: "tools/call", ID: `"a\u001b` + "\x1b" + `"`, Session: "s\x1b"})
	s.Tool("red\x1b[31m\n" + strings.Repeat("ä", 500))
	s.About("run", "p\u202eack", strings.Repeat("x", 5000))
	s.End()
	stub := kept.GetSpans()[0]
	texts := []string{stub.Name}
	for _, a := range stub.Attributes {
		texts = append(texts, a.Value.String())
	}
	for _, text := range texts {
		if strings.ContainsAny(text, "\x1b\n\u202e") || len(text) > maxText+len("tools/call ") || !utf8.ValidString(text) {
			t.Errorf("a span says %q", text)
		}
	}
}

// A line of the audit log is part of its request's span while the request lasts,
// and is written in any case.
func TestRecorder(t *testing.T) {
	tracer, kept := newTracer()
	log := &fakeLog{}
	r := tracer.Recorder(log)
	entry := audit.Entry{Event: audit.EventDecision, Call: "call-1", Decision: "once", Channel: "page"}
	write := func(lazy bool) error {
		if lazy {
			return r.AppendLazy(entry)
		}
		return r.Append(entry)
	}
	lines := func(want int) {
		t.Helper()
		n := 0
		for _, s := range kept.GetSpans() {
			if s.Name == "audit" {
				n++
			}
		}
		if n != want {
			t.Errorf("%d spans of lines, want %d", n, want)
		}
	}
	for i, lazy := range []bool{true, false} {
		if err := write(lazy); err != nil || log.lines != 3*i+1 {
			t.Errorf("before: %v, %d lines", err, log.lines)
		}
		lines(i)
		_, s := tracer.Begin(context.Background(), Request{Method: "tools/call"})
		s.Call("call-1")
		if err := write(lazy); err != nil || log.lines != 3*i+2 {
			t.Errorf("during: %v, %d lines", err, log.lines)
		}
		lines(i + 1)
		s.End()
		if err := write(lazy); err != nil || log.lines != 3*i+3 {
			t.Errorf("after: %v, %d lines", err, log.lines)
		}
		lines(i + 1)
	}
	if len(tracer.calls) != 0 {
		t.Errorf("calls that have ended are kept: %v", tracer.calls)
	}
	// A decision that could not be recorded does not count.
	kept.Reset()
	log.err = errors.New("the disk is full of hunter2")
	_, s := tracer.Begin(context.Background(), Request{Method: "tools/call"})
	s.Call("call-1")
	if err := write(false); !errors.Is(err, log.err) {
		t.Errorf("Append() = %v, want the log's error", err)
	}
	s.End()
	for _, stub := range kept.GetSpans() {
		if strings.Contains(stub.Status.Description, "hunter2") {
			t.Errorf("the span %q says %q", stub.Name, stub.Status.Description)
		}
		for _, a := range stub.Attributes {
			if a.Key == "packs_mcp.decision" {
				t.Errorf("the span %q has the decision %s, which was not recorded", stub.Name, a.Value.String())
			}
		}
	}
}

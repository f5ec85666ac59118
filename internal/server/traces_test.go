package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/server/httpd"
	"github.com/packs-mcp/packs-mcp/internal/server/tracing"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/spans"
)

// traced keeps every span in the exporter that it returns.
func traced(joins bool) (*tracetest.InMemoryExporter, option) {
	kept := tracetest.NewInMemoryExporter()
	return kept, tells(spans.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept)).Tracer("test"), joins, nil))
}

// measured is traced with metrics, which it returns as text when asked: a line for
// each point, with its attributes and its value or count.
func measured(t *testing.T) (_ *tracetest.InMemoryExporter, metrics func() string, _ option) {
	kept, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	meters, err := spans.NewMeters(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	return kept, func() string { return points(t, reader) }, tells(spans.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept)).Tracer("test"), true, meters))
}

// tells tells tracer about the requests of a server, and about the lines of its log.
func tells(tracer *spans.Tracer) option {
	return func(s *setup) {
		s.server.Spans = tracer
		s.gate.Log = tracer.Recorder(s.gate.Log)
	}
}

func points(t *testing.T, reader *sdkmetric.ManualReader) string {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				lines = append(lines, fmt.Sprintf("%s %s %d", m.Name, p.Attributes.Encoded(attribute.DefaultEncoder()), p.Value))
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				lines = append(lines, fmt.Sprintf("%s %s %d", m.Name, p.Attributes.Encoded(attribute.DefaultEncoder()), p.Count))
			}
		default:
			t.Errorf("%s is %T", m.Name, data)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// drawn returns what was traced since the last call: a line for each span, below its
// parent, with the named attributes, its events and its status.
func drawn(kept *tracetest.InMemoryExporter, attributes ...attribute.Key) string {
	stubs := kept.GetSpans()
	kept.Reset()
	var b strings.Builder
	var draw func(parent trace.SpanID, indent string)
	draw = func(parent trace.SpanID, indent string) {
		slices.SortStableFunc(stubs, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
		for _, s := range stubs {
			if s.Parent.SpanID() != parent || parent.IsValid() && s.Parent.IsRemote() {
				continue
			}
			b.WriteString(indent + s.Name)
			for _, key := range attributes {
				for _, a := range s.Attributes {
					if a.Key == key {
						fmt.Fprintf(&b, " %s=%s", a.Key, a.Value.String())
					}
				}
			}
			for _, e := range s.Events {
				fmt.Fprintf(&b, " (%s)", e.Name)
			}
			if s.Status.Code == codes.Error {
				b.WriteString(" ERROR " + s.Status.Description)
			}
			b.WriteString("\n")
			draw(s.SpanContext.SpanID(), indent+"  ")
		}
	}
	draw(trace.SpanID{}, "")
	return b.String()
}

// attributesOf returns the attributes of the only request that was traced.
func attributesOf(t *testing.T, kept *tracetest.InMemoryExporter) map[string]any {
	t.Helper()
	found := make(map[string]any)
	for _, s := range kept.GetSpans() {
		if s.SpanKind != trace.SpanKindServer {
			continue
		}
		if len(found) > 0 {
			t.Fatalf("%d spans, want one request's: %v", len(kept.GetSpans()), kept.GetSpans())
		}
		for _, a := range s.Attributes {
			found[string(a.Key)] = a.Value.AsInterface()
		}
	}
	kept.Reset()
	return found
}

var failing = triage + `
-- broken/SKILL.md --
---
name: broken
description: Fails.
---
-- broken/tools.json --
{"tools": [{"name": "fail", "description": "Fail.", "inputSchema": {"type": "object"}, "command": {"program": "./fail.sh"}}]}
-- broken/fail.sh --
#!/bin/sh
echo no >&2
exit 3
`

// There is one span for each request, and the decision, the run and the lines of the
// audit log are its children.
func TestSpansOfCalls(t *testing.T) {
	needShell(t)
	kept, traces := traced(true)
	w := newWorld(t, failing, traces)
	w.answer = decide("once")
	w.initialize()
	w.enable("triage")
	w.enable("broken")
	kept.Reset()
	keys := []attribute.Key{
		"packs_mcp.pack.id", "packs_mcp.pack.tool", "packs_mcp.decision", "packs_mcp.channel",
		"packs_mcp.audit.event", "process.exit.code", "packs_mcp.run.cause", "error.type", "packs_mcp.error.code",
	}
	const waits = " (waiting for a person) (no longer waiting)"
	for _, c := range []struct {
		name   string
		answer string
		do     func()
		want   string
	}{
		{"a run", "once", func() { w.ok("triage__greet", map[string]any{"who": "Ada"}) }, `
tools/call triage__greet packs_mcp.pack.id=triage packs_mcp.pack.tool=greet packs_mcp.decision=once packs_mcp.channel=elicitation
  gate packs_mcp.decision=once packs_mcp.channel=elicitation` + waits + `
  audit packs_mcp.audit.event=decision
  run process.exit.code=0 (the run has its place)
  audit packs_mcp.audit.event=run.start
  audit packs_mcp.audit.event=run.end
`},
		{"a run that fails", "once", func() { w.tool("broken__fail", map[string]any{}) }, `
tools/call broken__fail packs_mcp.pack.id=broken packs_mcp.pack.tool=fail packs_mcp.decision=once packs_mcp.channel=elicitation error.type=tool_error packs_mcp.error.code=command_failed ERROR command_failed
  gate packs_mcp.decision=once packs_mcp.channel=elicitation` + waits + `
  audit packs_mcp.audit.event=decision
  run process.exit.code=3 (the run has its place) ERROR 
  audit packs_mcp.audit.event=run.start
  audit packs_mcp.audit.event=run.end
`},
		{"a denial", "deny", func() { w.fails("denied", "triage__greet", map[string]any{"who": "Ada"}) }, `
tools/call triage__greet packs_mcp.pack.id=triage packs_mcp.pack.tool=greet packs_mcp.decision=deny packs_mcp.channel=elicitation error.type=tool_error packs_mcp.error.code=denied ERROR denied
  gate packs_mcp.decision=deny packs_mcp.channel=elicitation` + waits + `
  audit packs_mcp.audit.event=decision
`},
		{"arguments that do not fit", "once", func() { w.fails("invalid_arguments", "triage__greet", map[string]any{"who": 1}) }, `
tools/call triage__greet error.type=tool_error packs_mcp.error.code=invalid_arguments ERROR invalid_arguments
  audit packs_mcp.audit.event=refusal
`},
		{"a tool that there is not", "once", func() { w.request("tools/call", map[string]any{"name": "nothing"}) }, `
tools/call error.type=-32602 ERROR 
`},
		{"a guess", "once", func() { w.fails("not_found", "triage__nothing", map[string]any{}) }, `
tools/call capability_packs_call_tool error.type=tool_error packs_mcp.error.code=not_found ERROR not_found
  audit packs_mcp.audit.event=refusal
`},
		{"a list", "once", func() { w.listed() }, "\ntools/list\n"},
		{"metadata", "once", func() { w.ok("capability_packs_list", nil) }, `
tools/call capability_packs_list packs_mcp.decision=once packs_mcp.channel=policy
  gate packs_mcp.decision=once packs_mcp.channel=policy
  audit packs_mcp.audit.event=decision
`},
		{"a resource", "once", func() { w.request("resources/read", map[string]any{"uri": "skill://triage/docs/steps.md"}) }, `
resources/read packs_mcp.pack.id=triage packs_mcp.decision=once packs_mcp.channel=elicitation
  gate packs_mcp.decision=once packs_mcp.channel=elicitation` + waits + `
  audit packs_mcp.audit.event=decision
`},
		{"a resource, denied", "deny", func() { w.request("resources/read", map[string]any{"uri": "skill://triage/docs/steps.md"}) }, `
resources/read packs_mcp.pack.id=triage packs_mcp.decision=deny packs_mcp.channel=elicitation error.type=403 packs_mcp.error.code=denied ERROR denied
  gate packs_mcp.decision=deny packs_mcp.channel=elicitation` + waits + `
  audit packs_mcp.audit.event=decision
`},
		{"a prompt", "once", func() { w.request("prompts/get", map[string]any{"name": "triage"}) }, `
prompts/get triage packs_mcp.pack.id=triage packs_mcp.decision=once packs_mcp.channel=prompt
  gate packs_mcp.decision=once packs_mcp.channel=prompt
  audit packs_mcp.audit.event=decision
`},
		{"a prompt that there is not", "once", func() { w.request("prompts/get", map[string]any{"name": "nothing"}) }, `
prompts/get error.type=-32602 ERROR 
`},
		{"a method that there is not", "once", func() { w.request("secrets/tell", nil) }, `
_OTHER error.type=-32601 ERROR 
`},
		{"a sign of life", "once", func() { w.request("ping", nil) }, "\n"},
	} {
		w.answer = decide(c.answer)
		c.do()
		if diff := cmp.Diff(c.want, "\n"+drawn(kept, keys...)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// Metrics count calls by tool and outcome, waits, decisions and runs.
func TestMetricsOfCalls(t *testing.T) {
	needShell(t)
	_, metrics, measures := measured(t)
	w := newWorld(t, failing, measures)
	w.answer = decide("once")
	w.initialize()
	w.enable("triage")
	w.enable("broken")
	w.ok("triage__greet", map[string]any{"who": "Ada"})
	w.tool("broken__fail", map[string]any{})
	w.fails("invalid_arguments", "triage__greet", map[string]any{"who": 1})
	w.request("tools/call", map[string]any{"name": "nothing"})
	w.answer = decide("deny")
	w.fails("denied", "triage__greet", map[string]any{"who": "Ada"})
	got := metrics()
	for _, line := range []string{
		"mcp.server.operation.duration mcp.method.name=tools/call,packs_mcp.tool=capability_packs_call_tool 1",
		"mcp.server.operation.duration error.type=tool_error,mcp.method.name=tools/call,packs_mcp.error.code=command_failed,packs_mcp.tool=capability_packs_call_tool 1",
		"mcp.server.operation.duration error.type=tool_error,mcp.method.name=tools/call,packs_mcp.error.code=denied,packs_mcp.tool=capability_packs_call_tool 1",
		"mcp.server.operation.duration error.type=tool_error,mcp.method.name=tools/call,packs_mcp.error.code=invalid_arguments,packs_mcp.tool=capability_packs_call_tool 1",
		"mcp.server.operation.duration error.type=-32602,mcp.method.name=tools/call 1",
		"packs_mcp.requests.active mcp.method.name=tools/call 0",
		"packs_mcp.gate.wait.duration  5",
		"packs_mcp.decisions packs_mcp.channel=elicitation,packs_mcp.decision=once 4",
		"packs_mcp.decisions packs_mcp.channel=elicitation,packs_mcp.decision=deny 1",
		"packs_mcp.runs packs_mcp.run.cause=exit 1",
		"packs_mcp.runs packs_mcp.run.cause=exit_failed 1",
		"packs_mcp.run.duration packs_mcp.run.cause=exit_failed 1",
	} {
		if !strings.Contains("\n"+got, "\n"+line+"\n") {
			t.Errorf("the metrics lack %q", line)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

// A call that nobody answers: the span shows where its time went, and that it may be
// made again.
func TestSpanOfAPendingCall(t *testing.T) {
	kept, traces := traced(true)
	w := newWorld(t, triage, traces, everywhere(50*time.Millisecond))
	w.initialize()
	kept.Reset()
	w.fails("approval_pending", "capability_packs_open_docs", map[string]any{"pack_id": "triage"})
	waited := int64(-1)
	for _, s := range kept.GetSpans() {
		for _, a := range s.Attributes {
			if a.Key == "packs_mcp.gate.waited_ms" {
				waited = a.Value.AsInt64()
			}
		}
	}
	if waited < 50 {
		t.Errorf("the call waited %d ms for a person, want 50 at least", waited)
	}
	want := `
tools/call capability_packs_open_docs packs_mcp.decision=pending ERROR approval_pending
  gate packs_mcp.decision=pending (waiting for a person) (no longer waiting)
  audit
`
	if diff := cmp.Diff(want, "\n"+drawn(kept, "packs_mcp.decision", "packs_mcp.channel")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The span of a call that its client cancels says so, and has its denial.
func TestSpanOfACancelledCall(t *testing.T) {
	kept, traces := traced(true)
	w := newWorld(t, triage, traces, everywhere(20*time.Second))
	w.initialize()
	kept.Reset()
	w.begin(false)
	w.pending(1)
	w.send(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": w.next}})
	w.close()
	want := `
tools/call capability_packs_open_docs packs_mcp.decision=deny error.type=cancelled ERROR cancelled
  gate packs_mcp.decision=deny (waiting for a person) (no longer waiting)
  audit
`
	if diff := cmp.Diff(want, "\n"+drawn(kept, "packs_mcp.decision", "error.type")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A client of 2026-07-28 carries the question: there are two requests, with the
// person's time between them.
func TestSpansOfACarriedQuestion(t *testing.T) {
	kept, traces := traced(true)
	w := newWorld(t, triage, traces)
	w.answer = decide("once")
	call := map[string]any{"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": "triage"}}
	asked := result(t, w.modern("tools/call", call))
	call["requestState"] = asked["requestState"]
	call["inputResponses"] = map[string]any{"approval": map[string]any{"action": "accept", "content": map[string]any{"decision": "once"}}}
	if r := result(t, w.modern("tools/call", call)); r["isError"] == true {
		t.Fatalf("the answered call fails: %v", r)
	}
	want := `
tools/call capability_packs_open_docs mcp.protocol.version=2026-07-28
  gate (the client asks a person)
tools/call capability_packs_open_docs mcp.protocol.version=2026-07-28 packs_mcp.decision=once
  gate packs_mcp.decision=once
  audit
`
	if diff := cmp.Diff(want, "\n"+drawn(kept, "mcp.protocol.version", "packs_mcp.decision")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A request joins its client's trace if it names one; _meta takes precedence over the
// header. The span says how the request came.
func TestSpansJoinTheClientsTrace(t *testing.T) {
	const inMeta, inHeader = "0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736"
	parent := func(id string) string { return "00-" + id + "-b7ad6b7169203331-01" }
	for _, c := range []struct {
		name         string
		joins        bool
		meta, header any
		want         string // empty: a trace of its own
	}{
		{"in _meta", true, parent(inMeta), "", inMeta},
		{"in the header", true, nil, parent(inHeader), inHeader},
		{"in both", true, parent(inMeta), parent(inHeader), inMeta},
		{"none", true, nil, "", ""},
		{"nonsense", true, "00-secret", "nonsense", ""},
		{"of another type", true, 5, "", ""},
		{"not to be joined", false, parent(inMeta), parent(inHeader), ""},
	} {
		for _, era := range []string{"2025-11-25", "2026-07-28", "sse", "stdio"} {
			kept, traces := traced(c.joins)
			params := map[string]any{}
			if era == "2026-07-28" {
				params = withMeta(nil, false)
			}
			if meta, ok := params["_meta"].(map[string]any); ok {
				meta["traceparent"] = c.meta
			} else {
				params["_meta"] = map[string]any{"traceparent": c.meta}
			}
			transport, want := "tcp", c.want
			if era == "stdio" {
				transport = "pipe"
				if c.meta == nil {
					want = ""
				}
				w := newWorld(t, triage, traces)
				w.initialize()
				kept.Reset()
				w.request("tools/list", params)
				w.close()
			} else {
				listOverHTTP(t, kept, traces, era, params, c.header.(string))
			}
			stubs := kept.GetSpans()
			if len(stubs) != 1 {
				t.Fatalf("%s, %s: %d spans, want 1", c.name, era, len(stubs))
			}
			if got := stubs[0].SpanContext.TraceID().String(); want != "" && got != want || want == "" && (got == inMeta || got == inHeader) {
				t.Errorf("%s, %s: the trace is %s, want %q", c.name, era, got, want)
			}
			if remote := stubs[0].Parent.IsRemote(); remote != (want != "") {
				t.Errorf("%s, %s: a parent elsewhere is %v", c.name, era, remote)
			}
			version := era
			if !strings.HasPrefix(era, "20") {
				version = "2025-11-25"
				if era == "sse" {
					version = "2024-11-05"
				}
			}
			a := attributesOf(t, kept)
			if a["network.transport"] != transport || a["mcp.protocol.version"] != version || a["mcp.method.name"] != "tools/list" {
				t.Errorf("%s, %s: the span has %v", c.name, era, a)
			}
			for _, key := range []string{"mcp.session.id", "jsonrpc.request.id"} {
				if s, _ := a[key].(string); s == "" {
					t.Errorf("%s, %s: the span has no %s", c.name, era, key)
				}
			}
		}
	}
}

// listOverHTTP asks for the tools once, with this trace context in the header.
func listOverHTTP(t *testing.T, kept *tracetest.InMemoryExporter, traces option, era string, params map[string]any, header string) {
	t.Helper()
	s := newSite(t, newWorld(t, triage, traces))
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": params})
	if err != nil {
		t.Fatal(err)
	}
	send := func(r *http.Request, want int) {
		t.Helper()
		if header != "" {
			r.Header.Set("traceparent", header)
		}
		if status, _, text := s.Client(tokenAda).Status(r); status != want {
			t.Fatalf("%s: tools/list is answered %d: %s", era, status, text)
		}
	}
	switch era {
	case "2025-11-25":
		c := s.Older(tokenAda, nil)
		kept.Reset()
		send(c.Request(t.Context(), "POST", "/mcp", body), http.StatusOK)
	case "2026-07-28":
		send(s.Newer(tokenAda, nil).Request(t.Context(), "POST", "/mcp", body), http.StatusOK)
	case "sse":
		o := s.SSE(tokenAda)
		o.Initialize()
		kept.Reset()
		send(s.Client(tokenAda).Request(t.Context(), "POST", o.Path, body), http.StatusAccepted)
		o.Reply()
	}
}

// Spans and metrics go to third parties. They contain nothing that a client sends, a pack
// contains or a program prints, and no person's name.
func TestSpansHaveNoSecrets(t *testing.T) {
	needShell(t)
	const planted = "hunter2swordfish"
	tree := strings.NewReplacer("Step one.", planted, "# Triage", "# Triage "+planted, "echo made", "echo "+planted+" >&2; echo made").Replace(triage)
	kept, metrics, traces := measured(t)
	w := newWorld(t, tree, traces, everywhere(50*time.Millisecond), func(s *setup) {
		s.server.Environ = append(slices.Clone(s.server.Environ), "OTEL_EXPORTER_OTLP_HEADERS=authorization="+planted)
		s.gate.Channels = []string{queue.ChannelElicitation}
	})
	for _, answer := range []string{"once", "deny"} {
		w.answer = decide("once")
		if answer == "once" {
			w.initialize()
			w.enable("triage")
		}
		w.answer = func(string, map[string]any) map[string]any {
			return map[string]any{"action": "accept", "content": map[string]any{"decision": answer, planted: planted}}
		}
		uri := "skill://triage/docs/steps.md"
		meta := map[string]any{"baggage": "a=" + planted, "traceparent": planted, "packs-mcp/context": map[string]any{"url": planted}}
		for _, r := range []struct {
			method string
			params map[string]any
		}{
			{"tools/call", map[string]any{"name": "triage__greet", "arguments": map[string]any{"who": planted}, "_meta": meta}},
			{"tools/call", map[string]any{"name": "triage__greet", "arguments": map[string]any{planted: planted}}},
			{"tools/call", map[string]any{"name": "capability_packs_exec_best_effort", "arguments": map[string]any{"pack_id": "triage", "command": "sh", "args": []string{"-c", "echo " + planted + "; exit 1"}}}},
			{"tools/call", map[string]any{"name": "capability_packs_read_file", "arguments": map[string]any{"pack_id": "triage", "path": planted}}},
			{"tools/call", map[string]any{"name": "capability_packs_read_file", "arguments": map[string]any{"pack_id": "triage", "path": "docs/steps.md"}}},
			{"tools/call", map[string]any{"name": "capability_packs_open_docs", "arguments": map[string]any{"pack_id": planted}}},
			{"tools/call", map[string]any{"name": planted, "arguments": map[string]any{}}},
			{"tools/call", map[string]any{"name": "triage__" + planted, "arguments": map[string]any{}}},
			{"tools/call", map[string]any{"name": "triage__greet", "arguments": planted}},
			{"resources/read", map[string]any{"uri": uri}},
			{"resources/read", map[string]any{"uri": uri + "?token=" + planted}},
			{"resources/read", map[string]any{"uri": "skill://user:" + planted + "@triage/x"}},
			{"prompts/get", map[string]any{"name": "triage", "arguments": map[string]any{"arguments": planted}}},
			{"prompts/get", map[string]any{"name": planted}},
			{"completion/complete", map[string]any{"ref": map[string]any{"type": "ref/prompt", "name": planted}, "argument": map[string]any{"name": planted, "value": planted}}},
			{planted, map[string]any{planted: planted}},
		} {
			w.request(r.method, r.params)
		}
	}
	// Every call had other values, and there are few lines nevertheless.
	if text := metrics(); strings.Contains(text, planted) || strings.Contains(text, "triage") || strings.Contains(text, "greet") || strings.Count(text, "\n") > 60 {
		t.Errorf("the metrics have what is not the program's own, or too many lines:\n%s", text)
	}
	all := kept.GetSpans()
	if len(all) < 50 {
		t.Errorf("%d spans, want more of so many calls", len(all))
	}
	for _, s := range all {
		if text := fmt.Sprintf("%+v", s); strings.Contains(text, planted) {
			t.Errorf("a span has the secret: %s", text)
		}
		for _, a := range s.Attributes {
			if strings.ContainsAny(a.Value.String(), "\x1b\n") {
				t.Errorf("a span has raw text: %s=%q", a.Key, a.Value.String())
			}
		}
	}
}

// Spans and metrics contain no person's name, and no tokens or sessions, with which anybody could
// impersonate them.
func TestSpansHaveNoPersons(t *testing.T) {
	kept, metrics, traces := measured(t)
	s := newSite(t, newWorld(t, triage, traces), func(o *httpd.Options) {
		o.Credentials = []httpd.Credential{{Token: tokenAda, Person: "Lovelace"}}
	})
	s.Newer(tokenAda, decide("once")).OK("capability_packs_list", nil)
	o := s.Older(tokenAda, decide("once"))
	o.OK("capability_packs_list", nil)
	for _, what := range []string{"Lovelace", tokenAda, o.Session} {
		if text := metrics(); strings.Contains(text, what) {
			t.Errorf("the metrics have %q:\n%s", what, text)
		}
	}
	all := kept.GetSpans()
	if len(all) < 6 {
		t.Errorf("%d spans, want those of two calls", len(all))
	}
	for _, stub := range all {
		for _, what := range []string{"Lovelace", tokenAda, o.Session} {
			if text := fmt.Sprintf("%+v", stub); strings.Contains(text, what) {
				t.Errorf("a span has %q: %s", what, text)
			}
		}
	}
}

// Without a tracer, a call creates no spans.
func TestNoSpansCostNothing(t *testing.T) {
	w := newWorld(t, triage)
	w.initialize()
	header := http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	ch, err := w.srv.chats.Open(wire.Client{Transport: "test", Origin: gate.OriginClient})
	if err != nil {
		t.Fatal(err)
	}
	m := wire.Message{
		Session: wire.NewSession(w.srv, nil, ch, new(wire.Peer), nil), ID: json.RawMessage("1"), Method: "tools/call",
		Params: wire.ReadParams([]byte(`{"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}`)),
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		ctx := w.srv.opts.Spans.OverHTTP(ctx, header)
		ctx, ended := tracing.Begin(ctx, w.srv.opts.Spans, m)
		span := spans.From(ctx)
		span.Tool("x")
		span.Call("x")
		span.About("run", "triage", "greet")
		deciding := span.Gate()
		span.Waiting()()
		deciding.End(false)
		run := span.Run("x")
		run.Placed()
		run.Ran(spans.Outcome{})
		run.End(false)
		span.ToolFailed("x")
		ended(nil)
	}); n != 0 {
		t.Errorf("a call without traces allocates %v times for them, want 0", n)
	}
}

package telemetry

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/spans"
	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

// receiver returns a collector's URL, and a channel of what is posted to it.
func receiver(t *testing.T) (url string, got chan *metricspb.MetricsData) {
	got = make(chan *metricspb.MetricsData, 100)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		data := new(metricspb.MetricsData)
		if err != nil || r.URL.Path != "/v1/metrics" || r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, data) != nil {
			t.Errorf("%s %s with %v (%v) is not a batch of metrics", r.Method, r.URL, r.Header, err)
			return
		}
		got <- data
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

// lines returns a line for each data point: the metric, its attributes, and its value or
// count.
func lines(data *metricspb.MetricsData) (all []string) {
	say := func(name string, attributes []*commonpb.KeyValue, value any) {
		for _, a := range attributes {
			name += fmt.Sprintf(" %s=%s", a.Key, a.Value.GetStringValue())
		}
		all = append(all, fmt.Sprintf("%s: %v", name, value))
	}
	for _, m := range data.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		for _, p := range m.GetSum().GetDataPoints() {
			say(m.Name, p.Attributes, p.GetAsInt())
		}
		for _, p := range m.GetGauge().GetDataPoints() {
			say(m.Name, p.Attributes, p.GetAsInt())
		}
		for _, p := range m.GetHistogram().GetDataPoints() {
			say(m.Name, p.Attributes, p.Count)
		}
	}
	slices.Sort(all)
	return all
}

// written is a log handler that every line reaches.
type written struct{}

func (written) Append(audit.Entry) error     { return nil }
func (written) AppendLazy(audit.Entry) error { return nil }
func (written) Failures() int                { return 0 }

// Without traces, metrics count everything, and Close sends them.
func TestMetricsSent(t *testing.T) {
	url, got := receiver(t)
	var log logbuf.Buffer
	sender := Start([]string{"OTEL_TRACES_EXPORTER=none", "OTEL_EXPORTER_OTLP_ENDPOINT=" + url, "OTEL_SERVICE_NAME=mine"}, "1.2.3", loggerTo(&log))
	tracer := sender.Tracer()
	if err := tracer.Questions(func() int { return 3 }); err != nil {
		t.Fatal(err)
	}
	begin := func(method string) *spans.Span {
		_, s := tracer.Begin(t.Context(), spans.Request{Method: method, ID: "1", Session: "hunter2"})
		return s
	}
	s := begin("tools/call")
	s.Tool("pack__hunter2")
	s.Handled("capability_packs_call_tool")
	s.Call("call-1")
	s.About("run", "hunter2", "hunter2")
	g := s.Gate()
	s.Waiting()()
	g.End(false)
	record := tracer.Recorder(written{})
	code := 0
	for _, e := range []audit.Entry{
		{Event: audit.EventDecision, Call: "call-1", Decision: "once", Channel: "page", Caller: "hunter2", Pack: "hunter2", Tool: "hunter2"},
		{Event: audit.EventRunStart, Call: "call-1", Pack: "hunter2"},
		{Event: audit.EventRunEnd, Call: "call-1", Pack: "hunter2", ExitCode: &code, DurationMS: 1500},
		{Event: audit.EventRunEnd, Cause: "timeout", ExitCode: &code, DurationMS: 2},
		{Event: audit.EventRunEnd, Error: "hunter2"},
		{Event: audit.EventRevoke, Channel: "command"},
	} {
		if err := record.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	s.End()
	denied := begin("resources/read")
	denied.Refused("403", "store_unavailable")
	denied.End()
	begin("hunter2").End()
	begin("tools/call") // has no end
	sender.Close()
	data := <-got
	want := []string{
		"mcp.server.operation.duration mcp.method.name=_OTHER: 1",
		"mcp.server.operation.duration error.type=403 mcp.method.name=resources/read packs_mcp.error.code=store_unavailable: 1",
		"mcp.server.operation.duration mcp.method.name=tools/call packs_mcp.tool=capability_packs_call_tool: 1",
		"packs_mcp.decisions packs_mcp.channel=page packs_mcp.decision=once: 1",
		"packs_mcp.gate.wait.duration: 1",
		"packs_mcp.questions.waiting: 3",
		"packs_mcp.requests.active mcp.method.name=_OTHER: 0",
		"packs_mcp.requests.active mcp.method.name=resources/read: 0",
		"packs_mcp.requests.active mcp.method.name=tools/call: 1",
		"packs_mcp.run.duration packs_mcp.run.cause=exit: 1",
		"packs_mcp.run.duration packs_mcp.run.cause=timeout: 1",
		"packs_mcp.runs packs_mcp.run.cause=exit: 1",
		"packs_mcp.runs packs_mcp.run.cause=not_started: 1",
		"packs_mcp.runs packs_mcp.run.cause=timeout: 1",
		"packs_mcp.store_unavailable mcp.method.name=resources/read: 1",
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, lines(data)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	text := data.String()
	if strings.Contains(text, "hunter2") {
		t.Errorf("the metrics have a name that is not the program's own: %s", text)
	}
	for _, part := range []string{"mine", "1.2.3"} {
		if !strings.Contains(text, part) {
			t.Errorf("the metrics do not say %q", part)
		}
	}
	for _, m := range data.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		if m.Description == "" || m.Unit == "" {
			t.Errorf("%s has the description %q and the unit %q", m.Name, m.Description, m.Unit)
		}
		if m.Name == "packs_mcp.run.duration" {
			all := m.GetHistogram().DataPoints
			p := all[slices.IndexFunc(all, func(p *metricspb.HistogramDataPoint) bool { return p.Attributes[0].Value.GetStringValue() == "exit" })]
			if p.GetSum() != 1.5 || p.GetMax() != 1.5 || len(p.BucketCounts) != len(p.ExplicitBounds)+1 || p.BucketCounts[7] != 1 || p.ExplicitBounds[7] != 2 || p.StartTimeUnixNano == 0 || p.TimeUnixNano < p.StartTimeUnixNano {
				t.Errorf("a run of 1.5 s is %v", p)
			}
		}
	}
	if strings.Contains(log.String(), "level=WARN") {
		t.Errorf("the log says\n%s", log.String())
	}
}

// Metrics are sent while the program runs, and count requests whose spans are not sampled.
func TestMetricsSentWhileRunning(t *testing.T) {
	url, got := receiver(t)
	sender := Start([]string{
		"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:1", "OTEL_TRACES_SAMPLER=always_off",
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=" + url + "/v1/metrics", "OTEL_METRIC_EXPORT_INTERVAL=10",
		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=Delta",
	}, "1", loggerTo(new(logbuf.Buffer)))
	defer sender.Close()
	request(t, sender)
	deadline := time.After(time.Minute)
	for {
		select {
		case data := <-got:
			if len(data.ResourceMetrics[0].ScopeMetrics) == 0 {
				continue // before the request
			}
			for _, m := range data.ResourceMetrics[0].ScopeMetrics[0].Metrics {
				h := m.GetHistogram()
				if h == nil || len(h.DataPoints) == 0 {
					continue
				}
				if h.AggregationTemporality != metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA || h.DataPoints[0].Count != 1 {
					t.Errorf("one request is %v", h)
				}
				return
			}
		case <-deadline:
			t.Fatal("nothing is sent while the program runs")
		}
	}
}

// A collector that never answers does not delay requests, and delays Close by two seconds.
func TestMetricsToASilentCollector(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var log logbuf.Buffer
	sender := Start([]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://user:hunter2@" + l.Addr().String(), "OTEL_METRIC_EXPORT_INTERVAL=10"}, "1", loggerTo(&log))
	began := time.Now()
	for range 10_000 {
		request(t, sender)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("ten thousand requests took %s", took)
	}
	began = time.Now()
	sender.Close()
	if took := time.Since(began); took > flush+5*time.Second {
		t.Errorf("Close took %s, want %s", took, flush)
	}
	if n := strings.Count(log.String(), "metrics are lost"); n != 1 || strings.Contains(log.String(), "hunter2") {
		t.Errorf("the log says %d times that metrics are lost, want once and without the password:\n%s", n, log.String())
	}
}

// The variables of metrics are read as documented, and independently of those of traces.
func TestReadMetrics(t *testing.T) {
	type want struct {
		URL              string // empty: nothing is sent
		Traces           bool
		Interval, Export time.Duration
		Delta            bool
		Problem          string // a part of the problem
	}
	on := want{URL: "http://c:4318/v1/metrics", Traces: true, Interval: time.Minute, Export: 30 * time.Second}
	with := func(f func(*want)) want {
		w := on
		f(&w)
		return w
	}
	for _, c := range []struct {
		environ string
		want    want
	}{
		{"", want{}},
		{"OTEL_METRIC_EXPORT_INTERVAL=10", want{}},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:4318", want{Traces: true}},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", on},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_SDK_DISABLED=true", want{}},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_METRICS_EXPORTER=none", want{Traces: true}},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_METRICS_EXPORTER=prometheus", want{Traces: true, Problem: `metrics: none are sent: OTEL_METRICS_EXPORTER is "prometheus"`}},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=grpc", want{Traces: true, Problem: "http/protobuf alone"}},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://d/in", with(func(w *want) { w.URL, w.Traces = "http://d/in", false })},
		{"OTEL_METRICS_EXPORTER=otlp", with(func(w *want) { w.URL, w.Traces = "http://localhost:4318/v1/metrics", false })},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_METRIC_EXPORT_INTERVAL=5000 OTEL_METRIC_EXPORT_TIMEOUT=100", with(func(w *want) { w.Interval, w.Export = 5*time.Second, 100*time.Millisecond })},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_METRIC_EXPORT_INTERVAL=0", with(func(w *want) { w.Problem = `OTEL_METRIC_EXPORT_INTERVAL is "0"; it is 1m0s` })},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_METRIC_EXPORT_TIMEOUT=x", with(func(w *want) { w.Problem = `OTEL_METRIC_EXPORT_TIMEOUT is "x"` })},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=lowmemory", with(func(w *want) { w.Delta = true })},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=some", with(func(w *want) { w.Problem = `"some"; it is cumulative` })},
	} {
		s, problems := read(strings.Fields(c.environ))
		var got want
		if s != nil {
			got.Traces = s.traces != nil
			if m := s.metrics; m != nil {
				got.URL, got.Interval, got.Export = m.endpoint.String(), m.interval, m.export
				got.Delta = m.temporality(sdkmetric.InstrumentKindHistogram) != sdkmetric.CumulativeTemporalitySelector(sdkmetric.InstrumentKindHistogram)
			}
		}
		for _, p := range problems {
			if c.want.Problem != "" && strings.Contains(p.what, c.want.Problem) && p.hint != "" {
				got.Problem = c.want.Problem
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" || len(problems) > 0 && c.want.Problem == "" {
			t.Errorf("%s: problems %v, -want +got\n%s", c.environ, problems, diff)
		}
	}
}

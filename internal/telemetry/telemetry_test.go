package telemetry

import (
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/packs-mcp/packs-mcp/internal/spans"
	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

// loggerTo returns a logger that writes to b.
func loggerTo(b *logbuf.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// request creates the span of one request.
func request(t *testing.T, traces *Sender) {
	t.Helper()
	_, span := traces.Tracer().Begin(t.Context(), spans.Request{Method: "tools/list", ID: "1", Session: "s"})
	if span == nil {
		t.Fatal("the request has no span")
	}
	span.End()
}

// If the variables ask for nothing, or for something unsupported, nothing is
// sent and nothing waits.
func TestOff(t *testing.T) {
	var log logbuf.Buffer
	before := runtime.NumGoroutine()
	for _, environ := range [][]string{nil, {"OTEL_SERVICE_NAME=x"}, {"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}} {
		traces := Start(environ, "1", loggerTo(&log))
		if traces != nil || traces.Tracer() != nil {
			t.Errorf("%v: there are traces", environ)
		}
		traces.Close()
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, want %d as before", after, before)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 2 || strings.Count(log.String(), "http/protobuf alone") != 2 {
		t.Errorf("the log has %d warnings, want one of each signal, of gRPC:\n%s", n, log.String())
	}
}

// Spans are posted, and Close posts the remaining ones.
func TestSent(t *testing.T) {
	for _, compression := range []string{"none", "gzip"} {
		got := make(chan *tracepb.TracesData, 1)
		tries := 0
		collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if tries++; tries == 1 {
				w.WriteHeader(http.StatusServiceUnavailable) // busy
				return
			}
			if r.Method != "POST" || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || r.Header.Get("Authorization") != "Bearer hunter2" {
				t.Errorf("%s %s with %v", r.Method, r.URL, r.Header)
			}
			body := io.Reader(r.Body)
			if compression == "gzip" {
				z, err := gzip.NewReader(r.Body)
				if err != nil {
					t.Error(err)
					return
				}
				body = z
			}
			b, err := io.ReadAll(body)
			if err != nil {
				t.Error(err)
			}
			data := new(tracepb.TracesData)
			if err := proto.Unmarshal(b, data); err != nil {
				t.Error(err)
			}
			got <- data
		}))
		t.Cleanup(collector.Close)
		var log logbuf.Buffer
		traces := Start([]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_METRICS_EXPORTER=none", "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20hunter2",
			"OTEL_EXPORTER_OTLP_COMPRESSION=" + compression, "OTEL_RESOURCE_ATTRIBUTES=team=ops",
		}, "1.2.3", loggerTo(&log))
		request(t, traces)
		traces.Close()
		select {
		case data := <-got:
			about := make(map[string]string)
			for _, a := range data.ResourceSpans[0].Resource.Attributes {
				about[a.Key] = a.Value.GetStringValue()
			}
			if about["service.name"] != "packs-mcp" || about["service.version"] != "1.2.3" || about["team"] != "ops" || about["telemetry.sdk.language"] != "go" {
				t.Errorf("the spans are of %v", about)
			}
			if name := data.ResourceSpans[0].ScopeSpans[0].Spans[0].Name; name != "tools/list" {
				t.Errorf("the span is called %q", name)
			}
		default:
			t.Errorf("%s: nothing was sent:\n%s", compression, log.String())
		}
		if strings.Contains(log.String(), "hunter2") || strings.Contains(log.String(), "level=WARN") {
			t.Errorf("the log says\n%s", log.String())
		}
	}
}

// A missing collector causes one line in the log, however many batches are lost,
// and does not delay the code that creates spans.
func TestDeadCollector(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	var log logbuf.Buffer
	traces := Start([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://user:hunter2@" + l.Addr().String()}, "1", loggerTo(&log))
	for range 3 {
		request(t, traces)
		if err := traces.traces.ForceFlush(t.Context()); err != nil {
			t.Errorf("ForceFlush() = %v", err)
		}
	}
	traces.Close()
	if n := strings.Count(log.String(), "traces are lost"); n != 1 || strings.Contains(log.String(), "hunter2") {
		t.Errorf("the log says %d times that traces are lost, want once and without the password:\n%s", n, log.String())
	}
}

// A collector that never answers does not delay calls, and delays the end by two
// seconds.
func TestSilentCollector(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var log logbuf.Buffer
	traces := Start([]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://" + l.Addr().String()}, "1", loggerTo(&log))
	began := time.Now()
	for range 10_000 { // many more than the queue holds
		request(t, traces)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("ten thousand spans took %s", took)
	}
	began = time.Now()
	traces.Close()
	// Without its own bound, Close would take ten seconds, the timeout of an export.
	if took := time.Since(began); took > flush+5*time.Second {
		t.Errorf("Close took %s, want %s", took, flush)
	}
	if n := strings.Count(log.String(), "traces are lost"); n != 1 {
		t.Errorf("the log says %d times that traces are lost, want once:\n%s", n, log.String())
	}
}

// Headers hold tokens, so redirects are not followed.
func TestNoRedirection(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("spans went elsewhere, with %v", r.Header)
	}))
	defer elsewhere.Close()
	collector := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer collector.Close()
	s, problems := read([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_EXPORTER_OTLP_HEADERS=x-api-key=hunter2"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	u, err := newUploader(&s.traces.target)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UploadTraces(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("UploadTraces() = %v, want that the collector refused", err)
	}
}

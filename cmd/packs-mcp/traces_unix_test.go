//go:build unix

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A collector receives spans and metrics over OTLP.
type collector struct {
	*httptest.Server

	mu    sync.Mutex
	spans []*tracepb.Span
	sums  map[string]int64 // :: metric, and its attributes' values in order → the last sum, or count of a histogram
	raw   []byte           // everything that was posted
	auth  string
}

func newCollector(t *testing.T) *collector {
	c := &collector{sums: make(map[string]int64)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		data, metrics := new(tracepb.TracesData), new(metricspb.MetricsData)
		var into proto.Message = data
		if r.URL.Path == "/v1/metrics" {
			into = metrics
		}
		if err != nil || r.URL.Path != "/v1/traces" && r.URL.Path != "/v1/metrics" || proto.Unmarshal(body, into) != nil {
			t.Errorf("%s %s (%v) is not a batch of spans or metrics", r.Method, r.URL, err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.raw, c.auth = append(c.raw, body...), r.Header.Get("Authorization")
		c.count(metrics)
		for _, of := range data.ResourceSpans {
			for _, scope := range of.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// count keeps the sums of metrics. The caller holds the lock.
func (c *collector) count(data *metricspb.MetricsData) {
	keep := func(name string, attributes []*commonpb.KeyValue, n int64) {
		for _, a := range attributes {
			name += " " + a.Value.GetStringValue()
		}
		c.sums[name] = n
	}
	for _, of := range data.ResourceMetrics {
		for _, scope := range of.ScopeMetrics {
			for _, m := range scope.Metrics {
				for _, p := range append(m.GetSum().GetDataPoints(), m.GetGauge().GetDataPoints()...) {
					keep(m.Name, p.Attributes, p.GetAsInt())
				}
				for _, p := range m.GetHistogram().GetDataPoints() {
					keep(m.Name, p.Attributes, int64(p.Count))
				}
			}
		}
	}
}

// children returns the names of the children of the span with this name.
func (c *collector) children(name string) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, parent := range c.spans {
		for _, s := range c.spans {
			if parent.Name == name && bytes.Equal(s.ParentSpanId, parent.SpanId) {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

func (c *collector) has(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Name == name {
			return true
		}
	}
	return false
}

// The real program over stdio: once it has ended, the collector has every call; the pack's
// program learned nothing about the collector; and standard output carried only the
// protocol.
func TestTracesOverStdio(t *testing.T) {
	const token, argument = "hunter2swordfish", "bigsecretargument"
	c := newCollector(t)
	dir, env := home(t)
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "walk", "env\necho it went "+argument+"\n")
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte("rules:\n  - allow: {pack: walk, kind: [enable, exec]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := exec.Command("packs-mcp", "serve", "--config", config, "--packs", packs, "--attach", "all")
	serve.Env = append(env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL, "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20"+token, "OTEL_SERVICE_NAME=mine")
	serve.Stdin = strings.NewReader(initialize + `
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"capability_packs_exec_best_effort","arguments":{"pack_id":"walk","command":"./go.sh","args":["` + argument + `"]}}}
`)
	var stdout, stderr bytes.Buffer
	serve.Stdout, serve.Stderr = &stdout, &stderr
	late := time.AfterFunc(time.Minute, func() { _ = serve.Process.Kill() })
	defer late.Stop()
	if err := serve.Run(); err != nil {
		t.Fatalf("the server ended with %v\n%s", err, stderr.String())
	}
	if out := stdout.String(); strings.Count(out, "\n") != 2 || !strings.Contains(out, "it went") || strings.Contains(out, "OTEL_") || strings.Contains(out, token) {
		t.Errorf("standard output has %s\n%s", out, stderr.String())
	}
	children := c.children("tools/call capability_packs_exec_best_effort")
	slices.Sort(children)
	if diff := cmp.Diff([]string{"audit", "audit", "audit", "gate", "run"}, children); diff != "" {
		t.Errorf("the children of the call: -want +got\n%s", diff)
	}
	if !c.has("initialize") {
		t.Error("initialize has no span")
	}
	want := map[string]int64{
		"mcp.server.operation.duration initialize":                                   1,
		"mcp.server.operation.duration tools/call capability_packs_exec_best_effort": 1,
		"packs_mcp.requests.active initialize":                                       0,
		"packs_mcp.requests.active tools/call":                                       0,
		"packs_mcp.decisions rule once":                                              1,
		"packs_mcp.runs exit":                                                        1,
		"packs_mcp.run.duration exit":                                                1,
		"packs_mcp.questions.waiting":                                                0,
	}
	if diff := cmp.Diff(want, c.sums); diff != "" {
		t.Errorf("the metrics: -want +got\n%s", diff)
	}
	if c.auth != "Bearer "+token {
		t.Errorf("the collector was sent the credentials %q", c.auth)
	}
	for _, secret := range []string{token, argument, "it went"} {
		if bytes.Contains(c.raw, []byte(secret)) || strings.Contains(stderr.String(), secret) {
			t.Errorf("%q went to the collector, or into the log\n%s", secret, stderr.String())
		}
	}
	if !bytes.Contains(c.raw, []byte("mine")) {
		t.Error("the spans are not of the service that OTEL_SERVICE_NAME names")
	}
}

// The same over HTTP, ended by a signal.
func TestTracesOverHTTP(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	c := newCollector(t)
	dir, env := home(t)
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "walk", "echo it went\n")
	serve := exec.Command("packs-mcp", "serve", "--packs", packs, "--http", "127.0.0.1:0")
	serve.Env = append(env, "PACKS_MCP_TOKEN="+token, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+c.URL+"/v1/traces")
	stderr, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = serve.Process.Kill() })
	defer late.Stop()
	defer serve.Process.Kill()
	url := ""
	lines := bufio.NewScanner(stderr)
	for url == "" && lines.Scan() {
		if m := regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`).FindString(lines.Text()); m != "" {
			url = m
		}
	}
	said := make(chan string)
	go func() {
		rest, _ := io.ReadAll(stderr)
		said <- string(rest)
	}()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	r, err := http.NewRequest("POST", url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"capability_packs_list","arguments":{},`+meta+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "capability_packs_list",
		"Traceparent": "00-" + trace + "-b7ad6b7169203331-01",
	} {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the call is answered %s", resp.Status)
	}
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest := <-said
	if err := serve.Wait(); err != nil {
		t.Errorf("the server ended with %v\n%s", err, rest)
	}
	children := c.children("tools/call capability_packs_list")
	slices.Sort(children)
	if diff := cmp.Diff([]string{"audit", "gate"}, children); diff != "" {
		t.Errorf("the children of the call: -want +got\n%s", diff)
	}
	for _, s := range c.spans {
		if got := fmt.Sprintf("%x", s.TraceId); got != trace {
			t.Errorf("the span %s is of the trace %s, want the client's", s.Name, got)
		}
	}
	if bytes.Contains(c.raw, []byte(token)) {
		t.Error("the token went to the collector")
	}
}

// A collector that accepts connections but never answers delays the end by our own limit,
// not by the limits in the variables; the status stays 0.
func TestTracesToNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, env := home(t)
	serve := exec.Command("packs-mcp", "serve")
	serve.Env = append(env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+l.Addr().String(), "OTEL_EXPORTER_OTLP_TIMEOUT=3600000")
	in, err := serve.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	serve.Stderr = &stderr
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = serve.Process.Kill() })
	defer late.Stop()
	if _, err := io.WriteString(in, initialize+"\n"); err != nil {
		t.Fatal(err)
	}
	if !bufio.NewScanner(out).Scan() {
		t.Fatal("initialize is not answered")
	}
	in.Close()
	if err := serve.Wait(); err != nil {
		t.Errorf("the server ended with %v, want 0 without the collector's answer\n%s", err, stderr.String())
	}
	for _, signal := range []string{"traces", "metrics"} {
		if n := strings.Count(stderr.String(), signal+" are lost"); n != 1 {
			t.Errorf("the log says %d times that %s are lost, want once\n%s", n, signal, stderr.String())
		}
	}
}

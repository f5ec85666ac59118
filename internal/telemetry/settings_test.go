package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The variables are read as documented, and a problem never contains the secret.
func TestRead(t *testing.T) {
	const secret = "hunter2"
	type want struct {
		URL     string // empty: nothing is sent
		Name    string
		Headers int
		Timeout time.Duration
		Sampler string
		Joins   bool
		Problem string // a part of the problem
	}
	const usual = "ParentBased{root:AlwaysOnSampler"
	local := want{URL: "http://c:4318/v1/traces", Name: "packs-mcp", Timeout: 10 * time.Second, Sampler: usual, Joins: true}
	with := func(f func(*want)) want {
		w := local
		f(&w)
		return w
	}
	for _, c := range []struct {
		environ string
		want    want
	}{
		{"", want{}},
		{"OTEL_SERVICE_NAME=x OTEL_TRACES_SAMPLER=always_on OTEL_RESOURCE_ATTRIBUTES=a=b OTEL_PROPAGATORS=tracecontext OTEL_EXPORTER_OTLP_HEADERS=a=b", want{}},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://c:4318", want{}},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=", want{}},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", local},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318/", local},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318/base", with(func(w *want) { w.URL = "http://c:4318/base/v1/traces" })},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318 OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://d/in", with(func(w *want) { w.URL = "https://d/in" })},
		{"OTEL_TRACES_EXPORTER=otlp", with(func(w *want) { w.URL = "http://localhost:4318/v1/traces" })},
		{"OTEL_TRACES_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", want{}},
		{"OTEL_TRACES_EXPORTER=console OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", want{Problem: `OTEL_TRACES_EXPORTER is "console"`}},
		{"OTEL_TRACES_EXPORTER=otlp,console", want{Problem: "otlp alone"}},
		{"OTEL_SDK_DISABLED=TRUE OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", want{}},
		{"OTEL_SDK_DISABLED=no OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", local},
		{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317", want{Problem: "http/protobuf alone"}},
		{"OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf OTEL_METRICS_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", local},
		{"OTEL_EXPORTER_OTLP_PROTOCOL=http/json OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", want{Problem: "http/protobuf alone"}},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=c:4318", want{Problem: "is not a URL"}},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=ftp://user:hunter2@c", want{Problem: "is not a URL"}},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://user:hunter2@c:99999999:1", want{Problem: "is not a URL"}},
		{"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20hunter2,x=y OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", with(func(w *want) { w.Headers = 2 })},
		{"OTEL_EXPORTER_OTLP_HEADERS=hunter2 OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", want{Problem: "part 1 has no name"}},
		{"OTEL_EXPORTER_OTLP_HEADERS=a=hunter2%0d%0ab OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", want{Problem: `the value of "a"`}},
		{"OTEL_EXPORTER_OTLP_TIMEOUT=250 OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", with(func(w *want) { w.Timeout = 250 * time.Millisecond })},
		{"OTEL_EXPORTER_OTLP_TIMEOUT=-1 OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", with(func(w *want) { w.Problem = `is "-1"` })},
		{"OTEL_EXPORTER_OTLP_COMPRESSION=brotli OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", with(func(w *want) { w.Problem = "nothing is compressed" })},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere/ca.pem OTEL_EXPORTER_OTLP_ENDPOINT=https://c:4318", want{Problem: "OTEL_EXPORTER_OTLP_CERTIFICATE"}},
		{"OTEL_EXPORTER_OTLP_CLIENT_KEY=/nowhere/key.pem OTEL_EXPORTER_OTLP_ENDPOINT=https://c:4318", want{Problem: "OTEL_EXPORTER_OTLP_CLIENT_KEY"}},
		{"OTEL_SERVICE_NAME=mine OTEL_RESOURCE_ATTRIBUTES=service.name=other,a=b%20c OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", with(func(w *want) { w.Name = "mine" })},
		{"OTEL_RESOURCE_ATTRIBUTES=service.name=other OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", with(func(w *want) { w.Name = "other" })},
		{"OTEL_RESOURCE_ATTRIBUTES=nothing OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", with(func(w *want) { w.Problem = "left out" })},
		{"OTEL_TRACES_SAMPLER=always_off OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", with(func(w *want) { w.Sampler = "AlwaysOffSampler" })},
		{"OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=0.25 OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", with(func(w *want) { w.Sampler = "TraceIDRatioBased{0.25}" })},
		{"OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=NaN OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", with(func(w *want) { w.Problem = "OTEL_TRACES_SAMPLER" })},
		{"OTEL_TRACES_SAMPLER=jaeger_remote OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", with(func(w *want) { w.Problem = `"jaeger_remote"` })},
		{"OTEL_PROPAGATORS=none OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", with(func(w *want) { w.Joins = false })},
		{"OTEL_PROPAGATORS=b3,tracecontext,baggage OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", with(func(w *want) { w.Problem = `"b3"` })},
	} {
		s, problems := read(strings.Fields(c.environ))
		var got want
		if s != nil && s.traces != nil {
			sent := s.traces
			got = want{URL: sent.endpoint.String(), Headers: len(sent.headers), Timeout: sent.timeout, Sampler: sent.sampler.Description(), Joins: sent.joins}
			if strings.HasPrefix(got.Sampler, usual) {
				got.Sampler = usual
			}
			for _, a := range s.resource("1") {
				if a.Key == "service.name" {
					got.Name = a.Value.AsString()
				}
			}
		}
		for _, p := range problems {
			if strings.Contains(p.what+p.hint, secret) {
				t.Errorf("%s: the problem has the secret: %v", c.environ, p)
			}
			if p.hint == "" {
				t.Errorf("%s: the problem says not what to do: %v", c.environ, p)
			}
			if c.want.Problem != "" && strings.Contains(p.what, c.want.Problem) {
				got.Problem = c.want.Problem
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" || len(problems) > 0 && c.want.Problem == "" {
			t.Errorf("%s: problems %v, -want +got\n%s", c.environ, problems, diff)
		}
	}
}

// The library ends the process over invalid numbers, so none may reach it.
func TestBatching(t *testing.T) {
	usual := batching{5 * time.Second, 30 * time.Second, 2048, 512}
	for environ, want := range map[string]batching{
		"": usual,
		"OTEL_BSP_SCHEDULE_DELAY=200 OTEL_BSP_EXPORT_TIMEOUT=1000 OTEL_BSP_MAX_QUEUE_SIZE=64 OTEL_BSP_MAX_EXPORT_BATCH_SIZE=16": {200 * time.Millisecond, time.Second, 64, 16},
		"OTEL_BSP_MAX_QUEUE_SIZE=100": {usual.delay, usual.timeout, 100, 100},
		"OTEL_BSP_SCHEDULE_DELAY=0 OTEL_BSP_EXPORT_TIMEOUT=-5 OTEL_BSP_MAX_QUEUE_SIZE=-1 OTEL_BSP_MAX_EXPORT_BATCH_SIZE=-1":                          usual,
		"OTEL_BSP_SCHEDULE_DELAY=x OTEL_BSP_EXPORT_TIMEOUT=1e3 OTEL_BSP_MAX_QUEUE_SIZE=99999999999999 OTEL_BSP_MAX_EXPORT_BATCH_SIZE=99999999999999": usual,
	} {
		s, problems := read(append(strings.Fields(environ), "OTEL_TRACES_EXPORTER=otlp"))
		refused := strings.Count(environ, "OTEL_") > 0 && want == usual
		if s == nil || s.traces.batch != want || refused != (len(problems) == 4) {
			t.Errorf("%q: %+v and the problems %v, want %+v", environ, s.traces.batch, problems, want)
		}
	}
}

package telemetry

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// defaultEndpoint is used if only an OTEL_…_EXPORTER=otlp is set.
	defaultEndpoint = "http://localhost:4318"
	defaultTimeout  = 10 * time.Second
	defaultName     = "packs-mcp"
)

// settings are what the variables configure.
type settings struct {
	traces     *traceSettings  // nil: none are sent
	metrics    *metricSettings // nil: none are sent
	name       string
	attributes []attribute.KeyValue
}

// A target is where one signal is sent, and how.
type target struct {
	endpoint *url.URL
	headers  [][2]string
	timeout  time.Duration // of one request
	gzip     bool
	tls      *tls.Config // nil: the default
}

// traceSettings are the settings of traces.
type traceSettings struct {
	target
	sampler sdktrace.Sampler
	joins   bool // continue clients' traces
	batch   batching
}

// batching is how spans are collected into batches.
type batching struct {
	delay, timeout time.Duration // until an incomplete batch is sent; for sending a batch
	queue, size    int           // spans that may wait, and spans of one batch
}

// A problem says why a variable is ignored. It never contains the value of a variable
// that may be secret.
type problem struct{ what, hint string }

// problems collects problems.
type problems []problem

// add adds a problem of a setting that is ignored or replaced.
func (p *problems) add(about, hint, format string, args ...any) {
	*p = append(*p, problem{about + ": " + fmt.Sprintf(format, args...), hint})
}

// A signal is one of the two kinds of data that are sent. Its name is as in the
// log; in capitals it is part of the names of variables.
type signal string

const (
	traces  signal = "traces"
	metrics signal = "metrics"
)

// variables are the variables of an environment.
type variables map[string]string

func variablesOf(environ []string) variables {
	v := make(variables)
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, "OTEL_") {
			v[name] = strings.TrimSpace(value)
		}
	}
	return v
}

// otlp returns a setting of a signal's exporter, or else the one for all signals.
func (v variables) otlp(of signal, name string) string {
	return cmp.Or(v["OTEL_EXPORTER_OTLP_"+of.variable()+"_"+name], v["OTEL_EXPORTER_OTLP_"+name])
}

func (s signal) variable() string { return strings.ToUpper(string(s)) }

// read returns the settings; nil if nothing is to be sent. An empty variable
// counts as unset.
func read(environ []string) (*settings, problems) {
	v := variablesOf(environ)
	if strings.EqualFold(v["OTEL_SDK_DISABLED"], "true") {
		return nil, nil
	}
	var found problems
	s := &settings{traces: v.traces(&found), metrics: v.metrics(&found)}
	if s.traces == nil && s.metrics == nil {
		return nil, found
	}
	attributes, err := pairs(v["OTEL_RESOURCE_ATTRIBUTES"])
	if err != nil {
		found.add("telemetry", "write it as in name=value,other=value", "OTEL_RESOURCE_ATTRIBUTES cannot be read: %v; it is left out", err)
	}
	for _, a := range attributes {
		s.attributes = append(s.attributes, attribute.String(a[0], a[1]))
	}
	s.name = v["OTEL_SERVICE_NAME"]
	return s, found
}

// target returns where a signal is sent, or nil to send none.
func (v variables) target(of signal, found *problems) *target {
	off := func(hint, format string, args ...any) *target {
		found.add(string(of), hint, "none are sent: "+format, args...)
		return nil
	}
	named := "OTEL_" + of.variable() + "_EXPORTER"
	exporters := split(v[named])
	switch {
	case len(exporters) == 0 && v.otlp(of, "ENDPOINT") == "", slices.Equal(exporters, []string{"none"}):
		return nil
	case len(exporters) > 0 && !slices.Equal(exporters, []string{"otlp"}):
		return off("set it to otlp or none", "%s is %q, and this program has otlp alone", named, v[named])
	}
	if p := v.otlp(of, "PROTOCOL"); p != "" && p != "http/protobuf" {
		return off("set OTEL_EXPORTER_OTLP_"+of.variable()+"_PROTOCOL=http/protobuf, and the endpoint to where the collector takes it, which is port 4318 by custom",
			"OTEL_EXPORTER_OTLP_PROTOCOL is %q, and this program has http/protobuf alone", p)
	}
	t := &target{timeout: defaultTimeout}
	var err error
	if t.endpoint, err = v.endpoint(of); err != nil {
		return off("write it as in http://localhost:4318", "%v", err)
	}
	if t.headers, err = pairs(v.otlp(of, "HEADERS")); err != nil {
		return off("write it as in name=value,other=value, with %20 for a space", "OTEL_EXPORTER_OTLP_HEADERS cannot be read: %v", err)
	}
	if t.tls, err = v.tls(of); err != nil {
		return off("name files in PEM that this user can read", "%v", err)
	}
	t.timeout = v.milliseconds("OTEL_EXPORTER_OTLP_TIMEOUT", v.otlp(of, "TIMEOUT"), defaultTimeout, of, found)
	switch text := v.otlp(of, "COMPRESSION"); text {
	case "", "none":
	case "gzip":
		t.gzip = true
	default:
		found.add(string(of), "set it to gzip or none", "OTEL_EXPORTER_OTLP_COMPRESSION is %q; nothing is compressed", text)
	}
	return t
}

// milliseconds returns the duration that text gives, or else the usual one.
func (v variables) milliseconds(name, text string, usual time.Duration, of signal, found *problems) time.Duration {
	if text == "" {
		return usual
	}
	ms, err := strconv.Atoi(text)
	if err != nil || ms < 1 || ms > int(time.Hour/time.Millisecond) {
		found.add(string(of), "give milliseconds, at most an hour", "%s is %q; it is %s instead", name, text, usual)
		return usual
	}
	return time.Duration(ms) * time.Millisecond
}

// traces returns the settings of traces, or nil to send none.
func (v variables) traces(found *problems) *traceSettings {
	t := v.target(traces, found)
	if t == nil {
		return nil
	}
	s := &traceSettings{target: *t}
	if s.sampler = v.sampler(); s.sampler == nil {
		s.sampler = sdktrace.ParentBased(sdktrace.AlwaysSample())
		found.add(string(traces), "see docs/reference/telemetry.md for those there are", "OTEL_TRACES_SAMPLER %q with OTEL_TRACES_SAMPLER_ARG %q is not one; it is parentbased_always_on instead",
			v["OTEL_TRACES_SAMPLER"], v["OTEL_TRACES_SAMPLER_ARG"])
	}
	s.batch = v.batching(func(name, text string, instead int) {
		found.add(string(traces), "give a whole number in the bounds that docs/reference/telemetry.md has", "%s is %q; it is %d instead", name, text, instead)
	})
	s.joins = v["OTEL_PROPAGATORS"] == ""
	for _, p := range split(v["OTEL_PROPAGATORS"]) {
		switch p {
		case "tracecontext":
			s.joins = true
		case "baggage", "none": // we propagate nothing
		default:
			found.add(string(traces), "add tracecontext", "OTEL_PROPAGATORS has %q, which this program does not understand", p)
		}
	}
	return s
}

// batching reads how spans are batched. The library would read the variables
// itself, and end the process over an invalid number.
func (v variables) batching(ignored func(name, text string, instead int)) batching {
	number := func(name string, usual, most int) int {
		text := v["OTEL_BSP_"+name]
		if text == "" {
			return usual
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			ignored("OTEL_BSP_"+name, text, usual)
			return usual
		}
		return n
	}
	const hour = int(time.Hour / time.Millisecond)
	b := batching{
		delay:   time.Duration(number("SCHEDULE_DELAY", sdktrace.DefaultScheduleDelay, hour)) * time.Millisecond,
		timeout: time.Duration(number("EXPORT_TIMEOUT", sdktrace.DefaultExportTimeout, hour)) * time.Millisecond,
		queue:   number("MAX_QUEUE_SIZE", sdktrace.DefaultMaxQueueSize, 1<<16),
	}
	b.size = min(b.queue, number("MAX_EXPORT_BATCH_SIZE", sdktrace.DefaultMaxExportBatchSize, 1<<16))
	return b
}

// resource returns attributes that describe this program. Later attributes
// override earlier ones.
func (s *settings) resource(version string) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("service.name", defaultName), attribute.String("service.version", version)}
	all = append(all, s.attributes...)
	if s.name != "" {
		all = append(all, attribute.String("service.name", s.name))
	}
	return all
}

// endpoint returns the URL to which a signal is posted.
func (v variables) endpoint(of signal) (*url.URL, error) {
	name := "OTEL_EXPORTER_OTLP_" + of.variable() + "_ENDPOINT"
	text := v[name]
	base := text == ""
	if base {
		name, text = "OTEL_EXPORTER_OTLP_ENDPOINT", cmp.Or(v["OTEL_EXPORTER_OTLP_ENDPOINT"], defaultEndpoint)
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is not a URL of http or https", name) // do not quote it: it may contain a password
	}
	if base {
		u = u.JoinPath("v1", string(of))
	}
	return u, nil
}

// tls returns the exporter's TLS configuration: the authorities that it trusts
// and its own certificate.
func (v variables) tls(of signal) (*tls.Config, error) {
	ca, cert, key := v.otlp(of, "CERTIFICATE"), v.otlp(of, "CLIENT_CERTIFICATE"), v.otlp(of, "CLIENT_KEY")
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %q has no certificate", ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// sampler returns the sampler of requests; nil if the variables are invalid.
func (v variables) sampler() sdktrace.Sampler {
	ratio := 1.0
	if text := v["OTEL_TRACES_SAMPLER_ARG"]; text != "" && strings.HasSuffix(v["OTEL_TRACES_SAMPLER"], "traceidratio") {
		var err error
		if ratio, err = strconv.ParseFloat(text, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil
		}
	}
	switch v["OTEL_TRACES_SAMPLER"] {
	case "", "parentbased_always_on":
		return sdktrace.ParentBased(sdktrace.AlwaysSample())
	case "parentbased_always_off":
		return sdktrace.ParentBased(sdktrace.NeverSample())
	case "parentbased_traceidratio":
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio))
	case "always_on":
		return sdktrace.AlwaysSample()
	case "always_off":
		return sdktrace.NeverSample()
	case "traceidratio":
		return sdktrace.TraceIDRatioBased(ratio)
	}
	return nil
}

// split returns the parts of a list.
func split(list string) (parts []string) {
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// pairs returns the pairs of a list such as name=value,other=a%20value. Its
// errors do not show a value.
func pairs(list string) ([][2]string, error) {
	var all [][2]string
	for i, part := range split(list) {
		name, value, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		switch {
		case !ok || name == "":
			return nil, fmt.Errorf("part %d has no name", i+1)
		case err != nil || strings.ContainsAny(value, "\r\n\x00"):
			return nil, fmt.Errorf("the value of %q is not escaped as in a URL", name)
		}
		all = append(all, [2]string{name, value})
	}
	return all, nil
}

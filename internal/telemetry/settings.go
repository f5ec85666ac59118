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
	// defaultEndpoint is used if only OTEL_TRACES_EXPORTER=otlp is set.
	defaultEndpoint = "http://localhost:4318"
	defaultTimeout  = 10 * time.Second
	defaultName     = "packs-mcp"
)

// settings are the settings that the variables give.
type settings struct {
	endpoint   *url.URL
	headers    [][2]string
	timeout    time.Duration // of one request
	gzip       bool
	tls        *tls.Config // nil: the default
	sampler    sdktrace.Sampler
	joins      bool // clients' traces are continued
	name       string
	attributes []attribute.KeyValue
	batch      batching
}

// batching is how spans are collected and sent together.
type batching struct {
	delay, timeout time.Duration // until an incomplete batch is sent; for sending a batch
	queue, size    int           // spans that may wait, and spans of one batch
}

// A problem says why a variable is not followed. It never has the value of a
// variable that may be secret.
type problem struct{ what, hint string }

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

// otlp returns a setting of the exporter: the one for traces, or else the one
// for all signals.
func (v variables) otlp(name string) string {
	return cmp.Or(v["OTEL_EXPORTER_OTLP_TRACES_"+name], v["OTEL_EXPORTER_OTLP_"+name])
}

// read returns the settings; nil if nothing is to be sent. An empty variable
// counts as unset.
func read(environ []string) (*settings, []problem) {
	v := variablesOf(environ)
	if strings.EqualFold(v["OTEL_SDK_DISABLED"], "true") {
		return nil, nil
	}
	exporters := split(v["OTEL_TRACES_EXPORTER"])
	switch {
	case len(exporters) == 0 && v.otlp("ENDPOINT") == "", slices.Equal(exporters, []string{"none"}):
		return nil, nil
	case len(exporters) > 0 && !slices.Equal(exporters, []string{"otlp"}):
		return nil, off("OTEL_TRACES_EXPORTER is %q, and this program has otlp alone", "set it to otlp or none", v["OTEL_TRACES_EXPORTER"])
	}
	if p := v.otlp("PROTOCOL"); p != "" && p != "http/protobuf" {
		return nil, off("OTEL_EXPORTER_OTLP_PROTOCOL is %q, and this program has http/protobuf alone",
			"set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf, and the endpoint to where the collector takes it, which is port 4318 by custom", p)
	}
	s := &settings{timeout: defaultTimeout}
	var err error
	if s.endpoint, err = v.endpoint(); err != nil {
		return nil, off("%v", "write it as in http://localhost:4318", err)
	}
	if s.headers, err = pairs(v.otlp("HEADERS")); err != nil {
		return nil, off("OTEL_EXPORTER_OTLP_HEADERS cannot be read: %v", "write it as in name=value,other=value, with %20 for a space", err)
	}
	if s.tls, err = v.tls(); err != nil {
		return nil, off("%v", "name files in PEM that this user can read", err)
	}
	return s, v.rest(s)
}

// off returns the problem that keeps anything from being sent.
func off(format, hint string, args ...any) []problem {
	return []problem{{"none are sent: " + fmt.Sprintf(format, args...), hint}}
}

// rest reads the settings that can be ignored if they are wrong.
func (v variables) rest(s *settings) (problems []problem) {
	ignored := func(hint, format string, args ...any) {
		problems = append(problems, problem{fmt.Sprintf(format, args...), hint})
	}
	if text := v.otlp("TIMEOUT"); text != "" {
		ms, err := strconv.Atoi(text)
		if err == nil && ms > 0 && ms <= int(time.Hour/time.Millisecond) {
			s.timeout = time.Duration(ms) * time.Millisecond
		} else {
			ignored("give milliseconds", "OTEL_EXPORTER_OTLP_TIMEOUT is %q; it is %s instead", text, s.timeout)
		}
	}
	switch text := v.otlp("COMPRESSION"); text {
	case "", "none":
	case "gzip":
		s.gzip = true
	default:
		ignored("set it to gzip or none", "OTEL_EXPORTER_OTLP_COMPRESSION is %q; nothing is compressed", text)
	}
	if s.sampler = v.sampler(); s.sampler == nil {
		s.sampler = sdktrace.ParentBased(sdktrace.AlwaysSample())
		ignored("see docs/reference/telemetry.md for those there are", "OTEL_TRACES_SAMPLER %q with OTEL_TRACES_SAMPLER_ARG %q is not one; it is parentbased_always_on instead",
			v["OTEL_TRACES_SAMPLER"], v["OTEL_TRACES_SAMPLER_ARG"])
	}
	s.batch = v.batching(func(name, text string, instead int) {
		ignored("give a whole number in the bounds that docs/reference/telemetry.md has", "%s is %q; it is %d instead", name, text, instead)
	})
	s.joins = v["OTEL_PROPAGATORS"] == ""
	for _, p := range split(v["OTEL_PROPAGATORS"]) {
		switch p {
		case "tracecontext":
			s.joins = true
		case "baggage", "none": // we pass nothing on to others
		default:
			ignored("add tracecontext", "OTEL_PROPAGATORS has %q, which this program does not understand", p)
		}
	}
	attributes, err := pairs(v["OTEL_RESOURCE_ATTRIBUTES"])
	if err != nil {
		ignored("write it as in name=value,other=value", "OTEL_RESOURCE_ATTRIBUTES cannot be read: %v; it is left out", err)
	}
	for _, a := range attributes {
		s.attributes = append(s.attributes, attribute.String(a[0], a[1]))
	}
	s.name = v["OTEL_SERVICE_NAME"]
	return problems
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

// endpoint returns the URL to which traces are posted.
func (v variables) endpoint() (*url.URL, error) {
	name, text := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", v["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
	base := text == ""
	if base {
		name, text = "OTEL_EXPORTER_OTLP_ENDPOINT", cmp.Or(v["OTEL_EXPORTER_OTLP_ENDPOINT"], defaultEndpoint)
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is not a URL of http or https", name) // do not show it: it may have a password
	}
	if base {
		u = u.JoinPath("v1", "traces")
	}
	return u, nil
}

// tls returns the exporter's TLS configuration: the authorities that it trusts
// and its own certificate.
func (v variables) tls() (*tls.Config, error) {
	ca, cert, key := v.otlp("CERTIFICATE"), v.otlp("CLIENT_CERTIFICATE"), v.otlp("CLIENT_KEY")
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

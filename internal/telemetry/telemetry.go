// Package telemetry sends spans to the collector that the standard OpenTelemetry
// variables name (OTEL_EXPORTER_OTLP_ENDPOINT and the like), or nowhere if they
// name none. It is the only package that knows how spans are kept and sent;
// package spans defines what is in one.
//
// It reads these variables itself, as every program with OpenTelemetry does:
// they are not part of the configuration. It never writes to standard output and
// never delays a call, and no problem with it keeps the server from serving.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/packs-mcp/packs-mcp/internal/spans"
)

// scope is the name of the instrumentation that creates the spans.
const scope = "github.com/packs-mcp/packs-mcp"

// flush is how long Close waits for the collector.
const flush = 2 * time.Second

// Traces sends spans. A nil Traces sends nothing.
type Traces struct {
	provider *sdktrace.TracerProvider
	tracer   *spans.Tracer
	out      *quiet
}

// Start prepares what environ (KEY=value, as from os.Environ) asks for. It
// returns nil if environ asks for nothing, or for something unsupported, which
// it logs. It connects to nothing and sends nothing before there is a span.
func Start(environ []string, version string, logger *slog.Logger) *Traces {
	s, problems := read(environ)
	for _, p := range problems {
		logger.Warn(p.what, "hint", p.hint)
	}
	if s == nil {
		return nil
	}
	up, err := newUploader(&s.traces.target)
	if err == nil {
		var t *Traces
		if t, err = start(s, otlptrace.NewUnstarted(up), version, logger); err == nil {
			logger.Info("calls are traced", "to", s.traces.endpoint.Redacted())
			return t
		}
	}
	logger.Warn("traces: none are sent", "err", err)
	return nil
}

func start(s *settings, e sdktrace.SpanExporter, version string, logger *slog.Logger) (*Traces, error) {
	res, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(s.resource(version)...))
	if err != nil {
		return nil, fmt.Errorf("describing this program: %w", err)
	}
	// By default the library writes a line on standard error for each error.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Debug("traces", "err", err) }))
	out := &quiet{SpanExporter: e, logger: logger}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(res), sdktrace.WithSampler(s.traces.sampler),
		sdktrace.WithBatcher(out,
			sdktrace.WithBatchTimeout(s.traces.batch.delay), sdktrace.WithExportTimeout(s.traces.batch.timeout),
			sdktrace.WithMaxQueueSize(s.traces.batch.queue), sdktrace.WithMaxExportBatchSize(s.traces.batch.size)),
	)
	tracer := provider.Tracer(scope, trace.WithInstrumentationVersion(version))
	return &Traces{provider: provider, tracer: spans.New(tracer, s.traces.joins), out: out}, nil
}

// Tracer returns the tracer that creates the spans; nil if there are none.
func (t *Traces) Tracer() *spans.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// Close sends the remaining spans. It takes at most two seconds; spans not sent
// by then are lost.
func (t *Traces) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flush)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.out.lost(err)
	}
}

// quiet logs only once that spans are lost: each batch tries a dead collector
// again, and would otherwise fill the log.
type quiet struct {
	sdktrace.SpanExporter
	logger *slog.Logger
	once   sync.Once
}

func (q *quiet) ExportSpans(ctx context.Context, batch []sdktrace.ReadOnlySpan) error {
	if err := q.SpanExporter.ExportSpans(ctx, batch); err != nil {
		q.lost(err)
	}
	return nil // the library has nothing to add
}

func (q *quiet) lost(err error) {
	level := slog.LevelDebug
	q.once.Do(func() { level = slog.LevelWarn })
	q.logger.Log(context.Background(), level, "traces are lost; this is said once", "err", strings.TrimPrefix(err.Error(), "traces export: "))
}

// Package telemetry sends spans and metrics to the collector that the standard
// OpenTelemetry variables name (OTEL_EXPORTER_OTLP_ENDPOINT and the like), or nowhere
// if they name none. It is the only package that knows how these are kept and sent;
// package spans defines what is in them.
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

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/packs-mcp/packs-mcp/internal/spans"
)

// scope is the name of the instrumentation that creates spans and metrics.
const scope = "github.com/packs-mcp/packs-mcp"

// flush is how long Close waits for the collector.
const flush = 2 * time.Second

// A Sender sends spans and metrics. A nil Sender sends nothing.
type Sender struct {
	traces  *sdktrace.TracerProvider // nil: none are sent
	metrics *sdkmetric.MeterProvider // nil: none are sent
	tracer  *spans.Tracer
	lost    map[signal]*lost // :: signal → what says that it is lost; never modified
}

// Start prepares what environ (KEY=value, as from os.Environ) asks for. It
// returns nil if environ asks for nothing, or for something unsupported, which
// it logs. It connects to nothing. Spans are sent when there are some, and metrics
// once a minute.
func Start(environ []string, version string, logger *slog.Logger) *Sender {
	s, problems := read(environ)
	for _, p := range problems {
		logger.Warn(p.what, "hint", p.hint)
	}
	if s == nil {
		return nil
	}
	t, err := start(s, version, logger)
	if err != nil {
		logger.Warn("telemetry: nothing is sent", "err", err)
		return nil
	}
	if s.traces != nil {
		logger.Info("calls are traced", "to", s.traces.endpoint.Redacted())
	}
	if s.metrics != nil {
		logger.Info("calls are measured", "to", s.metrics.endpoint.Redacted())
	}
	return t
}

func start(s *settings, version string, logger *slog.Logger) (*Sender, error) {
	res, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(s.resource(version)...))
	if err != nil {
		return nil, fmt.Errorf("describing this program: %w", err)
	}
	// By default the library writes lines of its own on standard error.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Debug("telemetry", "err", err) }))
	otel.SetLogger(logr.Discard())
	t := &Sender{lost: map[signal]*lost{traces: {of: traces, logger: logger}, metrics: {of: metrics, logger: logger}}}
	tracer, joins := noop.NewTracerProvider().Tracer(scope), false
	if s.traces != nil {
		up, err := newUploader(&s.traces.target)
		if err != nil {
			return nil, err
		}
		t.traces = startTraces(s.traces, otlptrace.NewUnstarted(up), res, t.lost[traces])
		tracer, joins = t.traces.Tracer(scope, trace.WithInstrumentationVersion(version)), s.traces.joins
	}
	var meters *spans.Meters
	if s.metrics != nil {
		if t.metrics, meters, err = startMetrics(s.metrics, res, version, t.lost[metrics]); err != nil {
			t.Close()
			return nil, err
		}
	}
	t.tracer = spans.New(tracer, joins, meters)
	return t, nil
}

func startTraces(s *traceSettings, e sdktrace.SpanExporter, res *resource.Resource, l *lost) *sdktrace.TracerProvider {
	return sdktrace.NewTracerProvider(
		sdktrace.WithResource(res), sdktrace.WithSampler(s.sampler),
		sdktrace.WithBatcher(&quiet{SpanExporter: e, lost: l},
			sdktrace.WithBatchTimeout(s.batch.delay), sdktrace.WithExportTimeout(s.batch.timeout),
			sdktrace.WithMaxQueueSize(s.batch.queue), sdktrace.WithMaxExportBatchSize(s.batch.size)),
	)
}

// Tracer returns the tracer that creates spans and measures; nil if nothing is
// sent.
func (t *Sender) Tracer() *spans.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// Close sends what remains. It takes at most two seconds; what is not sent by then
// is lost.
func (t *Sender) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flush)
	defer cancel()
	var ending sync.WaitGroup
	end := func(of signal, shutdown func(context.Context) error) {
		ending.Go(func() {
			if err := shutdown(ctx); err != nil {
				t.lost[of].say(err)
			}
		})
	}
	if t.traces != nil {
		end(traces, t.traces.Shutdown)
	}
	if t.metrics != nil {
		end(metrics, t.metrics.Shutdown)
	}
	ending.Wait()
}

// quiet sends spans, and returns no error: the library has nothing to add to what
// the log says.
type quiet struct {
	sdktrace.SpanExporter
	lost *lost
}

func (q *quiet) ExportSpans(ctx context.Context, batch []sdktrace.ReadOnlySpan) error {
	if err := q.SpanExporter.ExportSpans(ctx, batch); err != nil {
		q.lost.say(err)
	}
	return nil
}

// lost logs only once that a signal is lost: each batch tries a dead collector
// again, and would otherwise fill the log.
type lost struct {
	of     signal
	logger *slog.Logger
	once   sync.Once
}

func (l *lost) say(err error) {
	level := slog.LevelDebug
	l.once.Do(func() { level = slog.LevelWarn })
	l.logger.Log(context.Background(), level, string(l.of)+" are lost; logged only once", "err", strings.TrimPrefix(err.Error(), "traces export: "))
}

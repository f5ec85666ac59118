package telemetry

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/packs-mcp/packs-mcp/internal/spans"
)

const (
	defaultInterval = time.Minute
	defaultExport   = 30 * time.Second
)

// metricSettings are the settings of metrics.
type metricSettings struct {
	target
	interval, export time.Duration // the time between two exports, and the timeout of one
	temporality      sdkmetric.TemporalitySelector
}

// metrics returns the settings of metrics, or nil to send none.
func (v variables) metrics(found *problems) *metricSettings {
	t := v.target(metrics, found)
	if t == nil {
		return nil
	}
	duration := func(name string, usual time.Duration) time.Duration {
		return v.milliseconds(name, v[name], usual, metrics, found)
	}
	s := &metricSettings{
		target: *t, temporality: sdkmetric.CumulativeTemporalitySelector,
		interval: duration("OTEL_METRIC_EXPORT_INTERVAL", defaultInterval), export: duration("OTEL_METRIC_EXPORT_TIMEOUT", defaultExport),
	}
	const name = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
	switch strings.ToLower(v[name]) {
	case "", "cumulative":
	case "delta":
		s.temporality = sdkmetric.DeltaTemporalitySelector
	case "lowmemory":
		s.temporality = sdkmetric.LowMemoryTemporalitySelector
	default:
		found.add(string(metrics), "set it to cumulative, delta or lowmemory", "%s is %q; it is cumulative instead", name, v[name])
	}
	return s
}

// startMetrics returns meters, and the provider that collects and sends what they
// measure.
func startMetrics(s *metricSettings, res *resource.Resource, version string, l *lost) (*sdkmetric.MeterProvider, *spans.Meters, error) {
	up, err := newUploader(&s.target)
	if err != nil {
		return nil, nil, err
	}
	e := &metricExporter{up: up, temporality: s.temporality, lost: l}
	provider := sdkmetric.NewMeterProvider(
		sdkmetric.WithResource(res), sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter), // no ids of traces
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(e, sdkmetric.WithInterval(s.interval), sdkmetric.WithTimeout(s.export))),
	)
	meters, err := spans.NewMeters(provider.Meter(scope, metric.WithInstrumentationVersion(version)))
	if err != nil {
		return nil, nil, fmt.Errorf("making meters: %w", err)
	}
	return provider, meters, nil
}

// A metricExporter sends metrics with OTLP over HTTP.
type metricExporter struct {
	up          *uploader
	temporality sdkmetric.TemporalitySelector
	lost        *lost
}

var _ sdkmetric.Exporter = (*metricExporter)(nil)

func (e *metricExporter) Temporality(k sdkmetric.InstrumentKind) metricdata.Temporality {
	return e.temporality(k)
}

func (e *metricExporter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

// Export sends what was collected. It returns no error: the library has nothing to
// add to what the log says.
func (e *metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	if err := e.up.upload(ctx, encodeMetrics(m)); err != nil {
		e.lost.say(err)
	}
	return nil
}

func (e *metricExporter) ForceFlush(context.Context) error { return nil }

func (e *metricExporter) Shutdown(ctx context.Context) error { return e.up.Stop(ctx) }

// encodeMetrics returns metrics in OTLP's format. The message has the same wire format as
// ExportMetricsServiceRequest, whose package needs gRPC. Only the kinds of metrics that
// package spans uses are encoded.
func encodeMetrics(m *metricdata.ResourceMetrics) *metricspb.MetricsData {
	of := &metricspb.ResourceMetrics{Resource: &resourcepb.Resource{Attributes: encodeAttributes(m.Resource.Set())}, SchemaUrl: m.Resource.SchemaURL()}
	for _, s := range m.ScopeMetrics {
		scoped := &metricspb.ScopeMetrics{Scope: &commonpb.InstrumentationScope{Name: s.Scope.Name, Version: s.Scope.Version}, SchemaUrl: s.Scope.SchemaURL}
		for _, one := range s.Metrics {
			out := &metricspb.Metric{Name: one.Name, Description: one.Description, Unit: one.Unit}
			switch data := one.Data.(type) {
			case metricdata.Sum[int64]:
				out.Data = &metricspb.Metric_Sum{Sum: &metricspb.Sum{
					AggregationTemporality: encodeTemporality(data.Temporality), IsMonotonic: data.IsMonotonic, DataPoints: encodeNumbers(data.DataPoints),
				}}
			case metricdata.Gauge[int64]:
				out.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: encodeNumbers(data.DataPoints)}}
			case metricdata.Histogram[float64]:
				out.Data = &metricspb.Metric_Histogram{Histogram: encodeHistogram(data)}
			default:
				continue
			}
			scoped.Metrics = append(scoped.Metrics, out)
		}
		of.ScopeMetrics = append(of.ScopeMetrics, scoped)
	}
	return &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{of}}
}

func encodeNumbers(points []metricdata.DataPoint[int64]) (out []*metricspb.NumberDataPoint) {
	for _, p := range points {
		out = append(out, &metricspb.NumberDataPoint{
			Attributes: encodeAttributes(&p.Attributes), StartTimeUnixNano: nanoseconds(p.StartTime), TimeUnixNano: nanoseconds(p.Time),
			Value: &metricspb.NumberDataPoint_AsInt{AsInt: p.Value},
		})
	}
	return out
}

func encodeHistogram(h metricdata.Histogram[float64]) *metricspb.Histogram {
	out := &metricspb.Histogram{AggregationTemporality: encodeTemporality(h.Temporality)}
	for _, p := range h.DataPoints {
		to := &metricspb.HistogramDataPoint{
			Attributes: encodeAttributes(&p.Attributes), StartTimeUnixNano: nanoseconds(p.StartTime), TimeUnixNano: nanoseconds(p.Time),
			Count: p.Count, Sum: &p.Sum, ExplicitBounds: p.Bounds, BucketCounts: p.BucketCounts,
		}
		if v, ok := p.Min.Value(); ok {
			to.Min = &v
		}
		if v, ok := p.Max.Value(); ok {
			to.Max = &v
		}
		out.DataPoints = append(out.DataPoints, to)
	}
	return out
}

func encodeTemporality(t metricdata.Temporality) metricspb.AggregationTemporality {
	if t == metricdata.DeltaTemporality {
		return metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	}
	return metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
}

// encodeAttributes encodes attributes as text. Those of metrics, and those that the user
// configures for this program, are text already.
func encodeAttributes(set *attribute.Set) (out []*commonpb.KeyValue) {
	for _, kv := range set.ToSlice() {
		out = append(out, &commonpb.KeyValue{Key: string(kv.Key), Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: kv.Value.String()}}})
	}
	return out
}

// nanoseconds returns a time in OTLP's format; 0 means none.
func nanoseconds(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(t.UnixNano(), 0))
}

package spans

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// Meters count and time what requests do. Each attribute has one of a few values
// that this program defines itself; there is no way to pass names of packs, their
// tools or chats. A nil Meters does nothing.
type Meters struct {
	meter       metric.Meter
	requests    metric.Float64Histogram
	active      metric.Int64UpDownCounter
	waits       metric.Float64Histogram
	decisions   metric.Int64Counter
	runs        metric.Int64Counter
	programs    metric.Float64Histogram
	unavailable metric.Int64Counter
}

// The attributes of metrics that spans have too.
const (
	keyMethod    = "mcp.method.name"
	keyErrorType = "error.type"
	keyErrorCode = "packs_mcp.error.code"
	keyDecision  = "packs_mcp.decision"
	keyChannel   = "packs_mcp.channel"
	keyCause     = "packs_mcp.run.cause"
)

// NewMeters returns meters that measure with m.
func NewMeters(m metric.Meter) (*Meters, error) {
	// The upper bounds of buckets, in seconds. OpenTelemetry's conventions for MCP
	// give those of quick; a person may take longer.
	quick := metric.WithExplicitBucketBoundaries(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
	slow := metric.WithExplicitBucketBoundaries(1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
	var errs [7]error
	t := &Meters{meter: m}
	t.requests, errs[0] = m.Float64Histogram("mcp.server.operation.duration", metric.WithUnit("s"), quick,
		metric.WithDescription("Requests, by their time from arrival to answer, which includes the time that a person took."))
	t.active, errs[1] = m.Int64UpDownCounter("packs_mcp.requests.active", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that have no answer yet."))
	t.waits, errs[2] = m.Float64Histogram("packs_mcp.gate.wait.duration", metric.WithUnit("s"), slow,
		metric.WithDescription("How long requests waited for a person."))
	t.decisions, errs[3] = m.Int64Counter("packs_mcp.decisions", metric.WithUnit("{decision}"),
		metric.WithDescription("Decisions in the audit log."))
	t.runs, errs[4] = m.Int64Counter("packs_mcp.runs", metric.WithUnit("{run}"),
		metric.WithDescription("Ends of runs in the audit log."))
	t.programs, errs[5] = m.Float64Histogram("packs_mcp.run.duration", metric.WithUnit("s"), quick,
		metric.WithDescription("How long programs ran."))
	t.unavailable, errs[6] = m.Int64Counter("packs_mcp.store_unavailable", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that were denied because the shared store could not be reached."))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return t, nil
}

// Questions reports waiting's result as the number of questions that wait for a person. It
// is called at each collection of metrics.
func (t *Tracer) Questions(waiting func() int) error {
	if t == nil || t.meters == nil {
		return nil
	}
	_, err := t.meters.meter.Int64ObservableGauge("packs_mcp.questions.waiting", metric.WithUnit("{question}"),
		metric.WithDescription("Questions that wait for a person, or whose answer waits for its call."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(waiting()))
			return nil
		}))
	return err
}

// codeUnavailable is the code of an error that means that the store that replicas
// share could not be reached.
const codeUnavailable = "store_unavailable"

// began counts a request that began.
func (m *Meters) began(method string) {
	if m != nil {
		m.active.Add(context.Background(), 1, with(keyMethod, method))
	}
}

// An end is how a request ended. Empty: unknown or none.
type end struct {
	method, tool string
	kind, code   string // of an error
	took         time.Duration
}

// ended counts a request that ended.
func (m *Meters) ended(e end) {
	if m == nil {
		return
	}
	m.active.Add(context.Background(), -1, with(keyMethod, e.method))
	m.requests.Record(context.Background(), e.took.Seconds(), with(keyMethod, e.method, "packs_mcp.tool", e.tool, keyErrorType, e.kind, keyErrorCode, e.code))
	if e.code == codeUnavailable {
		m.unavailable.Add(context.Background(), 1, with(keyMethod, e.method))
	}
}

// waited counts a wait for a person.
func (m *Meters) waited(d time.Duration) {
	if m != nil {
		m.waits.Record(context.Background(), d.Seconds())
	}
}

// wrote counts an entry that was written to the audit log.
func (m *Meters) wrote(e *audit.Entry) {
	if m == nil {
		return
	}
	switch e.Event {
	case audit.EventDecision:
		m.decisions.Add(context.Background(), 1, with(keyDecision, e.Decision, keyChannel, e.Channel))
	case audit.EventRunEnd:
		cause := with(keyCause, causeOf(e))
		m.runs.Add(context.Background(), 1, cause)
		if e.ExitCode != nil {
			m.programs.Record(context.Background(), float64(e.DurationMS)/1000, cause)
		}
	}
}

// causeOf returns why a run ended, in one word.
func causeOf(e *audit.Entry) string {
	usual := "exit"
	switch {
	case e.ExitCode == nil:
		usual = "not_started"
	case e.Signal != "":
		usual = "signal"
	case *e.ExitCode != 0:
		usual = "exit_failed"
	}
	return cmp.Or(e.Cause, usual)
}

// with returns pairs of key and text as attributes, without those with an empty text.
func with(pairs ...string) metric.MeasurementOption {
	attrs := make([]attribute.KeyValue, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			attrs = append(attrs, attribute.String(pairs[i], pairs[i+1]))
		}
	}
	return metric.WithAttributeSet(attribute.NewSet(attrs...))
}

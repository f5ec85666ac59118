package spans

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// A Recorder records decisions and runs. [audit.Log] implements it.
type Recorder interface {
	Append(audit.Entry) error
	AppendLazy(audit.Entry) error
	Failures() int
}

// Recorder returns a Recorder that writes to log, adds a span for each entry that belongs
// to a request in progress, and counts entries. Pass it to the gate as its log. A nil
// tracer returns log itself.
func (t *Tracer) Recorder(log Recorder) Recorder {
	if t == nil {
		return log
	}
	return &recorder{t, log}
}

type recorder struct {
	tracer *Tracer
	log    Recorder
}

func (r *recorder) Append(e audit.Entry) error     { return r.write(e, r.log.Append, true) }
func (r *recorder) AppendLazy(e audit.Entry) error { return r.write(e, r.log.AppendLazy, false) }

func (r *recorder) Failures() int { return r.log.Failures() }

// write writes a line, and counts it if it was written. onDisk says that write
// returns only once the line is on disk.
func (r *recorder) write(e audit.Entry, write func(audit.Entry) error, onDisk bool) error {
	err := r.spanned(e, write, onDisk)
	if err == nil {
		r.tracer.meters.wrote(&e)
	}
	return err
}

// spanned writes a line, as a step of its request.
func (r *recorder) spanned(e audit.Entry, write func(audit.Entry) error, onDisk bool) error {
	s := r.tracer.callSpan(e.Call)
	if s == nil {
		return write(e)
	}
	step := s.step("audit")
	step.span.SetAttributes(attribute.String("packs_mcp.audit.event", string(e.Event)), attribute.Bool("packs_mcp.audit.on_disk", onDisk))
	err := write(e)
	if err != nil {
		step.span.SetStatus(codes.Error, "the line was not written")
	}
	step.span.End()
	if err == nil && e.Decision != "" {
		s.decided(e.Decision, e.Channel, e.Sandbox)
	}
	return err
}

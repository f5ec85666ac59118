package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/lmittmann/tint"

	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// Logger returns a logger that writes only to standard error, since standard
// output is for the protocol. It removes secrets from what it writes.
func (env *Env) Logger(l config.Log, secrets ...string) *slog.Logger {
	return newLogger(env.Stderr, l, IsTerminal(env.Stderr), env.Screen(env.Stderr).Colors(), secrets...)
}

func newLogger(w io.Writer, l config.Log, terminal, colors bool, secrets ...string) *slog.Logger {
	format := l.Format
	if format == config.FormatAuto {
		format = config.FormatText
		if terminal {
			format = config.FormatPretty
		}
	}
	var h slog.Handler
	switch format {
	case config.FormatJSON:
		h = slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l.Level})
	case config.FormatPretty:
		h = tint.NewTextHandler(w, &tint.Options{Level: l.Level, TimeFormat: time.TimeOnly, NoColor: !colors})
	default:
		h = slog.NewTextHandler(w, &slog.HandlerOptions{Level: l.Level})
	}
	var marks []string
	for _, s := range secrets {
		marks = append(marks, s, "[redacted]")
	}
	return slog.New(&safeHandler{h, strings.NewReplacer(marks...)})
}

// A safeHandler escapes characters in a message and its values that could
// control a terminal or deceive a reader, since file names and text from packs
// get there. It removes secrets.
type safeHandler struct {
	next   slog.Handler
	hidden *strings.Replacer
}

func (h *safeHandler) line(text string) string { return safetext.Line(h.hidden.Replace(text)) }

func (h *safeHandler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h *safeHandler) Handle(ctx context.Context, r slog.Record) error {
	safe := slog.NewRecord(r.Time, r.Level, h.line(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		safe.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, safe)
}

func (h *safeHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	safe := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		safe[i] = h.attr(a)
	}
	return &safeHandler{h.next.WithAttrs(safe), h.hidden}
}

func (h *safeHandler) WithGroup(name string) slog.Handler {
	return &safeHandler{h.next.WithGroup(h.line(name)), h.hidden}
}

func (h *safeHandler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		v = slog.StringValue(h.line(v.String()))
	case slog.KindAny:
		v = slog.StringValue(h.line(fmt.Sprint(v.Any())))
	case slog.KindGroup:
		group := v.Group()
		safe := make([]slog.Attr, len(group))
		for i, a := range group {
			safe[i] = h.attr(a)
		}
		v = slog.GroupValue(safe...)
	}
	return slog.Attr{Key: h.line(a.Key), Value: v}
}

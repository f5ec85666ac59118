package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// hostile controls a terminal, reverses text and hides characters.
const hostile = "a\x1b]0;PWN\x07b\u202ec\u009bd\U000e0041e\u3164f"

func TestLogsCannotDriveATerminal(t *testing.T) {
	for _, format := range []string{config.FormatPretty, config.FormatText, config.FormatJSON} {
		var b bytes.Buffer
		log := newLogger(&b, config.Log{Format: format}, false, false)
		log.With("with", hostile).WithGroup("g").Info(hostile, "text", hostile, "err", errors.New(hostile), slog.Group("in", "x", hostile))
		if n := strings.Count(b.String(), "\n"); n != 1 {
			t.Errorf("%s: one message has %d lines", format, n)
		}
		if r := safetext.Inspect(bytes.TrimSuffix(b.Bytes(), []byte("\n"))); r.Total() != 0 {
			t.Errorf("%s: a log line has %s: %q", format, r, b.String())
		}
		if n := strings.Count(b.String(), "PWN"); n != 5 {
			t.Errorf("%s: the text is there %d times, want 5: %q", format, n, b.String())
		}
	}
}

func TestLogsLeaveTokensOut(t *testing.T) {
	const token = "s3cret-s3cret-s3cret"
	for _, format := range []string{config.FormatPretty, config.FormatText, config.FormatJSON} {
		var b bytes.Buffer
		log := newLogger(&b, config.Log{Format: format}, false, false, "another", token)
		log.With("with", token).WithGroup(token).Info("a "+token, token, "x", "text", "x"+token+"x", "err", errors.New(token), slog.Group("in", "x", token))
		if n := strings.Count(b.String(), "[redacted]"); n < 6 || strings.Contains(b.String(), token) {
			t.Errorf("%s: %q", format, b.String())
		}
	}
}

func TestJSONIsSafeToLookAt(t *testing.T) {
	in := map[string]string{"k" + hostile: hostile, "plain": "é 漢字 👍 <&>"}
	var b bytes.Buffer
	if err := PrintJSON(&b, in); err != nil {
		t.Fatal(err)
	}
	if r := safetext.Inspect(b.Bytes()); r.Total() != 0 {
		t.Errorf("printJSON has %s: %q", r, b.String())
	}
	if !strings.Contains(b.String(), "é 漢字 👍 <&>") {
		t.Errorf("printJSON escapes ordinary text: %q", b.String())
	}
	var out map[string]string
	if err := json.Unmarshal(b.Bytes(), &out); err != nil || out["plain"] != in["plain"] || out["k"+hostile] != hostile {
		t.Errorf("printJSON does not read back: %v %q", err, out)
	}
}

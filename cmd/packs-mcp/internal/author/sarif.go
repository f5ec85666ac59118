package author

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"slices"
	"unicode/utf16"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/sarif"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
)

const homepage = "https://github.com/packs-mcp/packs-mcp"

// sarifOf returns problems as SARIF. Each code is a rule.
func sarifOf(version string, problems []diag.Diagnostic) *sarif.Log {
	tool := sarif.Tool{Name: "packs-mcp", Version: version, URI: homepage}
	var codes []string
	for _, d := range problems {
		codes = append(codes, d.Code)
	}
	slices.Sort(codes)
	for _, code := range slices.Compact(codes) {
		page := "diagnostics.md#" + code
		if findings.HasRule(code) {
			page = "scan.md"
		}
		tool.Rules = append(tool.Rules, sarif.Rule{ID: code, URI: homepage + "/blob/main/docs/reference/" + page})
	}
	var results []sarif.Result
	for _, d := range problems {
		text := d.Message
		if d.Hint != "" {
			text += "\nHint: " + d.Hint
		}
		column := 0
		if d.Line > 0 {
			column = utf16Column(d.File, d.Line, d.Column)
		}
		results = append(results, sarif.Result{Rule: d.Code, Level: levelOf(d.Severity), Message: text, File: d.File, Line: d.Line, Column: column})
	}
	return sarif.New(tool, results)
}

func levelOf(s diag.Severity) sarif.Level {
	switch s {
	case diag.Error:
		return sarif.Error
	case diag.Warning:
		return sarif.Warning
	default:
		return sarif.Note
	}
}

// maxLine is how much of a file is read to find a column, in bytes.
const maxLine = 1 << 20

// utf16Column converts a column in bytes to the units that editors use; 0 if it is
// not known.
func utf16Column(file string, line, column int) int {
	if column <= 1 {
		return max(column, 0)
	}
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	f, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	r := bufio.NewReader(io.LimitReader(f, maxLine))
	var text []byte
	for range line {
		if text, err = r.ReadBytes('\n'); err != nil && len(text) == 0 {
			return 0
		}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if column-1 > len(text) {
		return 0
	}
	return len(utf16.Encode([]rune(string(text[:column-1])))) + 1
}

package author

import (
	"bufio"
	"bytes"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"unicode/utf16"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// A sarifLog is what validate --sarif prints: SARIF 2.1.0, as far as it is needed.
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool       sarifTool     `json:"tool"`
	ColumnKind string        `json:"columnKind"`
	Results    []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	Version        string      `json:"version"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID      string `json:"id"`
	HelpURI string `json:"helpUri"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	RuleIndex int             `json:"ruleIndex"`
	Level     string          `json:"level"` // error, warning or note
	Message   sarifMessage    `json:"message"`
	Locations []sarifLocation `json:"locations"`
}

type sarifMessage struct {
	Text string `json:"text"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
}

const homepage = "https://github.com/packs-mcp/packs-mcp"

// sarifOf returns problems as SARIF. Each code is a rule.
func sarifOf(version string, problems []diag.Diagnostic) *sarifLog {
	driver := sarifDriver{Name: "packs-mcp", Version: version, InformationURI: homepage, Rules: []sarifRule{}}
	var codes []string
	for _, d := range problems {
		codes = append(codes, d.Code)
	}
	slices.Sort(codes)
	codes = slices.Compact(codes)
	for _, code := range codes {
		driver.Rules = append(driver.Rules, sarifRule{ID: code, HelpURI: homepage + "/blob/main/docs/reference/diagnostics.md#" + code})
	}
	run := sarifRun{Tool: sarifTool{driver}, ColumnKind: "utf16CodeUnits", Results: []sarifResult{}}
	for _, d := range problems {
		text := d.Message
		if d.Hint != "" {
			text += "\nHint: " + d.Hint
		}
		at := sarifPhysical{Artifact: sarifArtifact{uriOf(d.File)}}
		if d.Line > 0 {
			at.Region = &sarifRegion{StartLine: d.Line, StartColumn: utf16Column(d.File, d.Line, d.Column)}
		}
		index, _ := slices.BinarySearch(codes, d.Code)
		run.Results = append(run.Results, sarifResult{
			RuleID: d.Code, RuleIndex: index, Level: levelOf(d.Severity), Message: sarifMessage{text}, Locations: []sarifLocation{{at}},
		})
	}
	return &sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}

func levelOf(s diag.Severity) string {
	switch s {
	case diag.Error:
		return "error"
	case diag.Warning:
		return "warning"
	default:
		return "note"
	}
}

// uriOf returns a path as a URI: relative to the working folder, as code scanning wants
// it, or a file's.
func uriOf(path string) string {
	slashed := filepath.ToSlash(path)
	if !filepath.IsAbs(path) {
		return (&url.URL{Path: slashed}).String()
	}
	if runtime.GOOS == "windows" {
		slashed = "/" + slashed
	}
	return (&url.URL{Scheme: "file", Path: slashed}).String()
}

// maxLine is how much of a file is read to find a column.
const maxLine = 1 << 20

// utf16Column returns a column in bytes as editors count it; 0 if it is not known.
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

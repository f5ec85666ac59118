// Package sarif makes logs in the Static Analysis Results Interchange Format,
// version 2.1.0, which code hosts and editors read.
//
// It makes a value, and the caller prints it as JSON. It reads no logs, and it
// has only what this program says: one tool, its rules, and results with at most one
// place each.
package sarif

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// A Level says how much a result matters.
type Level string

// The levels.
const (
	Error   Level = "error"
	Warning Level = "warning"
	Note    Level = "note"
)

// A Tool is the program that found the results.
type Tool struct {
	Name, Version string
	URI           string // of its documentation
	Rules         []Rule // all of them, or those that a result names
}

// A Rule is a kind of result.
type Rule struct {
	ID    string
	Short string // what it finds, in a sentence
	Help  string // what to do about it
	URI   string // where it is explained; empty for nowhere
	Level Level  // of a result, unless that says otherwise; empty: that always does
	// Score is from 0.0 to 10.0 for a rule about security, which code hosts sort by;
	// empty for any other.
	Score string
}

// A Result is one finding.
type Result struct {
	Rule    string // the id of a rule of the tool
	Level   Level
	Message string
	File    string // as the user would name it from the working folder; empty for none
	Line    int    // from 1; 0 when the result is about the whole file
	Column  int    // from 1, in units of UTF-16; 0 when it is not known
	Snippet string // what was found there
	// Fingerprint tells the result from others, whatever line it moves to; empty for
	// none.
	Fingerprint string
	Accepted    string // why a person accepted it; empty when nobody did
}

// A Log is a whole file.
type Log struct {
	Schema  string `json:"$schema"`
	Version string `json:"version"`
	Runs    []run  `json:"runs"`
}

type run struct {
	Tool       tool     `json:"tool"`
	Results    []result `json:"results"`
	ColumnKind string   `json:"columnKind"`
}

type tool struct {
	Driver driver `json:"driver"`
}

type driver struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	URI     string `json:"informationUri,omitempty"`
	Rules   []rule `json:"rules"`
}

type rule struct {
	ID            string         `json:"id"`
	URI           string         `json:"helpUri,omitempty"`
	Short         *message       `json:"shortDescription,omitempty"`
	Help          *message       `json:"help,omitempty"`
	Configuration *configuration `json:"defaultConfiguration,omitempty"`
	Properties    map[string]any `json:"properties,omitempty"`
}

type configuration struct {
	Level Level `json:"level"`
}

type message struct {
	Text string `json:"text"`
}

type result struct {
	RuleID       string            `json:"ruleId"`
	RuleIndex    *int              `json:"ruleIndex,omitempty"`
	Level        Level             `json:"level"`
	Message      message           `json:"message"`
	Locations    []location        `json:"locations,omitempty"`
	Fingerprints map[string]string `json:"partialFingerprints,omitempty"`
	Suppressions []suppression     `json:"suppressions,omitempty"`
}

type location struct {
	Physical physical `json:"physicalLocation"`
}

type physical struct {
	Artifact artifact `json:"artifactLocation"`
	Region   *region  `json:"region,omitempty"`
}

type artifact struct {
	URI string `json:"uri"`
}

type region struct {
	Line    int      `json:"startLine"`
	Column  int      `json:"startColumn,omitempty"`
	Snippet *message `json:"snippet,omitempty"`
}

type suppression struct {
	Kind          string `json:"kind"`
	Justification string `json:"justification"`
}

// fingerprint is the name of our fingerprints. It has a version, as the format asks.
const fingerprint = "packsMcp/v1"

// New makes the log of one run of a tool.
func New(t Tool, results []Result) *Log {
	r := run{
		Tool:       tool{driver{Name: t.Name, Version: t.Version, URI: t.URI, Rules: []rule{}}},
		Results:    []result{}, // a run without results has an empty list; without a list, it failed
		ColumnKind: "utf16CodeUnits",
	}
	for _, of := range t.Rules {
		made := rule{ID: of.ID, URI: of.URI}
		if of.Short != "" {
			made.Short = &message{of.Short}
		}
		if of.Help != "" {
			made.Help = &message{of.Help}
		}
		if of.Level != "" {
			made.Configuration = &configuration{of.Level}
		}
		if of.Score != "" {
			made.Properties = map[string]any{"tags": []string{"security"}, "security-severity": of.Score}
		}
		r.Tool.Driver.Rules = append(r.Tool.Driver.Rules, made)
	}
	for _, of := range results {
		r.Results = append(r.Results, resultOf(of, t.Rules))
	}
	return &Log{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []run{r}}
}

func resultOf(of Result, rules []Rule) result {
	made := result{RuleID: of.Rule, Level: of.Level, Message: message{of.Message}}
	if i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == of.Rule }); i >= 0 {
		made.RuleIndex = &i
	}
	if of.File != "" {
		at := physical{Artifact: artifact{uri(of.File)}}
		if of.Line > 0 {
			at.Region = &region{Line: of.Line, Column: of.Column}
			if of.Snippet != "" {
				at.Region.Snippet = &message{of.Snippet}
			}
		}
		made.Locations = []location{{at}}
	}
	if of.Fingerprint != "" {
		made.Fingerprints = map[string]string{fingerprint: of.Fingerprint}
	}
	if of.Accepted != "" {
		made.Suppressions = []suppression{{"external", of.Accepted}}
	}
	return made
}

// uri returns a path as a reference: a relative one stays relative, which is to the
// working folder.
func uri(file string) string {
	slashes := filepath.ToSlash(file)
	if !filepath.IsAbs(file) {
		ref := (&url.URL{Path: slashes}).EscapedPath()
		if first, _, _ := strings.Cut(ref, "/"); strings.Contains(first, ":") {
			return "./" + ref // or the first part would be a scheme
		}
		return ref
	}
	if !strings.HasPrefix(slashes, "/") {
		slashes = "/" + slashes // C:/…
	}
	return (&url.URL{Scheme: "file", Path: slashes}).String()
}

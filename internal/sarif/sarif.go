// Package sarif makes logs in the Static Analysis Results Interchange Format, version
// 2.1.0, which code hosts and editors read.
//
// It returns a value that the caller encodes as JSON. It reads no logs, and supports only
// what this program needs: one tool, its rules, and results with at most one location.
package sarif

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// A Level is the severity of a result.
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
	Rules         []Rule // all of them, or those that results name
}

// A Rule is a kind of result.
type Rule struct {
	ID    string
	Short string // what it finds, in a sentence
	Help  string // what to do about a result
	URI   string // where it is explained; empty for nowhere
	Level Level  // of its results; empty: each result says it
	// Score is the severity of a security rule from 0.0 to 10.0, by which code hosts sort;
	// empty for other rules.
	Score string
}

// A Result is one finding.
type Result struct {
	Rule    string // the id of a rule of the tool
	Level   Level
	Message string
	File    string // as the user would name it from the working folder; empty for none
	Line    int    // from 1; 0 if the result is about the whole file
	Column  int    // from 1, in UTF-16 code units; 0 if unknown
	Snippet string // the text found there
	// Fingerprint identifies the result even if it moves to another line; empty for none.
	Fingerprint string
	Accepted    string // why a person accepted it; empty if nobody did
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

// fingerprint is the name of our fingerprints, with a version as the format demands.
const fingerprint = "packsMcp/v1"

// New makes the log of one run of a tool.
func New(t Tool, results []Result) *Log {
	r := run{
		Tool:       tool{driver{Name: t.Name, Version: t.Version, URI: t.URI, Rules: []rule{}}},
		Results:    []result{}, // an empty list means no results; a missing list means that the run failed
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

// uri returns a path as a URI reference. A relative path stays relative to the working
// folder.
func uri(file string) string {
	slashes := filepath.ToSlash(file)
	if !filepath.IsAbs(file) {
		ref := (&url.URL{Path: slashes}).EscapedPath()
		if first, _, _ := strings.Cut(ref, "/"); strings.Contains(first, ":") {
			return "./" + ref // otherwise the first part could be read as a scheme
		}
		return ref
	}
	if !strings.HasPrefix(slashes, "/") {
		slashes = "/" + slashes // C:/…
	}
	return (&url.URL{Scheme: "file", Path: slashes}).String()
}

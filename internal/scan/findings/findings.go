// Package findings has what the scan of a pack results in: the rules, findings with their
// hashes, reports, and the policy with which a person changes severities and accepts
// findings.
//
// It examines no packs; package scan does. What a finding leads to, its caller decides.
package findings

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/tokens"
)

// A Severity says how much a finding matters. The zero value is the highest, so that
// a forgotten severity lets nothing pass.
type Severity int

// The severities.
const (
	Critical Severity = iota // only attacks look like this
	High                     // a person must look at it before the pack is used
	Medium                   // worth a look; often there is a good reason
	Low                      // a habit that could be better
	Info                     // what the pack asks for
)

// Severities returns the names of all severities, the highest first.
func Severities() []string { return []string{"critical", "high", "medium", "low", "info"} }

func (s Severity) String() string { return Severities()[s] }

// MarshalText returns the name, for JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseSeverity returns the severity with a name.
func ParseSeverity(name string) (s Severity, ok bool) {
	i := slices.Index(Severities(), name)
	return Severity(max(i, 0)), i >= 0
}

// AtLeast reports whether s matters as much as other, or more.
func (s Severity) AtLeast(other Severity) bool { return s <= other }

// A Finding is one thing in a pack that a person should know about. Its texts are
// safe to show: they went through package safetext, and known tokens are removed.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Path     string   `json:"path"`            // in the folder, with slashes; shown with safetext
	Line     int      `json:"line,omitempty"`  // from 1; 0 for the whole file
	Tool     string   `json:"tool,omitempty"`  // the declared tool that it is about
	Quote    string   `json:"quote,omitempty"` // what was found there
	Why      string   `json:"why"`
	Fix      string   `json:"fix"`
	Hash     string   `json:"hash"` // see [Report]
	// Accepted is a person's reason for accepting it; empty if not accepted.
	Accepted string `json:"accepted,omitempty"`
}

// MaxQuote is how many characters a quotation has at most.
const MaxQuote = 160

// Bounds on the findings of one rule.
const (
	maxOfFile = 20  // findings in one file
	maxOfPack = 200 // findings in all files
)

// A Collector gathers the findings of one folder. Findings beyond a bound are not
// lost: one more finding, with a hash over all of them, represents them. So accepted
// findings cannot hide new ones.
type Collector struct {
	found []Finding
	seen  map[string]int // :: hash of an earlier finding → its index in found, or -1
	count map[string]int // :: rule, or rule and path → findings
	rest  map[string]*rest
}

type rest struct {
	first Finding
	hash  []byte // of all hashes so far
	n     int
}

// NewCollector returns a Collector without findings.
func NewCollector() *Collector {
	return &Collector{seen: make(map[string]int), count: make(map[string]int), rest: make(map[string]*rest)}
}

// A Hit is the result of a check, before it becomes a Finding.
type Hit struct {
	Rule     string
	Severity Severity
	Path     string
	Line     int
	Tool     string
	Quote    string // as in the file
	Matched  []byte // the hashed bytes; nil: Quote
	Note     string // precedes the rule's own sentence; for facts about this place
}

// Add turns a hit into a finding, unless there is one with the same hash.
func (c *Collector) Add(h Hit) {
	r := RuleOf(h.Rule)
	matched := h.Matched
	if matched == nil {
		matched = []byte(h.Quote)
	}
	f := Finding{
		Rule: h.Rule, Severity: h.Severity, Path: h.Path, Line: h.Line, Tool: safetext.Line(h.Tool),
		Quote: Quote(h.Quote), Why: r.Why, Fix: r.Fix, Hash: hashOf(h.Rule, h.Path, matched),
	}
	if h.Note != "" {
		f.Why = h.Note + " " + f.Why
	}
	if i, there := c.seen[f.Hash]; there {
		if i >= 0 && f.Severity < c.found[i].Severity {
			// The same words can occur in an example and then be meant seriously.
			c.found[i].Severity, c.found[i].Line = f.Severity, f.Line
		}
		return
	}
	c.seen[f.Hash] = -1
	key := h.Rule + "\x00" + h.Path
	if c.count[key] < maxOfFile && c.count[h.Rule] < maxOfPack {
		c.count[key]++
		c.count[h.Rule]++
		c.seen[f.Hash] = len(c.found)
		c.found = append(c.found, f)
		return
	}
	if c.count[key] < maxOfFile {
		key = h.Rule // the pack's bound
	}
	more := c.rest[key]
	if more == nil {
		more = &rest{first: f}
		c.rest[key] = more
	}
	if f.Severity < more.first.Severity {
		more.first.Severity = f.Severity
	}
	sum := sha256.Sum256(append(more.hash, f.Hash...))
	more.hash = sum[:]
	more.n++
}

// Findings returns all findings, worst first, then by place.
func (c *Collector) Findings() []Finding {
	for _, more := range c.rest {
		f := more.first
		if more.n > 1 {
			f.Quote = fmt.Sprintf("%s … and %d more of this rule", f.Quote, more.n-1)
			f.Hash = hashOf(f.Rule, f.Path, more.hash)
		}
		c.found = append(c.found, f)
	}
	c.rest = make(map[string]*rest)
	sortFindings(c.found)
	return c.found
}

// sortFindings puts the worst first, and then orders by place.
func sortFindings(all []Finding) {
	slices.SortFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Hash, b.Hash))
	})
}

// hashOf returns the hash by which a person accepts a finding. Each part is written
// with its length, so that no two findings have the same bytes.
func hashOf(rule, path string, matched []byte) string {
	h := sha256.New()
	for _, part := range []string{rule, path} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		io.WriteString(h, part)
	}
	h.Write(matched)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Quote makes a pack's text safe and short enough to show.
func Quote(s string) string {
	s = tokens.Hide(strings.ToValidUTF8(cut(s, 4*MaxQuote), "\ufffd"))
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) > MaxQuote {
		s = string([]rune(s)[:MaxQuote-1]) + "…"
	}
	return safetext.Line(s)
}

// cut returns at most n bytes of s.
func cut(s string, n int) string { return s[:min(n, len(s))] }

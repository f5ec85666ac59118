package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of agents into docs/reference/clients.md")

// The rows of the table in docs/reference/clients.md.
const (
	factVersion      = "version"
	factFirst        = "First message"
	factProtocol     = "Protocol version"
	factTools        = "Our tools in the first request to its model"
	factInstructions = "Our instructions in it"
	factLists        = "Lists the tools again when they change"
	factReads        = "Its model reads a description that changed"
	factError        = "Its model reads an error"
	factForms        = "Forms that it declares"
	factAlone        = "Without a person, answers a form with"
	factWindow       = "Shows forms in a terminal"
	factStays        = "A form that is answered elsewhere"
	factHolds        = "Waits for a call"
	factKilled       = "When the server was killed"
	factAsks         = "Also asks for"
)

// order is the order of the rows.
var order = []string{
	factFirst, factProtocol, factTools, factInstructions, factLists, factReads, factError, factForms, factAlone, factWindow, factStays, factHolds, factKilled, factAsks,
}

// facts record what an agent was seen to do.
type facts struct {
	agent agent

	mu    sync.Mutex
	known map[string]string // :: row → cell
}

// fact records a fact. Steps that observe the same fact must agree.
func (f *facts) fact(t *testing.T, row, cell string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil {
		f.known = make(map[string]string)
	}
	if was, known := f.known[row]; known && was != cell {
		t.Errorf("%s: %s: %q in one step and %q in another", f.agent.name, row, was, cell)
	}
	f.known[row] = cell
}

func (s *stage) fact(row, cell string) {
	s.t.Helper()
	s.facts.fact(s.t, row, cell)
}

// measure records what a complete conversation over stdio shows about the agent.
func (s *stage) measure() {
	w := s.wireOf()
	from := w.from("client")
	if len(from) == 0 {
		s.t.Error("the agent sent the server nothing")
		return
	}
	version, declared, asks := told(from)
	s.fact(factFirst, "`"+from[0].Method+"`")
	s.fact(factProtocol, version)
	s.fact(factForms, orElse(declared, "none"))
	s.fact(factAsks, orElse(strings.Join(asks, ", "), "nothing"))
	s.fact(factLists, map[bool]string{true: "yes", false: "no"}[w.count("client", "tools/list") > 1])

	first := s.m.turns()[0]
	size := 0
	for _, tool := range first.tools {
		if strings.HasPrefix(tool.full(), s.prefix) {
			size += tool.bytes
		}
	}
	if size == 0 {
		s.fact(factTools, "their names")
	} else {
		s.fact(factTools, fmt.Sprintf("all %d, in %d bytes", len(first.names()), size))
	}
	s.fact(factInstructions, instructed(w.instructions(), first.text))
	for _, turn := range s.m.turns() {
		if len(turn.results) == 2 { // of list, and of a missing pack
			s.fact(factError, reads(turn.results[1].text))
		}
	}
}

// told returns what a client declared: the protocol version, the kinds of forms it shows,
// and what it requests besides tools.
func told(all []message) (version, forms string, asks []string) {
	for _, m := range all {
		var p struct {
			Version      string       `json:"protocolVersion"`
			Capabilities capabilities `json:"capabilities"`
			Meta         struct {
				Version      string       `json:"io.modelcontextprotocol/protocolVersion"`
				Capabilities capabilities `json:"io.modelcontextprotocol/clientCapabilities"`
			} `json:"_meta"`
		}
		if json.Unmarshal(m.Params, &p) == nil && p.Version+p.Meta.Version != "" {
			version, forms = p.Version+p.Meta.Version, p.Capabilities.forms()+p.Meta.Capabilities.forms()
		}
		what, list, _ := strings.Cut(m.Method, "/")
		if list == "list" && what != "tools" && !slices.Contains(asks, what) {
			asks = append(asks, what)
		}
	}
	slices.Sort(asks)
	return version, forms, asks
}

// capabilities are a client's capabilities that concern forms.
type capabilities struct {
	Elicitation map[string]json.RawMessage `json:"elicitation"`
}

func (c capabilities) forms() string {
	if c.Elicitation == nil {
		return ""
	}
	var kinds []string
	for kind := range c.Elicitation {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return orElse(strings.Join(kinds, ", "), "form")
}

// instructed describes how much of the server's instructions a text contains. Agents indent
// and trim them.
func instructed(instructions, text string) string {
	plain := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if strings.Contains(plain(text), plain(instructions)) {
		return fmt.Sprintf("all %d bytes", len(instructions))
	}
	return "none"
}

// reads describes what became of an error in a model's text.
func reads(text string) string {
	switch n := strings.Count(unescaped(text), `"code":"not_found"`); n {
	case 1:
		return "once"
	case 2:
		return fmt.Sprintf("twice, in %d bytes", len(text))
	default:
		return fmt.Sprintf("%d times", n)
	}
}

const (
	clientsPage = "../../docs/reference/clients.md"
	tableBegin  = "<!-- The table is written by: make agents ARGS=-update -->\n"
	tableEnd    = "<!-- end of the table -->\n"
)

// document compares the table in docs/reference/clients.md with what the agents were seen to
// do, or writes the table.
func document(t *testing.T, seen []*facts) {
	t.Helper()
	if t.Failed() {
		return
	}
	for _, f := range seen {
		for _, row := range append([]string{factVersion}, order...) {
			if f.known[row] == "" {
				absent(t, "agents", f.agent.name+" was not driven through every step, so "+clientsPage+" is not compared")
			}
		}
	}
	page, err := os.ReadFile(clientsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableBegin)
	table, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", clientsPage, tableBegin, tableEnd)
	}
	want := markdown(seen)
	if *update {
		if err := os.WriteFile(clientsPage, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("the table of %s is not what the agents do; read the difference, then run make agents ARGS=-update (-what they do +the page):\n%s", clientsPage, diff)
	}
}

// markdown returns the table.
func markdown(seen []*facts) string {
	var b strings.Builder
	b.WriteString("\n| |")
	for _, f := range seen {
		fmt.Fprintf(&b, " %s %s |", f.agent.name, f.known[factVersion])
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(seen)) + "\n")
	for _, row := range order {
		fmt.Fprintf(&b, "| %s |", row)
		for _, f := range seen {
			fmt.Fprintf(&b, " %s |", f.known[row])
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	return b.String()
}

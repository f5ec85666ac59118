package runcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/approve"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/tour"
)

// terminal is the guide of a tour: it prints, and asks on the terminal.
type terminal struct {
	out     *cli.Screen
	keys    *cli.Keyboard          // nil: there is nobody to ask
	approve bool                   // approve every call without asking
	ask     bool                   // somebody can be asked
	pending func() []queue.Pending // returns the server's open questions

	called  string   // the tool of the current call
	failed  []string // calls that failed but were not denied
	unasked bool     // a call was denied because there was nobody to ask
}

// begin says what the person is about to see.
func (t *terminal) begin() {
	fmt.Fprintln(t.out, "This is a client, and it uses packs the way a model would. You are asked as you would be.")
}

// end says what to do next, and returns an error if the tour did not go as it should.
func (t *terminal) end() error {
	if len(t.failed) > 0 {
		return cli.WithHint(fmt.Errorf("this failed: %s", strings.Join(t.failed, ", ")),
			"what is printed above says why; packs-mcp doctor looks at the rest of this machine")
	}
	if t.unasked {
		return cli.WithHint(errors.New("calls were denied, since there is no terminal to ask on"), "--yes approves every call")
	}
	t.Tell("")
	fmt.Fprintf(t.out, "Now connect it to your client: %s\n", t.out.Style(cli.Bold, "packs-mcp setup"))
	return nil
}

func (t *terminal) heading(text string) {
	switch {
	case t.out.Plain():
		fmt.Fprintf(t.out, "%s.\n", text)
	case t.out.Colors():
		fmt.Fprintf(t.out, "\n%s\n", t.out.Style(cli.Bold, text))
	default:
		fmt.Fprintf(t.out, "\n== %s\n", text)
	}
}

func (t *terminal) Stage(number int, title string) {
	if t.out.Plain() {
		t.heading(fmt.Sprintf("Step %d of 5. %s", number, title))
		return
	}
	t.heading(fmt.Sprintf("%d. %s", number, title))
}

// Tell prints a sentence, or an empty line if text is empty.
func (t *terminal) Tell(text string) {
	if text != "" || !t.out.Plain() {
		fmt.Fprintln(t.out, safetext.Text(text))
	}
}

func (t *terminal) Met(protocol string, tools []string, instructions string) {
	t.Tell(fmt.Sprintf("Connected with MCP %s. The model has %d tools, and %d characters of instructions.", protocol, len(tools), len(instructions)))
}

// shownLines is how many lines of a result are printed, and shownLine how much of
// each.
const (
	shownLines = 8
	shownLine  = 200
)

func (t *terminal) Calling(tool string, arguments map[string]any) {
	t.called = safetext.Line(tool)
	args, err := json.Marshal(arguments)
	if err != nil {
		args = []byte("?")
	}
	if t.out.Plain() {
		fmt.Fprintf(t.out, "The model calls %s with %s.\n", tool, safetext.Line(string(args)))
		return
	}
	fmt.Fprintf(t.out, "%s %s\n", t.out.Style(cli.Cyan, "-> "+tool), safetext.Line(string(args)))
}

func (t *terminal) Result(result map[string]any, failed bool) {
	var code, message, hint string
	if e, ok := result["error"].(map[string]any); ok {
		code, _ = e["code"].(string)
		message, _ = e["message"].(string)
		hint, _ = e["hint"].(string)
	}
	status, isRun := result["exit_code"].(float64)
	switch {
	case code == "denied" && t.ask:
	case code == "denied" && !t.approve:
		t.unasked = true
	case failed || isRun && status != 0:
		failed = true
		t.failed = append(t.failed, t.called)
	}
	if failed {
		t.line(t.out.Style(cli.Red, "<- failed:"), "It failed:")
	}
	switch {
	case code == "denied":
		fmt.Fprintln(t.out, t.indent()+"denied: "+safetext.Line(message))
		if hint != "" {
			fmt.Fprintln(t.out, t.indent()+"hint: "+safetext.Line(hint))
		}
	case !failed && result["packs"] != nil:
		t.packs(result)
	case !failed && result["tools"] != nil && content(result) == "":
	case content(result) != "":
		t.lines(content(result))
	default:
		raw, err := json.MarshalIndent(result, "", "  ")
		if err != nil {
			raw = []byte("?")
		}
		t.lines(string(raw))
	}
}

// packs prints the packs of a list as a model gets them.
func (t *terminal) packs(result map[string]any) {
	list, _ := result["packs"].([]any)
	var table cli.Table
	const shown, about = 10, 90
	for _, p := range list[:min(len(list), shown)] {
		p, _ := p.(map[string]any)
		id, _ := p["pack_id"].(string)
		description, _ := p["description"].(string)
		if t.out.Plain() {
			fmt.Fprintf(t.out, "%s: %s\n", safetext.Line(id), cli.OneLine(description, len(description)))
			continue
		}
		table.Row(t.indent()+t.out.Style(cli.Bold, safetext.Line(id)), cli.OneLine(description, about))
	}
	_ = table.Print(t.out)
	if more := len(list) - shown; more > 0 {
		fmt.Fprintf(t.out, "%sand %d more\n", t.indent(), more)
	}
}

// indent returns the indentation of text from others; empty for a screen reader.
func (t *terminal) indent() string {
	if t.out.Plain() {
		return ""
	}
	return "   "
}

// line prints drawn, or said if a screen reader is used.
func (t *terminal) line(drawn, said string) {
	if t.out.Plain() {
		drawn = said
	}
	fmt.Fprintln(t.out, drawn)
}

// lines prints the beginning of a text from others.
func (t *terminal) lines(text string) {
	indent := t.indent()
	all := strings.Split(strings.Trim(safetext.Text(text), "\n"), "\n")
	all = slices.DeleteFunc(all, func(line string) bool { return strings.TrimSpace(line) == "" })
	for _, line := range all[:min(len(all), shownLines)] {
		if r := []rune(line); len(r) > shownLine {
			line = string(r[:shownLine-1]) + "…"
		}
		if t.out.Plain() {
			line = strings.TrimSpace(line)
		}
		fmt.Fprintln(t.out, indent+strings.TrimRight(line, " "))
	}
	if more := len(all) - shownLines; more > 0 {
		fmt.Fprintln(t.out, indent+t.out.Style(cli.Faint, fmt.Sprintf("and %s", cli.Counted(more, "more line", "more lines"))))
	}
}

// content returns the text of a result that a person wants to see: a document, a
// file, or a program's output.
func content(result map[string]any) string {
	if entry, ok := result["entry_doc"].(map[string]any); ok {
		result = entry
	}
	for _, key := range []string{"content", "output", "stdout", "stderr"} {
		if text, ok := result[key].(string); ok && text != "" {
			return strings.TrimRight(text, "\n")
		}
	}
	return ""
}

// Ask shows the question as the command approvals does, and takes the same keys. For
// a run it shows a summary of the facts, or all of them if nobody can answer. Enter
// shows everything.
func (t *terminal) Ask(ctx context.Context, question string, choices []tour.Choice) string {
	asked := t.asked(question)
	isRun := asked != nil && asked.Kind == call.KindRun
	t.question(asked, question, isRun && (t.approve || !t.ask))
	if t.approve {
		t.line("   "+t.out.Style(cli.Green, "approved: once"), "It is approved once, without asking.")
		return string(queue.Once)
	}
	if !t.ask {
		const why = "denied: there is no terminal to ask on; --yes approves every call"
		t.line("   "+t.out.Style(cli.Yellow, why), "It is "+why+".")
		return ""
	}
	var keys []approve.Key
	var values, labels []string
	for _, c := range choices {
		k, ok := approve.KeyOf(c.Value)
		if !ok {
			continue
		}
		keys, values, labels = append(keys, k), append(values, c.Value), append(labels, k.Label)
		title := safetext.Line(c.Title)
		t.line("   "+k.Letter+"  "+title, fmt.Sprintf("Type %s for this: %s.", k.Letter, title))
	}
	prompt := t.indent() + strings.Join(labels, "  ") + ", or Enter to see everything: "
	if t.out.Plain() {
		prompt = "Your answer, or Enter to hear everything: "
	}
	if err := t.keys.Rest(ctx); err != nil {
		fmt.Fprintln(t.out)
		return ""
	}
	for {
		answer, ok := t.read(ctx, prompt)
		if !ok {
			return ""
		}
		i := slices.IndexFunc(keys, func(k approve.Key) bool { return k.Typed(answer) })
		switch {
		case i >= 0:
			return values[i]
		case answer == "" || strings.EqualFold(answer, "s"):
			t.question(asked, question, true)
		default:
			fmt.Fprintln(t.out, t.indent()+approve.NoneOf(keys))
		}
	}
}

// asked returns the server's question that a client shows as text; nil if it has
// ended.
func (t *terminal) asked(text string) *queue.Pending {
	if t.pending == nil {
		return nil
	}
	all := slices.DeleteFunc(t.pending(), func(p queue.Pending) bool { return !strings.Contains(text, p.Card.Title) })
	if len(all) != 1 {
		return nil
	}
	return &all[0]
}

// question prints a question. Unless whole is set, it says how much of a run's
// question it leaves out.
func (t *terminal) question(asked *queue.Pending, text string, whole bool) {
	columns := t.out.Width()
	if columns == 0 {
		columns = 100
	}
	begin := t.indent()
	left := 0
	if asked != nil { // otherwise the client's text says everything
		card, isRun := asked.Card, asked.Kind == call.KindRun
		if isRun && !whole {
			card, left = card.Folded()
		}
		switch {
		case t.out.Plain():
			text = card.Sentences(whole || isRun)
		case whole || isRun:
			text = card.Text(columns - len(begin))
		default:
			text = card.Title + "\n" + card.Summary(columns-len(begin), 0)
		}
	}
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if i == 0 {
			line = t.out.Style(cli.Bold, line) // a plain screen has no styles
		}
		fmt.Fprintln(t.out, strings.TrimRight(begin+line, " "))
	}
	if left > 0 {
		more := cli.Counted(left, "more detail", "more details")
		t.line(begin+t.out.Style(cli.Faint, "and "+more+", with Enter"), "Enter tells "+more+".")
	}
}

func (t *terminal) Value(ctx context.Context, name, about string) (string, bool) {
	if !t.ask {
		return "", false
	}
	if about != "" {
		fmt.Fprintf(t.out, "   %s\n", safetext.Line(about))
	}
	return t.read(ctx, fmt.Sprintf("   value for %s: ", safetext.Line(name)))
}

// read reads what the person types at a prompt; ok is false if they left.
func (t *terminal) read(ctx context.Context, prompt string) (text string, ok bool) {
	text, err := t.keys.Ask(ctx, t.out.Unbroken(), prompt)
	return strings.TrimSpace(text), err == nil
}

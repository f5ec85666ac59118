package approve

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// A desktop is a console with a simulated person.
type desktop struct {
	t    *testing.T
	in   io.WriteCloser
	quit context.CancelFunc
	done chan error

	mu     sync.Mutex
	screen strings.Builder
	more   chan struct{}
	seen   int
}

func (d *desktop) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case d.more <- struct{}{}:
	default:
	}
	return d.screen.Write(p)
}

// sit runs a console without the pause that a person needs.
func sit(o *office, change func(*console)) *desktop {
	o.t.Helper()
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(o.t.Context())
	d := &desktop{t: o.t, in: w, quit: cancel, done: make(chan error, 1), more: make(chan struct{}, 1)}
	updates := follow(ctx, []string{runOf(o)}, nil)
	c := &console{out: d, look: look{width: func() int { return 60 }}, keys: cli.NewKeyboard(ctx, r), updates: updates}
	if change != nil {
		change(c)
	}
	go func() {
		d.done <- c.run(ctx)
		cancel()
		for range updates {
		}
	}()
	o.t.Cleanup(func() { cancel(); w.Close() })
	return d
}

// runOf returns the run folder of an office.
func runOf(o *office) string { return filepath.Join(cli.Getenv(o.env, "PACKS_MCP_HOME"), "run") }

func (d *desktop) until(words string) string {
	d.t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		d.mu.Lock()
		fresh := d.screen.String()[d.seen:]
		if i := strings.Index(fresh, words); i >= 0 {
			d.seen += i + len(words)
			d.mu.Unlock()
			return fresh[:i+len(words)]
		}
		d.mu.Unlock()
		select {
		case <-d.more:
		case <-timeout:
			d.t.Fatalf("%q does not come; there was\n%s", words, fresh)
		}
	}
}

func (d *desktop) enter(text string) {
	d.t.Helper()
	if _, err := io.WriteString(d.in, text+"\n"); err != nil {
		d.t.Fatal(err)
	}
}

// ends waits for the end of the console, which is never an error.
func (d *desktop) ends() {
	d.t.Helper()
	select {
	case err := <-d.done:
		if err != nil {
			d.t.Errorf("the console ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		d.t.Fatal("the console does not end")
	}
}

const (
	runPrompt  = "[o]nce  [c]hat  [d]eny  [s]kip  [q]uit: "
	oncePrompt = "[o]nce  [d]eny  [s]kip  [q]uit: "
)

func TestConsole(t *testing.T) {
	o := openOffices(t, "shop")[0]
	d := sit(o, nil)
	d.until("No call waits. One server of yours is running. Ctrl-C ends\nthis.\n")
	first := o.call(t, "first")
	question := d.until(runPrompt)
	for _, want := range []string{
		"---- " + first.code + " ---", "\nRun tool first of pack triage?\n", "\n  $ echo hello\n", "Asked 0 s ago by ",
		"  o  Once: this exact call, one time.\n", "  c  This chat: ", "  d  Deny: the call does not happen.\n", "  s  Skip: it goes on waiting\n", "  q  Quit: nothing more is decided\n",
		"The client waits 59 min for your answer.\n",
	} {
		if !strings.Contains(question, want) {
			t.Errorf("the question does not have %q:\n%s", want, question)
		}
	}
	if r := safetext.Inspect([]byte(question)); r.Total() != 0 {
		t.Errorf("the question has %s: %q", r, question)
	}
	for line := range strings.Lines(question) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 60 {
			t.Errorf("the line %q has %d characters, want at most 60", line, n)
		}
	}
	// Enter opens the rest of it, and decides nothing.
	if strings.Contains(question, "Exactly what runs") {
		t.Errorf("the question shows its details unasked:\n%s", question)
	}
	d.enter("")
	d.until("Exactly what runs\n  program      ")
	d.until(runPrompt)
	first.waits(t)
	for _, wrong := range []string{"yes", "r", "oo", "a", "always", "1", "\x1b[A"} {
		d.enter(wrong)
		d.until("That is none of the answers.")
		d.until(runPrompt)
	}
	first.waits(t)
	d.enter(" O ")
	d.until("Allowed (once): Run tool first of pack triage\n")
	first.until(t, "allowed")

	second := o.call(t, "second")
	d.until(runPrompt)
	d.enter("deny")
	d.until("Denied: Run tool second of pack triage\n")
	second.until(t, "denied")

	third := o.call(t, "third")
	d.until(runPrompt)
	d.enter("c")
	d.until("Allowed (chat): ")
	third.until(t, "allowed")

	skipped, fourth := o.call(t, "skipped"), o.call(t, "fourth")
	d.until("Run tool skipped of")
	d.until(runPrompt)
	d.enter("s")
	d.until("Run tool fourth of")
	d.until(runPrompt)
	d.enter("o")
	fourth.until(t, "allowed")
	d.until("No other call waits; 1 that you skipped still can be\nanswered.")
	d.enter("q")
	d.until("One call was left undecided; see it again with: packs-mcp\napprovals\n")
	d.ends()
	skipped.waits(t)
}

func TestConsoleAsksForValues(t *testing.T) {
	o := openOffices(t, "shop")[0]
	c := o.call(t, "field", call.Field{Name: "url", Title: "Where to look"}, call.Field{Name: "key", Title: "What to look for"})
	d := sit(o, nil)
	d.until("It needs a value for url: Where to look\n")
	d.until(oncePrompt)
	d.enter("o")
	d.until("Where to look (url): ")
	d.enter("https://example.com")
	d.until("What to look for (key): ")
	d.enter(" ")
	d.until("Without a value nothing is decided.")
	d.until(oncePrompt) // all of it again
	c.waits(t)
	d.enter("o")
	d.until("Where to look (url): ")
	d.enter("https://example.com")
	d.until("What to look for (key): ")
	d.enter("a=b")
	d.until("Allowed (once)")
	c.until(t, "allowed")
}

// A call that no longer needs an answer is skipped, with the reason.
func TestConsoleFollowsWhatHappensElsewhere(t *testing.T) {
	all := openOffices(t, "shop", "site")
	o := all[0]
	d := sit(o, nil)
	d.until("No call waits. 2 servers of yours are running.")

	a := o.call(t, "a")
	d.until(runPrompt)
	if _, err := o.gate.Decide(a.code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage}); err != nil {
		t.Fatal(err)
	}
	d.until("That call ")
	// Which of the two depends on how fast the call continues.
	said := strings.Join(strings.Fields(d.until(".\n")), " ")
	if said != "was allowed elsewhere (once)." && !strings.HasPrefix(said, "no longer waits: the call "+a.code+": it was answered before: allowed, on the page at ") {
		t.Errorf("the console says that the call %q, want that it was allowed", said)
	}
	a.until(t, "allowed")

	b := o.call(t, "b")
	d.until(runPrompt)
	b.cancel()
	d.until("That call no longer waits: the call " + b.code + ": the")
	b.until(t, "cancelled")

	late := o.call(t, "late")
	d.until(runPrompt)
	late.leave()
	late.until(t, "nobody has answered yet")
	d.until("The client has stopped waiting.")
	d.until("You can answer for 1 h 59 min.\n" + runPrompt)
	d.enter("o")
	d.until("Its client had stopped waiting. Have it make the same call\nagain within 1 h 59 min.\n")

	gone := all[1].call(t, "gone")
	d.until("Run tool gone of")
	d.until(runPrompt)
	if err := all[1].desk.Close(); err != nil {
		t.Fatal(err)
	}
	d.until("The server of that call has ended. Nothing was decided here.")
	d.until("No call waits. One server of yours is running.")
	gone.waits(t)
	d.quit()
	d.ends()
}

// Allowing a run whose client is gone needs a second yes; a denial does not.
func TestConsoleAsksWhetherToRunForNobody(t *testing.T) {
	const anyway = "The client is gone; run anyway? Type yes: "
	o := openOffices(t, "shop")[0]
	c := o.call(t, "first")
	d := sit(o, nil)
	d.until(runPrompt)
	o.gate.Abandon("chat-1")
	d.until("The client is gone, so nobody may take the result.")
	d.until(runPrompt)
	for _, no := range []string{"", "y", "r", "no", "yes please"} {
		d.enter("o")
		d.until(anyway)
		d.enter(no)
		d.until("Nothing was decided.")
		d.until(runPrompt) // all of it again
		c.waits(t)
	}
	d.enter("c")
	d.until(anyway)
	c.waits(t)
	d.enter(" Yes ")
	d.until("Allowed (chat): Run tool first of pack triage\n")
	c.until(t, "allowed")
	if got := o.decisions(); len(got) != 1 || !strings.Contains(got[0], "the client was gone, and it was chosen to run all the same") {
		t.Errorf("the log has %q, want one allowance that says so", got)
	}

	second := o.call(t, "second")
	d.until("Run tool second of")
	d.until("The client is gone, so nobody may take the result") // from the start
	d.until(runPrompt)
	d.enter("d")
	d.until("Denied: Run tool second of pack triage\n")
	second.until(t, "denied")
}

// Input typed before a question was shown does not answer it, whether typed
// while nothing waited, for another call, or in one paste.
func TestConsoleDropsWhatWasTypedBefore(t *testing.T) {
	o := openOffices(t, "shop")[0]
	d := sit(o, nil)
	d.until("No call waits.")
	d.enter("o")
	first := o.call(t, "first")
	d.until(runPrompt)
	first.waits(t)
	if _, err := io.WriteString(d.in, "d\nr\nr\n"); err != nil { // one answer too many, twice
		t.Fatal(err)
	}
	first.until(t, "denied")
	second := o.call(t, "second")
	d.until("Run tool second of")
	d.until(runPrompt)
	second.waits(t)
	d.enter("d")
	second.until(t, "denied")
	if got := o.decisions(); len(got) != 2 {
		t.Errorf("the log has %q, want two denials", got)
	}
}

// Leaving decides nothing.
func TestConsoleEnds(t *testing.T) {
	for name, leave := range map[string]func(*desktop){
		"q":            func(d *desktop) { d.enter("q") },
		"interrupt":    func(d *desktop) { d.quit() },
		"end of input": func(d *desktop) { d.in.Close() },
		"half a line":  func(d *desktop) { _, _ = io.WriteString(d.in, "r"); d.in.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			o := openOffices(t, "shop")[0]
			c := o.call(t, "first")
			d := sit(o, nil)
			d.until(runPrompt)
			leave(d)
			d.until("One call was left undecided")
			d.ends()
			c.waits(t)
			if got := o.decisions(); len(got) != 0 {
				t.Errorf("the log has %q, want nothing", got)
			}
		})
	}
}

// A screen reader gets sentences, one event on each line, and the same answers.
func TestConsoleForAScreenReader(t *testing.T) {
	o := openOffices(t, "shop")[0]
	a := &app{Env: &cli.Env{Stdout: io.Discard, Environ: []string{"TERM=xterm"}, Flags: cli.Flags{Plain: true}}}
	d := sit(o, func(c *console) { c.look = a.look() })
	d.until("No call waits. One server of yours is running. Ctrl-C ends this.\n")
	first := o.call(t, "first")
	const answers = "Your answer, one of o, c, d, s, q: "
	question := d.until(answers)
	for _, want := range []string{
		"A call waits for you under the code " + first.code + ".\nRun tool first of pack triage?\nIt would run this command: echo hello\n",
		"\nType o for this: Once: this exact call, one time.\n", "\nType d for this: Deny: the call does not happen.\n",
	} {
		if !strings.Contains(question, want) {
			t.Errorf("the question does not have %q:\n%s", want, question)
		}
	}
	d.enter("") // shows everything
	whole := d.until("Your answer, ")
	if !strings.Contains(whole, "\nExactly what runs:\nprogram: ") {
		t.Errorf("the whole question is\n%s", whole)
	}
	d.until("one of o, c, d, s, q: ")
	for line := range strings.Lines(question + whole) {
		if strings.ContainsAny(line, "\x1b\r│─▸") || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "--") || line == "\n" {
			t.Errorf("the line %q is drawn, not said", line)
		}
	}
	first.waits(t)
	d.enter("o")
	d.until("Allowed (once): Run tool first of pack triage\n")
	first.until(t, "allowed")
	d.enter("q")
	d.ends()
}

// The remaining time overwrites the old one, where the terminal can do that.
func TestConsoleCountsDown(t *testing.T) {
	for _, tc := range []struct {
		name   string
		look   look
		prompt string
		want   string
	}{
		{"a terminal", look{moves: true, width: func() int { return 60 }}, runPrompt, "\x1b7\x1b[1A\rtext\x1b[K\x1b8"},
		{"the prompt takes two lines", look{moves: true, width: func() int { return 40 }}, runPrompt, ""},
		{"the cursor cannot be moved", look{width: func() int { return 60 }}, runPrompt, ""},
	} {
		var b strings.Builder
		(&console{out: &b, look: tc.look}).countDown("text", tc.prompt)
		if b.String() != tc.want {
			t.Errorf("%s: countDown() writes %q, want %q", tc.name, b.String(), tc.want)
		}
	}
}

// A call that was already decided is reported, and not asked about.
func TestDecidedElsewhere(t *testing.T) {
	now := time.Now()
	for answered, want := range map[string][2]string{
		"":     {"answer for its next try", "You can answer for 59 s."},
		"once": {"allowed: once", "It is allowed (once), and was not made again yet."},
		"deny": {"denied", "It is denied."},
	} {
		call := control.Call{Code: "K7QM-2F9X", Answered: answered, Expires: now.Add(time.Minute - time.Millisecond)}
		if got := [2]string{state(call, now), standing(call, now)}; got != want {
			t.Errorf("a call with the answer %q is said to be %q, want %q", answered, got, want)
		}
		c := &console{queues: []queueOf{{&terminal.Server{}, []control.Call{call}}}}
		if got := len(c.open()); (got == 1) != (answered == "") {
			t.Errorf("of a call with the answer %q, %d are asked about", answered, got)
		}
	}
}

// Text from others gets no colours, and cannot add any.
func TestLook(t *testing.T) {
	var b strings.Builder
	l := look{bold: "\x1b[1m", plain: "\x1b[0m", width: func() int { return 60 }}
	l.printAll(&b, waiting{Call: control.Call{Code: "K7QM-2F9X", Card: prompt.Card{
		Title: "T", Command: "git log", Facts: []prompt.Fact{{Section: prompt.SectionRun, Label: "folder", Value: `"/x"`}},
	}}})
	want := "\n---- K7QM-2F9X " + strings.Repeat("-", 45) + "\n\x1b[1mT\x1b[0m\n  $ git log\n\nExactly what runs\n  folder       \"/x\"\n" + strings.Repeat("-", 60) + "\n"
	if b.String() != want {
		t.Errorf("printAll() writes %q, want %q", b.String(), want)
	}
	a := &app{Env: &cli.Env{Stdout: io.Discard, Environ: []string{"TERM=xterm"}}}
	if l := a.look(); l.bold != "" || l.moves || l.width() != usualWidth {
		t.Errorf("look() of a pipe = %+v, want nothing", l)
	}
}

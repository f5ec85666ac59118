package approve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// A console shows the waiting calls one by one, and asks the person to answer
// them.
type console struct {
	out     io.Writer
	look    look
	keys    *cli.Keyboard
	updates <-chan bulletin
	pause   time.Duration // before a question can be answered

	queues  []queueOf       // as the servers last sent them
	found   servers         // when this began
	decided map[string]bool // :: id of a call → it was answered here
	skipped map[string]bool // :: id of a call → the person does not want to answer it here
	told    map[string]bool // :: id of a server → it was reported that the server cannot be followed
	idle    string          // the last message while nothing waited
}

// errQuit ends the console at the person's request.
var errQuit = errors.New("quit")

// errNext goes on with the next call.
var errNext = errors.New("next")

// watchApprovals goes through the waiting calls in this terminal, until the
// person quits.
func (a *app) watchApprovals(ctx context.Context) error {
	cfg, _, err := a.Load()
	if err != nil {
		return err
	}
	s, err := a.running(ctx)
	if err != nil {
		return err
	}
	queues := a.queues(ctx, &s)
	ctx, cancel := context.WithCancel(ctx)
	runs := cfg.Paths.Runs
	if a.team.IsNamed() {
		runs = nil
	}
	updates := follow(ctx, runs, s.open)
	defer func() {
		cancel()
		for range updates { // until all its goroutines have ended
		}
	}()
	c := &console{
		out: a.Stdout, look: a.look(), keys: cli.NewKeyboard(ctx, a.Stdin), updates: updates, pause: cli.ReadTime,
		queues: queues, found: s,
	}
	if pages := s.onPages(); pages != "" {
		c.say(pages)
	}
	return c.run(ctx)
}

func (c *console) run(ctx context.Context) error {
	c.decided, c.skipped, c.told = make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for {
		err := c.step(ctx)
		if errors.Is(err, errQuit) || ctx.Err() != nil {
			c.bye()
			return nil
		}
		if err != nil && !errors.Is(err, errNext) {
			return err
		}
	}
}

// step asks about the next call, or waits for one.
func (c *console) step(ctx context.Context) error {
	open := c.open()
	if len(open) > 0 {
		c.idle = ""
		return c.question(ctx, open[0], len(open))
	}
	if text := c.idleText(); text != c.idle {
		c.idle = text
		c.say(text)
	}
	select {
	case u, ok := <-c.updates:
		if !ok {
			return errQuit
		}
		c.apply(u)
	case l := <-c.keys.Lines():
		if l.Err != nil || isWord(l.Text, "q", "quit") {
			return errQuit
		}
	case <-ctx.Done():
		return errQuit
	}
	return nil
}

func callID(w waiting) string { return w.server.ID() + " " + w.Code }

// undecided returns the calls that nobody has answered.
func (c *console) undecided() []waiting {
	return slices.DeleteFunc(callsOf(c.queues), func(w waiting) bool { return w.Answered != "" || c.decided[callID(w)] })
}

// open returns the calls to ask about.
func (c *console) open() []waiting {
	return slices.DeleteFunc(c.undecided(), func(w waiting) bool { return c.skipped[callID(w)] })
}

func (c *console) idleText() string {
	text := "No call waits. "
	if c.found.silent > 0 {
		text = "No call waits at the servers that answer. "
	}
	if n := len(c.undecided()); n > 0 {
		text = fmt.Sprintf("No other call waits; %d that you skipped still can be answered. ", n)
	}
	served := servedBy(len(c.queues))
	if len(c.queues) == 0 && c.found.silent+len(c.found.pageOnly) > 0 {
		served = "Servers that start now are shown here." // other servers are running
	}
	return text + served + " Ctrl-C ends this."
}

// bye prints what is left.
func (c *console) bye() {
	switch n := len(c.undecided()); n {
	case 0:
	case 1:
		c.say("One call was left undecided; see it again with: packs-mcp approvals")
	default:
		c.say(fmt.Sprintf("%d calls were left undecided; see them again with: packs-mcp approvals", n))
	}
}

// say prints lines of our own.
func (c *console) say(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(c.out, wrap(line, c.look.width(), 0))
	}
}

// apply applies a server's update.
func (c *console) apply(u bulletin) {
	i := slices.IndexFunc(c.queues, func(q queueOf) bool { return q.server.ID() == u.server.ID() })
	if u.ended {
		if i >= 0 {
			c.queues = slices.Delete(c.queues, i, i+1)
		}
		if u.why != "" && !c.told[u.server.ID()] {
			c.told[u.server.ID()] = true
			c.say(fmt.Sprintf("The calls of %s are not shown: %s.", place(u.server), u.why))
		}
		return
	}
	if i < 0 {
		c.queues = append(c.queues, queueOf{u.server, u.calls})
		return
	}
	c.queues[i].calls = u.calls
}

// question shows one of several calls, and asks the person to answer it.
func (c *console) question(ctx context.Context, w waiting, of int) error {
	c.look.printSummary(c.out, w)
	c.say(about(w, time.Now()))
	if of > 1 {
		c.say(fmt.Sprintf("%d more wait after this one.", of-1))
	}
	c.look.gap(c.out)
	replies := repliesTo(w.Call)
	for _, r := range replies {
		if c.look.sentences {
			c.say(fmt.Sprintf("Type %s for this: %s.", r.Letter, strings.TrimSuffix(r.about, ".")))
			continue
		}
		fmt.Fprintln(c.out, "  "+r.Letter+"  "+wrap(r.about, c.look.width()-5, 5))
	}
	c.say("Enter shows all there is to know, and decides nothing.")
	c.look.gap(c.out)
	if err := c.sleep(ctx, &w); err != nil {
		return err
	}
	for {
		text, err := c.answer(ctx, &w, c.look.promptOf(replies))
		if err != nil {
			return err
		}
		i := slices.IndexFunc(replies, func(r reply) bool { return r.Typed(text) })
		switch {
		case i < 0 && strings.TrimSpace(text) == "":
			c.look.printAll(c.out, w)
		case i < 0:
			c.say(NoneOf(keysOf(replies)))
		case replies[i].value == skipValue:
			c.skipped[callID(w)] = true
			return errNext
		case replies[i].value == quitValue:
			return errQuit
		default:
			return c.decide(ctx, &w, replies[i].value)
		}
	}
}

// decide sends the answer to the server, with the values that the call needs.
func (c *console) decide(ctx context.Context, w *waiting, value string) error {
	d := control.Decision{Code: w.Code, Decision: value}
	if value != queue.Deny.String() {
		if w.Gone {
			text, err := c.answer(ctx, w, "The client is gone; run anyway? Type yes: ")
			if err != nil {
				return err
			}
			if !strings.EqualFold(strings.TrimSpace(text), "yes") {
				c.say("Nothing was decided.")
				return errNext // and the call comes again
			}
			d.Gone = true
		}
		for _, f := range w.Fields {
			text, err := c.answer(ctx, w, fmt.Sprintf("%s (%s): ", f.Title, f.Name))
			if err != nil {
				return err
			}
			if strings.TrimSpace(text) == "" {
				c.say("Without a value nothing is decided.")
				return errNext // and the call comes again
			}
			if d.Values == nil {
				d.Values = make(map[string]string)
			}
			d.Values[f.Name] = text
		}
	}
	done, err := w.server.Decide(ctx, d)
	r, refused := errors.AsType[*terminal.RefusedError](err)
	switch {
	case err == nil:
		c.say(outcome(*w, value, done, time.Now()))
	case refused && queue.CodeProblem(r.Problem) == queue.CodeInvalid:
		c.say("Nothing was decided: " + safetext.Line(err.Error()) + ".")
		return errNext // and the call comes again
	case refused:
		c.say("Nothing was decided here: " + safetext.Line(err.Error()) + ".")
	default:
		c.say("It is not known whether your answer arrived: " + safetext.Line(err.Error()) + ". See what happened: packs-mcp audit show --last 5")
	}
	c.decided[callID(*w)] = true
	return errNext
}

// sleep gives the person time to see the question.
func (c *console) sleep(ctx context.Context, w *waiting) error {
	timer := time.NewTimer(c.pause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return nil
		case l := <-c.keys.Lines(): // typed before the question was readable
			if l.Err != nil {
				return errQuit
			}
		case u, ok := <-c.updates:
			if err := c.still(ctx, w, u, ok); err != nil {
				return err
			}
		case <-ctx.Done():
			return errQuit
		}
	}
}

// answer shows a prompt, below what an answer does now, and returns what the
// person types. It returns errNext if the call no longer needs an answer, and
// errQuit if the person leaves.
func (c *console) answer(ctx context.Context, w *waiting, prompt string) (string, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	waited, gone := false, false
	show := func() {
		now := time.Now()
		waited, gone = w.Waits.After(now), w.Gone
		c.say(standing(w.Call, now))
		c.keys.Forget()
		fmt.Fprint(c.out, prompt)
	}
	show()
	for {
		select {
		case l := <-c.keys.Lines():
			if l.Err != nil {
				fmt.Fprintln(c.out)
				return "", errQuit
			}
			if c.keys.Counts(l) {
				return l.Text, nil
			}
		case u, ok := <-c.updates:
			if err := c.still(ctx, w, u, ok); err != nil {
				return "", err
			}
		case <-tick.C:
		case <-ctx.Done():
			fmt.Fprintln(c.out)
			return "", errQuit
		}
		now := time.Now()
		if waited && !w.Waits.After(now) {
			fmt.Fprintln(c.out)
			c.say("The client has stopped waiting. Your answer will hold for when it makes the same call again.")
			show()
			continue
		}
		if w.Gone && !gone {
			fmt.Fprintln(c.out)
			c.say("The client is gone, so nobody may take the result. Before it runs you are asked once more.")
			show()
			continue
		}
		c.countDown(standing(w.Call, now), prompt)
	}
}

// countDown writes a new text into the line above the prompt. What the person
// has typed stays, and so does the cursor.
func (c *console) countDown(text, prompt string) {
	const room = 4 // for an answer
	if width := c.look.width(); c.look.moves && len(prompt)+room < width && len(text) < width {
		fmt.Fprintf(c.out, "\x1b7\x1b[1A\r%s\x1b[K\x1b8", text)
	}
}

// still applies an update, and returns errNext if the shown call no longer needs
// an answer.
func (c *console) still(ctx context.Context, w *waiting, u bulletin, ok bool) error {
	if !ok {
		return errQuit
	}
	c.apply(u)
	if u.server.ID() != w.server.ID() {
		return nil
	}
	if u.ended {
		fmt.Fprintln(c.out)
		c.say("The server of that call has ended. Nothing was decided here.")
		return errNext
	}
	for _, now := range u.calls {
		if now.Code != w.Code {
			continue
		}
		if w.Call = now; now.Answered == "" {
			return nil
		}
		fmt.Fprintln(c.out)
		if now.Answered == queue.Deny.String() {
			c.say("That call was denied elsewhere.")
		} else {
			c.say(fmt.Sprintf("That call was allowed elsewhere (%s).", now.Answered))
		}
		return errNext
	}
	why := "it was answered elsewhere, or its client gave it up"
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if r, ok := errors.AsType[*terminal.RefusedError](w.server.Why(ctx, w.Code)); ok {
		why = r.Message
	}
	fmt.Fprintln(c.out)
	c.say(fmt.Sprintf("That call no longer waits: %s.", why))
	return errNext
}

// A reply is a key, and what it does to one call.
type reply struct {
	Key
	about string // what it covers
	value string // of the choice
}

const (
	skipValue = "skip"
	quitValue = "quit"
)

// repliesTo returns the answers that the call offers, and the other possible
// replies.
func repliesTo(asked control.Call) []reply {
	var all []reply
	add := func(value, about string, lasts bool) {
		k, ok := KeyOf(value)
		if !ok {
			return // from a server newer than this program
		}
		if lasts {
			k.Label = "[" + k.Letter + "] from now on"
		}
		all = append(all, reply{k, about, value})
	}
	for _, ch := range asked.Choices {
		add(ch.Value, ch.Means, ch.Lasts && ch.Value == string(queue.Once))
	}
	add(skipValue, "Skip: it goes on waiting", false)
	add(quitValue, "Quit: nothing more is decided", false)
	return all
}

func keysOf(replies []reply) []Key {
	keys := make([]Key, len(replies))
	for i, r := range replies {
		keys[i] = r.Key
	}
	return keys
}

func (l look) promptOf(replies []reply) string {
	labels := make([]string, len(replies))
	for i, r := range replies {
		if labels[i] = r.Label; l.sentences {
			labels[i] = r.Letter
		}
	}
	if l.sentences {
		return "Your answer, one of " + strings.Join(labels, ", ") + ": "
	}
	return strings.Join(labels, "  ") + ": "
}

// isWord reports whether the person typed one of these words.
func isWord(text string, words ...string) bool {
	return slices.Contains(words, strings.ToLower(strings.TrimSpace(text)))
}

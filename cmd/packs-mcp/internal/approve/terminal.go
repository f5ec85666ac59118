package approve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// A Terminal asks the person who started this program about its calls. It looks and
// works like the command approvals.
type Terminal struct {
	out  io.Writer
	look look
	keys *cli.Keyboard
}

// NewTerminal returns a terminal that prints on standard error, since standard output
// is for results, and reads standard input until ctx ends.
func NewTerminal(ctx context.Context, e *cli.Env) *Terminal {
	a := &app{Env: e}
	return &Terminal{out: e.Stderr, look: a.lookOf(e.Stderr), keys: cli.NewKeyboard(ctx, e.Stdin)}
}

// ErrNoAnswer is returned if the person left without an answer.
var ErrNoAnswer = errors.New("there was no answer")

// Width returns how many columns standard output has.
func Width(e *cli.Env) int {
	a := &app{Env: e}
	return a.look().width()
}

// Ask shows a question and returns whether the person allows the call once, with the
// values that it needs.
func (t *Terminal) Ask(ctx context.Context, p queue.Pending) (queue.Verdict, error) {
	v := queue.Verdict{Channel: queue.ChannelTerminal}
	t.short("", p)
	yes, err := t.confirm(ctx, "", func() { t.whole("", p) })
	if err != nil || !yes {
		return v, err
	}
	for _, f := range p.Fields {
		text, err := t.keys.Ask(ctx, t.out, fmt.Sprintf("%s (%s): ", f.Title, f.Name))
		if err != nil || strings.TrimSpace(text) == "" {
			return v, errors.Join(ErrNoAnswer, err)
		}
		if v.Values == nil {
			v.Values = make(map[string]string)
		}
		v.Values[f.Name] = text
	}
	v.Decision = queue.Once
	return v, nil
}

// AskAll shows summaries of several questions, and returns whether the person allows
// all of these calls once.
func (t *Terminal) AskAll(ctx context.Context, title string, all []queue.Pending) (bool, error) {
	t.title(title)
	for i, p := range all {
		t.listed(i, p)
	}
	return t.confirm(ctx, cli.Counted(len(all), "run", "runs")+": ", func() {
		for i, p := range all {
			t.whole(fmt.Sprintf("%d. ", i+1), p)
		}
	})
}

// short prints what a person needs at first about a call.
func (t *Terminal) short(number string, p queue.Pending) {
	if t.look.sentences {
		fmt.Fprint(t.out, number+p.Card.Sentences(false))
		return
	}
	t.title(number + p.Card.Title)
	fmt.Fprint(t.out, p.Card.Summary(t.look.width(), summaryLines))
}

// listed is short for one of several calls below a title.
func (t *Terminal) listed(i int, p queue.Pending) {
	if t.look.sentences {
		t.short(fmt.Sprintf("%d. ", i+1), p)
		return
	}
	fmt.Fprintf(t.out, "%d. %s\n%s", i+1, p.Card.Title, p.Card.Summary(t.look.width(), summaryLines))
}

// whole prints everything about a call.
func (t *Terminal) whole(number string, p queue.Pending) {
	if t.look.sentences {
		fmt.Fprint(t.out, number+p.Card.Sentences(true))
		return
	}
	t.title(number + p.Card.Title)
	fmt.Fprintf(t.out, "%s\n%s", p.Card.Summary(t.look.width(), 0), p.Card.Details(t.look.width()))
}

// confirm returns whether the person chose once. Enter shows everything. about is the
// beginning of the question.
func (t *Terminal) confirm(ctx context.Context, about string, everything func()) (bool, error) {
	once, _ := KeyOf(string(queue.Once))
	deny, _ := KeyOf(queue.Deny.String())
	quit, _ := KeyOf(quitValue)
	question := about + once.Label + "  " + deny.Label + ": "
	if t.look.sentences {
		question = about + "Type o to allow once, or d to deny: "
	}
	fmt.Fprintln(t.out, "Enter shows all there is to know, and decides nothing.")
	if err := t.keys.Rest(ctx); errors.Is(err, io.EOF) {
		return false, ErrNoAnswer
	} else if err != nil {
		return false, err
	}
	for {
		text, err := t.keys.Ask(ctx, t.out, question)
		switch {
		case errors.Is(err, io.EOF):
			return false, ErrNoAnswer
		case err != nil:
			return false, err
		case once.Typed(text):
			return true, nil
		case deny.Typed(text) || quit.Typed(text):
			return false, nil
		case strings.TrimSpace(text) == "":
			everything()
		default:
			fmt.Fprintln(t.out, NoneOf([]Key{once, deny}))
		}
	}
}

func (t *Terminal) title(text string) {
	if t.look.sentences {
		fmt.Fprintln(t.out, text)
		return
	}
	fmt.Fprintf(t.out, "\n%s\n%s%s%s\n", strings.Repeat("-", min(t.look.width(), ruleWidth)), t.look.bold, text, t.look.plain)
}

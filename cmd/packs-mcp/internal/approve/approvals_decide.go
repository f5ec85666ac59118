package approve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// approval is how a person or a script wants to answer a call.
type approval struct {
	decision string   // the value of a choice
	set      []string // NAME=VALUE pairs
	yes      bool     // do not ask again
	gone     bool     // even if its client is gone
	json     bool
}

// decidedCall is what approvals approve --json and approvals deny --json print.
type decidedCall struct {
	Code     string `json:"code"`
	Title    string `json:"title"`
	Decision string `json:"decision"`
	// Shown says that its client still shows the question.
	Shown bool `json:"client_shows_it"`
	// Waits says that the answer is kept until its client makes the call again.
	Waits   bool       `json:"waits_for_client"`
	Expires *time.Time `json:"expires,omitempty"` // of an answer that waits
}

func (a *app) approveCommand() *cobra.Command {
	how := approval{decision: string(queue.Once)}
	cmd := &cobra.Command{
		Use:   "approve CODE",
		Short: "Allow a call that waits, by its code",
		Long: `Allow a call that waits, by the code that its client was given. In a terminal the call is
shown in full first, and you are asked to confirm. Without a terminal it is allowed at once,
but for this one time only: --for chat and --for always are refused there. The audit log says
that no terminal was there. The code works once.

When the client's connection has ended while the call waits, nobody may take the result: the
call is allowed with --client-gone only.`,
		Example: `  packs-mcp approvals approve K7QM-2F9X
  packs-mcp approvals approve K7QM-2F9X --for chat
  packs-mcp approvals approve K7QM-2F9X --set url=https://example.com/status`,
		Args:              cli.Needs(1, 1, "the code of a call"),
		ValidArgsFunction: a.completeCodes,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.approve(cmd.Context(), args[0], how) },
	}
	cmd.Flags().StringVar(&how.decision, "for", how.decision, "once (this exact call), chat (the like of it, until the chat ends) or always (until anything about it changes); in a terminal only, but for once")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(allowances(), cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringArrayVar(&how.set, "set", nil, "a value that the tool needs, as `NAME=VALUE` (repeatable)")
	cmd.Flags().BoolVar(&how.gone, "client-gone", false, "run it though its client is gone")
	cmd.Flags().BoolVar(&how.yes, "yes", false, "do not ask to confirm")
	cli.JSONFlag[decidedCall](a.Env, cmd, &how.json)
	return cmd
}

func allowances() []string {
	return []string{string(queue.Once), string(queue.Chat), string(queue.Always)}
}

func (a *app) denyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:               "deny CODE",
		Short:             "Deny a call that waits, by its code",
		Long:              "Deny a call that waits, by its code. A denial wins over an answer that was given elsewhere, as long as the call has not begun.",
		Example:           "  packs-mcp approvals deny K7QM-2F9X",
		Args:              cli.Needs(1, 1, "the code of a call"),
		ValidArgsFunction: a.completeCodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := a.lookUp(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.decide(cmd.Context(), w, control.Decision{Code: w.Code, Decision: queue.Deny.String(), Note: a.noTerminal()}, asJSON)
		},
	}
	cli.JSONFlag[decidedCall](a.Env, cmd, &asJSON)
	return cmd
}

// canonicalCode returns a typed code in the form that servers use.
func canonicalCode(typed string) (string, error) {
	code := strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(strings.TrimSpace(typed)))
	wrong := func(r rune) bool { return (r < '0' || r > '9') && (r < 'A' || r > 'Z') }
	if len(code) != 8 || strings.ContainsFunc(code, wrong) {
		return "", &cli.UsageError{
			Err:  fmt.Errorf("%s is not a code", safetext.Quote(typed)),
			Hint: "a code looks like K7QM-2F9X; see: packs-mcp approvals list",
		}
	}
	return code[:4] + "-" + code[4:], nil
}

// lookUp finds the waiting call with a code. If there is none, it asks the
// servers why.
func (a *app) lookUp(ctx context.Context, typed string) (waiting, error) {
	code, err := canonicalCode(typed)
	if err != nil {
		return waiting{}, err
	}
	s, err := a.running(ctx)
	if err != nil {
		return waiting{}, err
	}
	if len(s.open)+len(s.pageOnly) == 0 {
		return waiting{}, s.nobody()
	}
	queues := a.queues(ctx, &s)
	var found []waiting
	var codes []string
	for _, w := range callsOf(queues) {
		if codes = append(codes, w.Code); w.Code == code {
			found = append(found, w)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return waiting{}, cli.WithHint(fmt.Errorf("%d servers have a call with the code %s", len(found), code), "answer them with: packs-mcp approvals")
	}
	for _, q := range queues {
		why := q.server.Why(ctx, code)
		if r, ok := errors.AsType[*terminal.RefusedError](why); ok && r.Problem != string(queue.CodeUnknown) {
			return waiting{}, explained(r)
		}
	}
	switch pages := s.onPages(); {
	case s.silent > 0:
		return waiting{}, fmt.Errorf("no call of the servers that answer waits under the code %s, and %w", code, s.unanswered())
	case pages != "":
		return waiting{}, cli.WithHint(fmt.Errorf("no call waits under the code %s where this terminal can answer", code), "%s", pages)
	}
	return waiting{}, cli.WithHint(fmt.Errorf("no call waits under the code %s", code), "%s", cli.Meant(code, codes, "see which calls wait: packs-mcp approvals list"))
}

// explained adds a hint about what to do to a server's error.
func explained(err error) error {
	r, ok := errors.AsType[*terminal.RefusedError](err)
	if !ok {
		return cli.WithHint(fmt.Errorf("it is not known whether the answer arrived: %w", err), "see what happened: packs-mcp audit show --last 5")
	}
	switch queue.CodeProblem(r.Problem) {
	case queue.CodeUnknown:
		return cli.WithHint(err, "see which calls wait: packs-mcp approvals list")
	case queue.CodeAnswered:
		return cli.WithHint(err, "the first answer counts, and a code works once")
	case queue.CodeExpired, queue.CodeWithdrawn:
		return cli.WithHint(err, "nothing was done; if you still want it, ask for it again in your client")
	case queue.CodeGone:
		return cli.WithHint(err, "to run it anyway, add --client-gone; it still waits")
	case queue.CodeInvalid:
		return cli.WithHint(err, "nothing was done; the call still waits")
	default:
		return cli.WithHint(err, "nothing was done")
	}
}

// noTerminal returns the log's note for an answer that was not typed at a
// prompt.
func (a *app) noTerminal() string {
	if cli.IsTerminal(a.Stdin) && cli.IsTerminal(a.Stdout) {
		return ""
	}
	return "by a command without a terminal"
}

func (a *app) approve(ctx context.Context, typed string, how approval) error {
	if !slices.Contains(allowances(), how.decision) {
		return &cli.UsageError{Err: fmt.Errorf("--for is %q", how.decision), Hint: "it must be once, chat or always; to deny, say: packs-mcp approvals deny CODE"}
	}
	values, err := settings(how.set)
	if err != nil {
		return err
	}
	w, err := a.lookUp(ctx, typed)
	if err != nil {
		return err
	}
	d := control.Decision{Code: w.Code, Decision: how.decision, Values: values, Note: a.noTerminal(), Gone: how.gone}
	switch w.Answered {
	case "":
	case queue.Deny.String():
		return cli.WithHint(fmt.Errorf("the call %s was denied", w.Code), "a denial stands; if you want it after all, ask your client to make it again")
	default:
		return cli.WithHint(fmt.Errorf("the call %s is allowed already (%s), and was not made again yet", w.Code, w.Answered),
			"ask your client to make it again; to take it back: packs-mcp approvals deny %s", w.Code)
	}
	if w.Gone && !how.gone {
		return cli.WithHint(fmt.Errorf("the client of the call %s is gone, so nobody may take the result; nothing was decided", w.Code),
			"to run it anyway: packs-mcp approvals approve %s --client-gone", w.Code)
	}
	choice, ok := offered(w.Call, how.decision)
	if !ok {
		var words []string
		for _, c := range w.Choices {
			if c.Value != queue.Deny.String() {
				words = append(words, c.Value)
			}
		}
		return cli.WithHint(fmt.Errorf("the call %s cannot be allowed for %q", w.Code, how.decision), "it can be allowed for: %s", strings.Join(words, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.ContainsFunc(w.Fields, func(f control.Field) bool { return f.Name == name }) {
			return &cli.UsageError{Err: fmt.Errorf("the call %s needs no value for %q", w.Code, name), Hint: "see what it needs: packs-mcp approvals show " + w.Code}
		}
	}
	if (how.decision != string(queue.Once) || choice.Lasts) && d.Note != "" {
		// An answer from a script, or from a model with a shell, applies only to
		// one current call, and leaves nothing behind.
		return cli.WithHint(errors.New("without a terminal a call can only be allowed once, and nothing for later"),
			"run this in a terminal of yours, or answer on the page: packs-mcp approvals open")
	}
	if d.Note == "" { // at a terminal
		if err := a.confirm(ctx, w, choice, how, &d); err != nil {
			return err
		}
	}
	for _, f := range w.Fields {
		if strings.TrimSpace(d.Values[f.Name]) == "" {
			return cli.WithHint(fmt.Errorf("the call %s needs a value for %s (%s)", w.Code, f.Name, f.Title), "add: --set %s=VALUE", f.Name)
		}
	}
	return a.decide(ctx, w, d, how.json)
}

// settings reads NAME=VALUE pairs.
func settings(pairs []string) (map[string]string, error) {
	var values map[string]string
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if _, twice := values[name]; !ok || name == "" || twice {
			return nil, &cli.UsageError{Err: fmt.Errorf("--set is %q", pair), Hint: "write NAME=VALUE, and each name once"}
		}
		if values == nil {
			values = make(map[string]string)
		}
		values[name] = value
	}
	return values, nil
}

func offered(c control.Call, value string) (control.Choice, bool) {
	i := slices.IndexFunc(c.Choices, func(ch control.Choice) bool { return ch.Value == value })
	if i < 0 {
		return control.Choice{}, false
	}
	return c.Choices[i], true
}

var errNotConfirmed = errors.New("nothing was decided; the call still waits")

// confirm shows the whole call, has the person fill in what it needs, and asks
// for a yes.
func (a *app) confirm(ctx context.Context, w waiting, choice control.Choice, how approval, d *control.Decision) error {
	k, out := cli.NewKeyboard(ctx, a.Stdin), a.Stdout
	if how.json {
		out = a.Stderr // standard output is for the result alone
	}
	look := a.lookOf(out)
	look.printAll(out, w)
	now := time.Now()
	fmt.Fprintf(out, "%s\n%s\n", about(w, now), standing(w.Call, now))
	look.gap(out)
	for _, f := range w.Fields {
		if strings.TrimSpace(d.Values[f.Name]) != "" {
			continue
		}
		value, err := k.Ask(ctx, out, fmt.Sprintf("%s (%s): ", f.Title, f.Name))
		if err != nil || strings.TrimSpace(value) == "" {
			return errNotConfirmed
		}
		if d.Values == nil {
			d.Values = make(map[string]string)
		}
		d.Values[f.Name] = value
	}
	if how.yes {
		d.Note = "confirmed by --yes"
		return nil
	}
	fmt.Fprintln(out, wrap(choice.Means, look.width(), 0))
	answer, err := k.Ask(ctx, out, "Type yes to allow that: ")
	if err != nil || !strings.EqualFold(strings.TrimSpace(answer), "yes") {
		return errNotConfirmed
	}
	return nil
}

// decide sends a decision to the call's server, and prints the outcome.
func (a *app) decide(ctx context.Context, w waiting, d control.Decision, asJSON bool) error {
	done, err := w.server.Decide(ctx, d)
	if err != nil {
		return explained(err)
	}
	if asJSON {
		out := decidedCall{Code: w.Code, Title: w.Title, Decision: d.Decision, Shown: done.Carried, Waits: done.Held && !done.Carried && d.Decision != queue.Deny.String()}
		if out.Waits {
			out.Expires = &done.Expires
		}
		return cli.PrintJSON(a.Stdout, out)
	}
	fmt.Fprintln(a.Stdout, outcome(w, d.Decision, done, time.Now()))
	return nil
}

// outcome describes what an accepted decision does.
func outcome(w waiting, decision string, done control.Decided, now time.Time) string {
	if choice, ok := offered(w.Call, decision); ok && choice.Lasts {
		decision = "from now on"
	}
	title := statement(w.Title)
	switch {
	case decision == queue.Deny.String() && done.Carried:
		return fmt.Sprintf("Denied: %s\nIts client still shows the question; nothing that is chosen there changes this.", title)
	case decision == queue.Deny.String():
		return fmt.Sprintf("Denied: %s", title)
	case done.Held && done.Carried:
		return fmt.Sprintf("Allowed (%s): %s\nIts client still shows the question, and goes on when you answer there: allow it there, too. A denial there takes this back.", decision, title)
	case !done.Held:
		return fmt.Sprintf("Allowed (%s): %s", decision, title)
	default:
		return fmt.Sprintf("Allowed (%s): %s\nIts client had stopped waiting. Have it make the same call again within %s.", decision, title, span(done.Expires.Sub(now)))
	}
}

// statement is the title of a question without its question mark.
func statement(title string) string {
	const changed = " (changed)"
	title, isChanged := strings.CutSuffix(title, changed)
	title = strings.TrimSuffix(title, "?")
	if isChanged {
		title += changed
	}
	return title
}

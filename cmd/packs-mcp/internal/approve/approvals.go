package approve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

func (a *app) approvalsCommand() *cobra.Command {
	var bareJSON bool
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "See the calls that wait for you, and answer them",
		Long: `See the calls that wait for you, of every running server of yours, and answer them here. In
a terminal each is shown, one after the other, and new ones as they come; Enter shows all
of one, and Ctrl-C ends that and decides nothing. Without a terminal it prints the list.

With --server URL these are the calls of your team's server that you may decide about, and
your own.`,
		Example: `  packs-mcp approvals
  packs-mcp approvals list
  packs-mcp approvals approve K7QM-2F9X
  packs-mcp approvals open
  packs-mcp approvals --server https://packs.example.com`,
		Args: cli.Misuse(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !bareJSON && cli.IsTerminal(a.Stdin) && cli.IsTerminal(a.Stdout) {
				return a.watchApprovals(cmd.Context())
			}
			return a.listApprovals(cmd.Context(), bareJSON)
		},
	}
	cli.JSONFlag[pendingCalls](a.Env, cmd, &bareJSON)
	var listJSON, showJSON bool
	list := &cobra.Command{
		Use:     "list",
		Short:   "Print the calls that wait",
		Example: "  packs-mcp approvals list\n  packs-mcp approvals list --json",
		Args:    cli.Misuse(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.listApprovals(cmd.Context(), listJSON) },
	}
	cli.JSONFlag[pendingCalls](a.Env, list, &listJSON)
	show := &cobra.Command{
		Use:               "show CODE",
		Short:             "Print one call in full: all there is to decide about",
		Example:           "  packs-mcp approvals show K7QM-2F9X",
		Args:              cli.Needs(1, 1, "the code of a call"),
		ValidArgsFunction: a.completeCodes,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.showApproval(cmd.Context(), args[0], showJSON) },
	}
	cli.JSONFlag[listedCall](a.Env, show, &showJSON)
	cmd.AddCommand(list, show, a.approveCommand(), a.denyCommand())
	for _, c := range append(cmd.Commands(), cmd) {
		a.team.Flags(c)
	}
	cmd.AddCommand(a.openCommand())
	for _, c := range append(cmd.Commands(), cmd) {
		a.ConfigFlag(c)
		a.PlainFlag(c)
	}
	cmd.AddCommand(a.grantsCommand(), a.revokeCommand())
	return cmd
}

// A waiting is a call in a running server's queue.
type waiting struct {
	control.Call
	server *terminal.Server
}

// servers are this user's servers, as one search found them.
type servers struct {
	open     []*terminal.Server // tell their calls
	pageOnly []*terminal.Server // take answers on their page only
	silent   int                // are announced but did not answer: calls may wait there
}

// running finds this user's servers. It reports those that it cannot use on
// standard error.
func (a *app) running(ctx context.Context) (servers, error) {
	if a.team.IsNamed() {
		one, err := a.team.Open()
		if err != nil {
			return servers{}, err
		}
		if _, err := one.Pending(ctx); err != nil {
			if _, ok := errors.AsType[*cli.HintedError](err); ok { // it has ended
				return servers{}, err
			}
			return servers{}, cli.WithHint(fmt.Errorf("asking %s: %w", one.Name, err), "check the address and your token, or log in again: packs-mcp login %s; the server's log says why", one.Name)
		}
		return servers{open: []*terminal.Server{one}}, nil
	}
	cfg, _, err := a.Load()
	if err != nil {
		return servers{}, err
	}
	found, err := terminal.Find(ctx, cfg.Paths.Runs...)
	if err != nil {
		return servers{}, err
	}
	var s servers
	for _, one := range found.Servers {
		if one.PageOnly {
			s.pageOnly = append(s.pageOnly, one)
		} else {
			s.open = append(s.open, one)
		}
	}
	for _, f := range found.Skipped {
		if f.Silent {
			s.silent++
		}
		fmt.Fprintf(a.Screen(a.Stderr), "packs-mcp: warning: %s is not used: %s\n", safetext.Line(f.File), f.Reason)
	}
	return s, nil
}

// A queueOf is one server's answer when asked for its calls.
type queueOf struct {
	server *terminal.Server
	calls  []control.Call
}

// queues asks the servers for their calls. It counts a server that does not
// answer as silent, and says so on standard error.
func (a *app) queues(ctx context.Context, s *servers) []queueOf {
	var all []queueOf
	for _, one := range s.open {
		calls, err := one.Pending(ctx)
		if err != nil {
			fmt.Fprintf(a.Screen(a.Stderr), "packs-mcp: warning: the server with pid %d does not tell its calls: %s\n", one.PID, safetext.Line(err.Error()))
			s.silent++
			continue
		}
		all = append(all, queueOf{one, calls})
	}
	return all
}

// callsOf returns the calls of several servers, ordered by when they were asked.
func callsOf(queues []queueOf) []waiting {
	var all []waiting
	for _, q := range queues {
		for _, c := range q.calls {
			all = append(all, waiting{c, q.server})
		}
	}
	slices.SortStableFunc(all, func(a, b waiting) int { return a.Asked.Compare(b.Asked) })
	return all
}

// nobody returns the error for having no server to ask.
func (s servers) nobody() error {
	if s.silent > 0 {
		return s.unanswered()
	}
	return cli.WithHint(errors.New("no server of yours is running, so no call waits"),
		"start your client, which starts a server, and make the call again there; packs-mcp doctor says which clients are set up, and packs-mcp audit show what became of earlier calls")
}

// unanswered returns the error for servers whose calls are not known.
func (s servers) unanswered() error {
	what := "one server of yours does not answer, so a call of it may wait"
	if s.silent > 1 {
		what = fmt.Sprintf("%d servers of yours do not answer, so calls of theirs may wait", s.silent)
	}
	return cli.WithHint(errors.New(what), "the warnings say why; try again, and remove the file of a server that has ended")
}

// onPages says which servers must be answered on their page; empty if there is
// none.
func (s servers) onPages() string {
	switch len(s.pageOnly) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("One server of yours (%s) takes answers on its page only: packs-mcp approvals open --server %d", place(s.pageOnly[0]), s.pageOnly[0].PID)
	default:
		pids := make([]string, len(s.pageOnly))
		for i, one := range s.pageOnly {
			pids[i] = strconv.Itoa(one.PID)
		}
		return fmt.Sprintf("%d servers of yours take answers on their pages only: packs-mcp approvals open --server PID, with one of %s", len(pids), strings.Join(pids, ", "))
	}
}

func (a *app) listApprovals(ctx context.Context, asJSON bool) error {
	s, err := a.running(ctx)
	if err != nil {
		return err
	}
	calls := callsOf(a.queues(ctx, &s))
	if err := a.printList(calls, s, asJSON); err != nil {
		return err
	}
	if s.silent > 0 {
		return s.unanswered()
	}
	return nil
}

func (a *app) printList(calls []waiting, s servers, asJSON bool) error {
	if asJSON {
		listed := make([]listedCall, len(calls))
		for i, w := range calls {
			listed[i] = listedOf(w)
		}
		return cli.PrintJSON(a.Stdout, pendingCalls{listed})
	}
	if pages := s.onPages(); pages != "" {
		fmt.Fprintln(a.Screen(a.Stderr), pages)
	}
	switch {
	case len(calls) > 0:
		return a.printTable(calls, len(s.open))
	case s.silent > 0:
		fmt.Fprintln(a.Screen(a.Stderr), "No call waits at the servers that answer.")
	case a.team.IsNamed():
		fmt.Fprintln(a.Screen(a.Stderr), "No call waits for you at "+s.open[0].Name+".")
	case len(s.open) > 0 || len(s.pageOnly) == 0:
		fmt.Fprintln(a.Screen(a.Stderr), "No call waits. "+servedBy(len(s.open)))
	}
	return nil
}

func (a *app) printTable(calls []waiting, servers int) error {
	now, out := time.Now(), a.Screen(a.Stdout)
	var t cli.Table
	for _, w := range calls {
		t.Row(out.Style(cli.Bold, w.Code), span(now.Sub(w.Asked))+" ago", state(w.Call, now), inPlace(w, servers))
	}
	if err := t.Print(out); err != nil {
		return err
	}
	fmt.Fprintln(a.Screen(a.Stderr), "See one in full:  packs-mcp approvals show CODE\nAnswer it:        packs-mcp approvals approve CODE, or: deny CODE\nOr go through all of them, in a terminal: packs-mcp approvals")
	return nil
}

// inPlace returns the title of a call, with its server if there are several.
func inPlace(w waiting, servers int) string {
	if servers < 2 {
		return w.Title
	}
	return fmt.Sprintf("%s (%s)", w.Title, place(w.server))
}

// place returns a description that tells a server from the others.
func place(s *terminal.Server) string {
	if s.PID == 0 {
		return s.Name // a team's
	}
	if s.Project == "" {
		return fmt.Sprintf("pid %d", s.PID)
	}
	return fmt.Sprintf("pid %d, %s", s.PID, filepath.Base(s.Project))
}

func servedBy(servers int) string {
	switch servers {
	case 0:
		return "No server of yours is running; clients start them."
	case 1:
		return "One server of yours is running."
	default:
		return fmt.Sprintf("%d servers of yours are running.", servers)
	}
}

// span formats a duration in words, rounded down.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	default:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
}

// state describes a call's state in a few words.
func state(c control.Call, now time.Time) string {
	switch {
	case c.Answered == queue.Deny.String():
		return "denied"
	case c.Answered != "":
		return "allowed: " + c.Answered
	case c.Waits.After(now):
		return "waits " + span(c.Waits.Sub(now))
	default:
		return "answer for its next try"
	}
}

// standing describes in a sentence what an answer does now.
func standing(c control.Call, now time.Time) string {
	switch {
	case c.Answered == queue.Deny.String():
		return "It is denied."
	case c.Answered != "":
		return fmt.Sprintf("It is allowed (%s), and was not made again yet.", c.Answered)
	case c.Waits.After(now):
		return fmt.Sprintf("The client waits %s for your answer.", span(c.Waits.Sub(now)))
	default:
		return fmt.Sprintf("You can answer for %s.", span(c.Expires.Sub(now)))
	}
}

// origin says who asked, and when.
func origin(w waiting, now time.Time) string {
	who := "a client without a name"
	if w.Client != "" {
		who = "a client that calls itself " + safetext.Quote(w.Client)
	}
	whose := ""
	if w.Person != "" {
		// The person comes first and unquoted: the client did not supply it.
		whose = "for " + w.Person + ", "
	}
	return fmt.Sprintf("Asked %s ago %sby %s (%s).", span(now.Sub(w.Asked)), whose, who, place(w.server))
}

// pendingCalls is what list --json prints.
type pendingCalls struct {
	Pending []listedCall `json:"pending"`
}

// listedCall is a call in the form that list --json and show --json print.
type listedCall struct {
	Code     string           `json:"code"`
	Server   string           `json:"server"`
	PID      int              `json:"pid"`
	Project  string           `json:"project"`
	Chat     string           `json:"chat"`
	Client   string           `json:"client"`
	Person   string           `json:"person,omitempty"`
	Kind     string           `json:"kind"`
	Pack     string           `json:"pack"`
	Title    string           `json:"title"`
	Card     prompt.Card      `json:"card"`
	Choices  []control.Choice `json:"choices"`
	Fields   []control.Field  `json:"fields"`
	Asked    time.Time        `json:"asked"`
	Waits    time.Time        `json:"waits,omitzero"`
	Expires  time.Time        `json:"expires"`
	Note     string           `json:"note"`
	Gone     bool             `json:"client_gone"`
	Answered string           `json:"answered"`
}

func listedOf(w waiting) listedCall {
	return listedCall{
		Code: w.Code, Server: w.server.Name, PID: w.server.PID, Project: w.server.Project,
		Chat: w.Chat, Client: w.Client, Person: w.Person, Kind: w.Kind, Pack: w.Pack, Title: w.Title, Card: w.Card,
		Choices: w.Choices, Fields: w.Fields, Asked: w.Asked, Waits: w.Waits, Expires: w.Expires, Note: w.Note, Gone: w.Gone, Answered: w.Answered,
	}
}

func (a *app) showApproval(ctx context.Context, typed string, asJSON bool) error {
	w, err := a.lookUp(ctx, typed)
	if err != nil {
		return err
	}
	if asJSON {
		return cli.PrintJSON(a.Stdout, listedOf(w))
	}
	now, look := time.Now(), a.look()
	width := look.width()
	if look.sentences {
		fmt.Fprint(a.Stdout, w.Card.Sentences(true))
	} else {
		fmt.Fprintf(a.Stdout, "%s\n%s\n", w.Card.Title, w.Card.Summary(width, 0))
	}
	fmt.Fprintf(a.Stdout, "%s\n%s\n", about(w, now), standing(w.Call, now))
	look.gap(a.Stdout)
	for _, c := range w.Choices {
		command := "approve " + w.Code
		switch c.Value {
		case queue.Deny.String():
			command = "deny " + w.Code
		case string(queue.Once):
		default:
			command += " --for " + c.Value
		}
		if look.sentences {
			fmt.Fprintf(a.Stdout, "The command packs-mcp approvals %s does this: %s\n", command, c.Means)
			continue
		}
		fmt.Fprintf(a.Stdout, "packs-mcp approvals %s\n    %s\n", command, wrap(c.Means, width-4, 4))
	}
	if look.sentences {
		return nil
	}
	if _, err := fmt.Fprintf(a.Stdout, "\n%s", w.Card.Details(width)); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// about returns, in lines, what there is to know besides the text to decide
// about.
func about(w waiting, now time.Time) string {
	lines := []string{origin(w, now)}
	if w.Note != "" {
		lines = append(lines, w.Note)
	}
	for _, f := range w.Fields {
		lines = append(lines, fmt.Sprintf("It needs a value for %s: %s", f.Name, f.Title))
	}
	return strings.Join(lines, "\n")
}

// wrap breaks text between words so that its lines have at most width characters
// where that is possible; the second and later lines are indented. A width of 0
// means no limit.
func wrap(text string, width, indent int) string {
	if width <= 0 {
		return text
	}
	var b strings.Builder
	used := 0
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case used+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			used = indent
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += n
	}
	return b.String()
}

// completeCodes offers the codes of the waiting calls to the shell.
func (a *app) completeCodes(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.Stderr = io.Discard // the shell would take a warning for a code
	s, err := a.running(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var codes []string
	for _, w := range callsOf(a.queues(cmd.Context(), &s)) {
		codes = append(codes, w.Code+"\t"+cli.OneLine(w.Title, 60))
	}
	return codes, cobra.ShellCompDirectiveNoFileComp
}

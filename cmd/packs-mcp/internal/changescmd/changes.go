package changescmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
)

// Events that record what a person did with the changes of a run.
const (
	eventChangesApply   audit.Event = "changes.apply"
	eventChangesDiscard audit.Event = "changes.discard"
	eventChangesUndo    audit.Event = "changes.undo"
)

// changesHint says where to find the IDs of change sets.
const changesHint = "packs-mcp changes lists the change sets and their IDs"

func (a *app) changesCommand() *cobra.Command {
	var asJSON bool
	var shown string
	list := func(cmd *cobra.Command, _ []string) error { return a.listChanges(cmd.Context(), asJSON) }
	cmd := &cobra.Command{
		Use:   "changes",
		Short: "Look at what runs changed in your folders, and apply, discard or undo it",
		Long: `Look at what runs changed in your folders, and apply, discard or undo it. A run works in a
layer over a folder. What it did there is applied when it ends, except what waits for you:
protected names, conflicts with your own changes, and runs that did not end by themselves.
What waits is kept for a day, or for limits.held_age. An ID may be shortened as long as it means one set.`,
		Example: "  packs-mcp changes\n  packs-mcp changes show 20260110-1504\n  packs-mcp changes undo 20260110-1504",
		Args:    cli.Misuse(cobra.NoArgs),
		RunE:    list,
	}
	listed := &cobra.Command{
		Use: "list", Short: "List the change sets, the newest first", Example: "  packs-mcp changes list --json",
		Args: cli.Misuse(cobra.NoArgs), RunE: list,
	}
	show := &cobra.Command{
		Use: "show ID [PATH...]", Short: "Show the changes of a set that wait for you, as a diff",
		Example: "  packs-mcp changes show 20260110-1504 CLAUDE.md",
		Args:    cli.Needs(1, -1, "the id of a change set"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.showChanges(cmd.Context(), args[0], args[1:], asJSON)
		},
	}
	apply := &cobra.Command{
		Use: "apply ID [PATH...]", Short: "Apply changes that wait for you",
		Long: `Apply changes that wait for you. A change whose file you have changed since is applied only
with --shown, and what "show" printed for it: then it replaces exactly what you saw.`,
		Example: "  packs-mcp changes apply 20260110-1504 CLAUDE.md",
		Args:    cli.Needs(1, -1, "the id of a change set"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decideChanges(cmd.Context(), asJSON, eventChangesApply, args[0], args[1:], func(s *changes.Store, id string) (*changes.Set, error) {
				return s.Apply(cmd.Context(), id, shown, args[1:]...)
			})
		},
	}
	apply.Flags().StringVar(&shown, "shown", "", "the `TOKEN` that show printed")
	discard := &cobra.Command{
		Use: "discard ID [PATH...]", Short: "Drop changes that wait for you", Example: "  packs-mcp changes discard 20260110-1504",
		Args: cli.Needs(1, -1, "the id of a change set"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decideChanges(cmd.Context(), asJSON, eventChangesDiscard, args[0], args[1:], func(s *changes.Store, id string) (*changes.Set, error) {
				return s.Discard(cmd.Context(), id, args[1:]...)
			})
		},
	}
	undo := &cobra.Command{
		Use: "undo ID", Short: "Undo applied changes, where nothing has changed since", Example: "  packs-mcp changes undo 20260110-1504",
		Args: cli.Needs(1, 1, "the id of a change set"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decideChanges(cmd.Context(), asJSON, eventChangesUndo, args[0], nil, func(s *changes.Store, id string) (*changes.Set, error) {
				return s.Undo(cmd.Context(), id)
			})
		},
	}
	for _, c := range []*cobra.Command{cmd, listed, show, apply, discard, undo} {
		a.ConfigFlag(c)
	}
	for _, c := range []*cobra.Command{cmd, listed} {
		cli.JSONFlag[changeSets](a.Env, c, &asJSON)
	}
	cli.JSONFlag[shownChanges](a.Env, show, &asJSON)
	for _, c := range []*cobra.Command{apply, discard, undo} {
		cli.JSONFlag[changes.Set](a.Env, c, &asJSON)
	}
	for _, c := range []*cobra.Command{show, apply, discard, undo} {
		c.ValidArgsFunction = a.completeChanges
	}
	_ = apply.RegisterFlagCompletionFunc("shown", cobra.NoFileCompletions)
	cmd.AddCommand(listed, show, apply, discard, undo)
	return cmd
}

// changeSets is what list --json prints.
type changeSets struct {
	Sets []*changes.Set `json:"sets"`
}

// shownChanges is what show --json prints.
type shownChanges struct {
	Set   *changes.Set `json:"set"`
	Diff  string       `json:"diff"`            // of the changes that wait; empty if none do
	Cut   bool         `json:"cut"`             // diff does not show all of it
	Token string       `json:"token,omitempty"` // for apply --shown; empty if diff does not show all
}

// tokenOf returns the token of a view; empty if the view does not show all.
func tokenOf(v *changes.View) string {
	if v.Cut || v.Text() == "" {
		return ""
	}
	return v.Token
}

// styledDiff returns a diff with colours for what was added and removed. It does not
// break lines: they are what the person agrees to.
func styledDiff(s *cli.Screen, diff string) string {
	if !s.Colors() {
		return diff
	}
	var b strings.Builder
	for line := range strings.Lines(diff) {
		text := strings.TrimSuffix(line, "\n")
		style := map[byte]cli.Style{'+': cli.Green, '-': cli.Red, '@': cli.Cyan}
		if text != "" && style[text[0]] != "" {
			line = s.Style(style[text[0]], text) + line[len(text):]
		}
		b.WriteString(line)
	}
	return b.String()
}

// completeChanges offers the ids of the change sets to the shell, and then the paths
// in the one that was named.
func (a *app) completeChanges(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	a.Stderr = io.Discard // the shell would take a warning for an id
	_, s, err := a.changes(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var words []string
	if len(args) > 0 {
		set, err := s.Get(args[0])
		if err != nil || cmd.Name() == "undo" {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, c := range set.Changes {
			if c.State == changes.Held && safetext.Line(c.Path) == c.Path {
				words = append(words, c.Path)
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
	sets, err := s.List()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	for _, set := range sets {
		words = append(words, set.ID+"\t"+cli.OneLine(set.Run.Tool+" of "+set.Run.Pack+" in "+set.Folder, 60))
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// changes opens the configured store of changes.
func (a *app) changes(ctx context.Context) (*config.Config, *changes.Store, error) {
	cfg, _, err := a.Load()
	if err != nil {
		return nil, nil, err
	}
	s, err := a.ChangeStore(ctx, cfg, nil, func(h changes.Holder) {
		fmt.Fprintln(a.Screen(a.Stderr), safetext.Line(fmt.Sprintf("Waiting for %s to end. Interrupt to leave everything as it is.", h)))
	})
	return cfg, s, err
}

func (a *app) listChanges(ctx context.Context, asJSON bool) error {
	_, s, err := a.changes(ctx)
	if err != nil {
		return err
	}
	sets, err := s.List()
	if err != nil {
		return err
	}
	if asJSON {
		if sets == nil {
			sets = []*changes.Set{}
		}
		return cli.PrintJSON(a.Stdout, changeSets{sets})
	}
	for _, set := range sets {
		a.printSet(set)
	}
	if len(sets) == 0 {
		fmt.Fprintln(a.Screen(a.Stderr), "No changes: no run changed a folder of yours in the last days.")
	}
	return nil
}

// printSet prints a set for a person. Packs and runs wrote most of the words.
func (a *app) printSet(set *changes.Set) {
	out := a.Screen(a.Stdout)
	fmt.Fprintf(out, "%s  %s  in %s\n", out.Style(cli.Bold, set.ID), set.Made.Local().Format(time.DateTime), safetext.Quote(set.Folder))
	switch {
	case set.Undoes != "":
		fmt.Fprintf(out, "    you took %s back\n", set.Undoes)
	case set.From != "":
		fmt.Fprintf(out, "    you applied changes of %s\n", set.From)
	case set.Run.Pack != "":
		fmt.Fprintf(out, "    %s of %s, run %s\n", safetext.Line(set.Run.Tool), safetext.Line(set.Run.Pack), safetext.Line(set.Run.ID))
	}
	switch held := set.Count(changes.Held); {
	case set.Expired:
		fmt.Fprintln(out, "    expired: the waiting changes are gone")
	case held > 0:
		fmt.Fprintf(out, "    %s for you until %s\n", cli.Counted(held, "change waits", "changes wait"), set.Expires.Local().Format(time.DateTime))
	}
	for _, c := range set.Changes {
		fmt.Fprintf(out, "    %-9s %-7s %s", c.State, c.Kind, safetext.Quote(c.Path))
		for _, why := range []string{c.Reason, c.Note} {
			if why != "" {
				fmt.Fprintf(out, "  (%s)", safetext.Line(why))
			}
		}
		fmt.Fprintln(out)
	}
	if len(set.MadeRoom) > 0 {
		fmt.Fprintf(out, "    to free space: %s cannot be undone any more\n", strings.Join(set.MadeRoom, ", "))
	}
	if set.UndoLost != "" && !set.Expired {
		fmt.Fprintf(out, "    cannot be undone completely: %s\n", safetext.Line(set.UndoLost))
	}
}

func (a *app) showChanges(ctx context.Context, id string, paths []string, asJSON bool) error {
	_, s, err := a.changes(ctx)
	if err != nil {
		return err
	}
	set, err := found(s, id)
	if err != nil {
		return err
	}
	v, err := s.Show(ctx, set.ID, paths...)
	switch {
	case err != nil:
		return setHint(err, set)
	case asJSON:
		return cli.PrintJSON(a.Stdout, shownChanges{Set: set, Diff: v.Text(), Cut: v.Cut, Token: tokenOf(v)})
	case v.Text() == "" && len(paths) > 0:
		return setHint(fmt.Errorf("%w %s waits for you at %s", changes.ErrNothing, set.ID, quotedPaths(paths)), set)
	case v.Text() == "":
		fmt.Fprintln(a.Screen(a.Stderr), "None of its changes wait for you.")
		return nil
	}
	_, err = fmt.Fprint(a.Stdout, styledDiff(a.Screen(a.Stdout), v.Text()))
	if v.Cut { // what was not shown must not be applied as shown
		fmt.Fprintf(a.Screen(a.Stderr), "Not all of it is shown. To look at the rest: packs-mcp changes show %s PATH\n", v.Set.ID)
		return err
	}
	also := ""
	if len(paths) > 0 {
		also = ", with the same paths behind it" // a token stands for these paths only
	}
	fmt.Fprintf(a.Stderr, "To apply exactly this%s: packs-mcp changes apply %s --shown %s\n", also, v.Set.ID, v.Token)
	return err
}

// quotedPaths lists paths for a message.
func quotedPaths(paths []string) string {
	all := make([]string, len(paths))
	for i, p := range paths {
		all[i] = safetext.Quote(p)
	}
	return strings.Join(all, ", ")
}

// decideChanges carries out a person's decision from a terminal.
func (a *app) decideChanges(ctx context.Context, asJSON bool, event audit.Event, id string, paths []string, do func(*changes.Store, string) (*changes.Set, error)) (err error) {
	cfg, s, err := a.changes(ctx)
	if err != nil {
		return err
	}
	set, err := found(s, id)
	if err != nil {
		return err
	}
	log, err := cli.Log(ctx, cfg, cli.Writer(cfg), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	done, err := decideChanges(log, channelCommand, event, set, paths, func(id string) (*changes.Set, error) { return do(s, id) })
	if err != nil {
		return setHint(err, set)
	}
	if asJSON {
		err = cli.PrintJSON(a.Stdout, done)
	} else {
		a.printSet(done)
	}
	return errors.Join(err, left(event, set, done))
}

// found returns the change set with an id, or an error that suggests others.
func found(s *changes.Store, id string) (*changes.Set, error) {
	set, err := s.Get(id)
	if !errors.Is(err, changes.ErrNotFound) {
		return set, setHint(err, nil)
	}
	var ids []string
	if sets, err := s.List(); err == nil {
		for _, set := range sets {
			ids = append(ids, set.ID)
		}
	}
	return nil, cli.WithHint(err, "%s", cli.Meant(id, ids, changesHint))
}

// setHint adds to an error about a change set what a person can do. set is nil if
// none was found.
func setHint(err error, set *changes.Set) error {
	if errors.Is(err, changes.ErrNotFound) {
		return cli.WithHint(err, changesHint)
	}
	if set == nil || err == nil {
		return err
	}
	_, gone := os.Stat(set.Folder)
	switch {
	case errors.Is(err, changes.ErrExpired):
		return cli.WithHint(err, "its content was dropped after limits.held_age; have the tool run again")
	case errors.Is(err, changes.ErrNothing):
		return cli.WithHint(err, "packs-mcp changes says what became of each of its changes")
	case errors.Is(err, changes.ErrNotAsShown):
		return cli.WithHint(err, "packs-mcp changes show %s prints what to give for --shown now", set.ID)
	case errors.Is(err, changes.ErrOtherFolder), errors.Is(gone, fs.ErrNotExist):
		return cli.WithHint(err, "put the folder back at %s, or drop what waits: packs-mcp changes discard %s", safetext.Quote(set.Folder), set.ID)
	}
	return err
}

// left returns the error for a decision that was carried out only in part.
func left(event audit.Event, set, done *changes.Set) error {
	n := done.Count(changes.Held) + done.Count(changes.Refused)
	switch {
	case n == 0 || event == eventChangesDiscard: // done is then the set itself
		return nil
	case event == eventChangesUndo && done.Count(changes.Held) > 0:
		return cli.WithHint(fmt.Errorf("%s not undone", cli.Counted(n, "change was", "changes were")),
			"you changed what is there since; packs-mcp changes show %s compares it with what was there before", done.ID)
	case event == eventChangesUndo:
		return cli.WithHint(fmt.Errorf("%s not undone", cli.Counted(n, "change was", "changes were")), "the reason follows each of them")
	}
	return cli.WithHint(fmt.Errorf("%s not applied, and waits still", cli.Counted(n, "change was", "changes were")),
		"the reason follows each of them; to replace what you changed yourself, look at it: packs-mcp changes show %s", set.ID)
}

// channelCommand is the log's channel for decisions made with the command.
const channelCommand = "command"

// decideChanges records a person's decision about a set, and then carries it
// out. It does nothing that it cannot record.
func decideChanges(log audit.Writer, channel string, event audit.Event, set *changes.Set, paths []string, do func(id string) (*changes.Set, error)) (*changes.Set, error) {
	err := log.Append(audit.Entry{
		Event: event, Run: set.Run.ID, Pack: set.Run.Pack, Tool: set.Run.Tool, Dir: set.Folder, Channel: channel,
		Changed: paths, Reason: "the change set " + set.ID,
	})
	if err != nil {
		return nil, fmt.Errorf("nothing was changed: %w", err)
	}
	return do(set.ID)
}

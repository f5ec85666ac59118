package runcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/approve"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/service"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/direct"
)

// callFlags are what a person may say about a call.
type callFlags struct {
	arg     []string // NAME=VALUE pairs
	args    string   // JSON
	context []string // NAME=VALUE pairs
	yes     bool
	dryRun  bool
	json    bool
}

func (a *app) callCommand() *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "call PACK TOOL",
		Short: "Call a tool of a pack yourself, as a client would",
		Long: `Call a tool of a pack. The call takes the same way as a model's: the same checks, question,
sandbox and audit log. You are asked in this terminal; without a terminal the call is denied,
unless you say --yes, which is your answer and is recorded as that.

PACK is the id of an attached pack, or a folder that begins with ./, ../ or /. The tool's
output goes to standard output, everything else to standard error. The exit status is 0 when
the tool succeeded, 1 when it failed or the call was refused or denied, and 2 for misuse.`,
		Example: `  packs-mcp call git-helper log --arg count=5
  packs-mcp call ./my-pack hello --args '{"who": "you"}' --yes
  packs-mcp call git-helper status --dry-run`,
		Args: cli.Needs(2, 2, "a pack and a tool"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.call(cmd.Context(), args[0], args[1], f) },
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return a.completeCall(cmd.Context(), args)
		},
	}
	a.PackFlags(cmd)
	a.PlainFlag(cmd)
	cmd.Flags().StringArrayVar(&f.arg, "arg", nil, "an argument, as `NAME=VALUE`; the tool's schema says its type, and a list is given in several (repeatable)")
	cmd.Flags().StringVar(&f.args, "args", "", "all arguments, as a `JSON` object")
	cmd.Flags().StringArrayVar(&f.context, "context", nil, "what you look at, as `NAME=VALUE`, for tools that ask for it (repeatable)")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "allow the call without being asked")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show the question, and run nothing")
	cli.JSONFlag[calledTool](a.Env, cmd, &f.json)
	return cmd
}

// completeCall offers the attached packs to the shell, and then the tools of the
// named pack.
func (a *app) completeCall(ctx context.Context, args []string) (all []string, _ cobra.ShellCompDirective) {
	a.Stderr = io.Discard // the shell would take a warning for a name
	cfg, _, err := a.Load()
	if err != nil || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	lib, err := a.Library(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if len(args) == 0 {
		for _, p := range lib.Catalog(ctx).Attached() {
			all = append(all, p.ID)
		}
		return all, cobra.ShellCompDirectiveDefault // folders can be named too
	}
	if p, err := lib.Catalog(ctx).LookupAttached(args[0]); err == nil {
		if set, _, err := cli.ToolFiles(cfg).Offered(p); err == nil {
			all = toolNames(set)
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) call(ctx context.Context, pack, name string, f callFlags) (err error) {
	if f.args != "" && len(f.arg) > 0 {
		return &cli.UsageError{Err: errors.New("--args and --arg exclude each other"), Hint: "--args has all arguments; leave one of them out"}
	}
	c := direct.Call{Context: make(map[string]string)}
	for _, text := range f.context {
		key, value, err := pair("--context", text)
		if err != nil {
			return err
		}
		c.Context[key] = value
	}
	if f.args != "" {
		if c.Arguments, err = objectOf(f.args); err != nil {
			return err
		}
	}
	cfg, logger, err := a.quietly()
	if err != nil {
		return err
	}
	if f.dryRun {
		cfg.Rules = append(cfg.Rules, alwaysAsk("call --dry-run"))
	}
	named, extra, err := a.namedFolder(cfg, pack)
	if err != nil {
		return err
	}
	s, err := service.Start(ctx, a.Env, cfg, logger, nil, service.Place{Here: queue.ChannelTerminal, Project: cli.Project(cfg)}, extra...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p, err := a.chosenPack(s.Library.Catalog(ctx), pack, named)
	if err != nil {
		return err
	}
	tool, err := a.chosenTool(cfg, p, name)
	if err != nil {
		return err
	}
	if c.Arguments == nil {
		if c.Arguments, err = argumentsOf(tool, f.arg); err != nil {
			return err
		}
	}
	c.Pack, c.Tool = p.ID, tool.Name
	return a.makeCall(ctx, s, c, f)
}

// quietly reads the configuration for a command whose output is a tool's: it logs
// only warnings, unless the person wants more.
func (a *app) quietly() (*config.Config, *slog.Logger, error) {
	if a.Flags.LogLevel == "" {
		a.Flags.LogLevel = "warn"
	}
	return a.Load()
}

// namedFolder returns the folder that a person named in place of a pack's id, and the
// roots that find its packs; nothing if arg is an id. With a folder, only its packs
// and the person's own are found.
func (a *app) namedFolder(cfg *config.Config, arg string) (dir string, _ []packs.Root, err error) {
	if !cli.IsPath(arg) {
		return "", nil, nil
	}
	const hint = "name the folder of a pack, or the id of an attached pack; packs-mcp list shows these"
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, cli.MissingFolder(arg, hint)
	case err == nil && !info.IsDir():
		err = fmt.Errorf("%q is not a folder", arg)
	}
	if err != nil {
		return "", nil, cli.WithHint(err, hint)
	}
	if dir, err = filepath.Abs(arg); err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", nil, fmt.Errorf("finding %q: %w", arg, err)
	}
	if len(a.Flags.Packs) == 0 {
		cfg.Packs = nil
	}
	return dir, []packs.Root{{Dir: dir, Source: "flag", Trust: packs.TrustUser, AttachAll: true, Named: true}}, nil
}

// chosenPack returns the pack with an id, or the one in the named folder.
func (a *app) chosenPack(catalog *packs.Catalog, arg, dir string) (*packs.Pack, error) {
	if dir != "" {
		for _, p := range catalog.Attached() {
			if p.Dir == dir {
				return p, nil
			}
		}
		if inside := packsBelow(catalog, arg, dir); len(inside) > 0 {
			return nil, cli.WithHint(fmt.Errorf("%q holds %s, and is none itself", arg, cli.Counted(len(inside), "pack", "packs")), "name one of them: %s", few(inside))
		}
		a.printProblems(catalog, dir)
		return nil, cli.WithHint(fmt.Errorf("there is no pack in %q", arg), "a pack is a folder with a SKILL.md; packs-mcp validate %s says what is wrong", safetext.Line(arg))
	}
	p, err := catalog.LookupAttached(arg)
	if err == nil {
		return p, nil
	}
	if found, other := catalog.Lookup(arg); other == nil {
		return nil, cli.WithHint(fmt.Errorf("pack %q is not attached", found.ID), "attach it with: packs-mcp attach %s; packs-mcp show %s says more", found.ID, found.ID)
	}
	if info, statErr := os.Stat(arg); statErr == nil && info.IsDir() {
		return nil, cli.WithHint(err, "for the folder, write .%c%s", filepath.Separator, safetext.Line(arg))
	}
	if e, ok := errors.AsType[*packs.NotFoundError](err); ok && len(e.Near) > 0 {
		return nil, err // the error lists them
	}
	return nil, cli.WithHint(err, "packs-mcp list shows the attached packs; a folder begins with ./")
}

// packsBelow returns the paths of the packs in a folder, written relative to how arg
// names it.
func packsBelow(catalog *packs.Catalog, arg, dir string) (paths []string) {
	for _, p := range catalog.Attached() {
		if rel, err := filepath.Rel(dir, p.Dir); err == nil && p.Root == dir && filepath.IsLocal(rel) {
			paths = append(paths, safetext.Line(strings.TrimRight(arg, `/\`)+string(filepath.Separator)+rel))
		}
	}
	return paths
}

// few lists the first of many words.
func few(all []string) string {
	const most = 3
	if more := len(all) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), more)
	}
	return strings.Join(all, ", ")
}

// printProblems prints what is wrong with the packs in a folder.
func (a *app) printProblems(catalog *packs.Catalog, dir string) {
	for _, p := range catalog.All() {
		if p.Dir == dir {
			for _, d := range p.Problems {
				cli.PrintProblem(a.Stderr, d)
			}
		}
	}
}

// toolsOf returns the tools of a pack; nil if it has none. If they cannot be read, or
// the pack has no tools, it says what is wrong.
func (a *app) toolsOf(cfg *config.Config, p *packs.Pack) (*tools.Set, error) {
	set, problems, err := cli.ToolFiles(cfg).Offered(p)
	if err != nil {
		return nil, err
	}
	if set != nil && len(set.Tools) > 0 {
		return set, nil
	}
	for _, d := range problems {
		cli.PrintProblem(a.Stderr, d)
	}
	if diag.HasErrors(problems) {
		return nil, cli.WithHint(fmt.Errorf("the tools of pack %q cannot be read", p.ID), "mend what is named above")
	}
	return nil, nil
}

// chosenTool returns a tool of a pack.
func (a *app) chosenTool(cfg *config.Config, p *packs.Pack, name string) (*tools.Tool, error) {
	set, err := a.toolsOf(cfg, p)
	if err != nil {
		return nil, err
	}
	if set == nil {
		return nil, cli.WithHint(fmt.Errorf("pack %q has no tools", p.ID), "packs-mcp show %s says what it has", p.ID)
	}
	if tool := set.Lookup(name); tool != nil {
		return tool, nil
	}
	hint := "it has: " + strings.Join(toolNames(set), ", ")
	if meant := near.Names(name, toolNames(set), 2); len(meant) > 0 {
		hint = fmt.Sprintf("did you mean %s?", strings.Join(meant, " or "))
	}
	return nil, &cli.UsageError{Err: fmt.Errorf("pack %q has no tool %q", p.ID, name), Hint: safetext.Line(hint)}
}

// calledTool is what call --json prints.
type calledTool struct {
	Pack   string `json:"pack"`
	Tool   string `json:"tool"`
	OK     bool   `json:"ok"`
	DryRun bool   `json:"dry_run,omitempty"`
	// Question is what a person would be asked, as a card; only for a dry run.
	Question any `json:"question,omitempty"`
	// Result is what a client gets.
	Result json.RawMessage `json:"result,omitempty"`
}

// makeCall makes one call, and prints the result.
func (a *app) makeCall(ctx context.Context, s *service.Service, c direct.Call, f callFlags) error {
	t := a.attempt(ctx, s, c, "the person named the tool in a command", make(map[string]bool))
	p, err := t.next(ctx)
	if err != nil {
		return err
	}
	result, err := t.result, t.err
	var answer queue.Verdict
	if p != nil {
		answer = a.answerTo(ctx, p, f)
		result, err = t.finish(ctx, p.Code, answer)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	if p != nil && f.dryRun {
		return a.printQuestion(p, c, f.json)
	}
	if f.json {
		err = cli.PrintJSON(a.Stdout, calledTool{Pack: c.Pack, Tool: c.Tool, OK: !result.Failed, Result: result.JSON})
	} else {
		err = a.printRun(result)
		a.printFailure(result, answer)
	}
	if err == nil && result.Failed {
		err = cli.ErrSaid
	}
	return err
}

// answerTo asks the person about a run, or answers as the command line says.
func (a *app) answerTo(ctx context.Context, p *queue.Pending, f callFlags) queue.Verdict {
	switch {
	case f.dryRun:
		return queue.Verdict{Channel: queue.ChannelCommand, Note: "--dry-run only shows the question"}
	case f.yes:
		return a.byYes(p)
	case !cli.IsTerminal(a.Stdin) || !cli.IsTerminal(a.Stderr):
		return withoutTerminal()
	}
	v, err := approve.NewTerminal(ctx, a.Env).Ask(ctx, *p)
	if err != nil {
		return queue.Verdict{Channel: queue.ChannelCommand, Note: "nobody answered in the terminal"}
	}
	return v
}

func (a *app) printQuestion(p *queue.Pending, c direct.Call, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(a.Stdout, calledTool{Pack: c.Pack, Tool: c.Tool, OK: true, DryRun: true, Question: p.Card})
	}
	text := p.Card.Text(approve.Width(a.Env)) + "\n"
	if a.Flags.Plain {
		text = p.Card.Sentences(true)
	}
	_, err := io.WriteString(a.Stdout, text)
	fmt.Fprintln(a.Stderr, "Nothing was run, and nothing is allowed.")
	return err
}

// printRun prints a tool's output on standard output, and everything else on standard
// error.
func (a *app) printRun(r *direct.Result) error {
	out := r.Run.Out()
	if _, err := io.WriteString(a.Stdout, out); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	if out != "" && !strings.HasSuffix(out, "\n") && cli.IsTerminal(a.Stdout) {
		fmt.Fprintln(a.Stdout)
	}
	fmt.Fprint(a.Stderr, r.Run.Stderr)
	if r.Run.Stderr != "" && !strings.HasSuffix(r.Run.Stderr, "\n") {
		fmt.Fprintln(a.Stderr)
	}
	for _, note := range r.Run.Notes {
		fmt.Fprintf(a.Stderr, "packs-mcp: note: %s\n", safetext.Line(note))
	}
	for _, f := range r.Run.Artifacts {
		fmt.Fprintf(a.Stderr, "packs-mcp: made %s\n", safetext.Line(f.File))
	}
	for _, set := range r.Run.Changes {
		for _, path := range set.Applied {
			fmt.Fprintf(a.Stderr, "packs-mcp: changed %s\n", safetext.Line(filepath.Join(set.Folder, filepath.FromSlash(path))))
		}
		for _, c := range set.Held {
			fmt.Fprintf(a.Stderr, "packs-mcp: held for you: %s; see: packs-mcp changes show %s\n", safetext.Line(c.Path), safetext.Line(set.Set))
		}
		for _, c := range set.Refused {
			fmt.Fprintf(a.Stderr, "packs-mcp: not changed: %s: %s\n", safetext.Line(c.Path), safetext.Line(c.Reason))
		}
	}
	return nil
}

// printFailure prints why a call failed, and what to do. answer is the answer that
// was given here, if a question was asked.
func (a *app) printFailure(r *direct.Result, answer queue.Verdict) {
	if !r.Failed {
		return
	}
	why, hint := r.Error.Message, hintFor(r)
	if r.Error.Code != "command_failed" {
		why = r.Error.Code + ": " + why
	}
	if r.Error.Code == "denied" && answer.Channel == queue.ChannelCommand && answer.Decision == queue.Deny {
		why = "denied: " + answer.Note
	}
	fmt.Fprintf(a.Stderr, "packs-mcp: error: %s\n", safetext.Line(why))
	if hint != "" {
		fmt.Fprintf(a.Stderr, "packs-mcp: hint: %s\n", hint)
	}
}

// hintFor returns what a person can do about a call that failed. The server's own
// hints are for models.
func hintFor(r *direct.Result) string {
	switch r.Error.Code {
	case "denied":
		return "in a terminal you are asked; --yes allows the call; packs-mcp audit show --last 5 says who decided"
	case "invalid_arguments":
		return "--dry-run shows what would run; --arg and --args give arguments"
	case "missing_context":
		return "give it with --context NAME=VALUE, or under context: in the configuration"
	case "command_failed", "timeout", "output_limit":
		if r.Run.ID != "" {
			return "packs-mcp sandbox explain " + r.Run.ID
		}
	case "sandbox_unavailable":
		return "packs-mcp doctor says what would help on this machine"
	}
	return ""
}

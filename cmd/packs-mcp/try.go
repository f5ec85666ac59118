package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/auditcmd"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/examples"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
	"github.com/packs-mcp/packs-mcp/internal/server/tour"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

func (a *app) tryCommand() *cobra.Command {
	var yes bool
	var pack string
	cmd := &cobra.Command{
		Use:   "try [DIR]",
		Short: "See packs work: a client in this terminal, with real approvals",
		Long: `Visit packs the way a model does: names and descriptions first, then a document, a file, the
tools, and a run. A real MCP client talks to the same server that clients start, and every
call is put to you. Without DIR it uses example packs that come with the program; with DIR,
the packs there. Without a terminal to ask on, the examples are approved by themselves, and
calls of other packs are denied unless you say --yes.`,
		Example: `  packs-mcp try
  packs-mcp try ~/packs --pack incident-triage
  packs-mcp try ./my-pack --yes`,
		Args: cli.Misuse(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := ""
			if len(args) > 0 {
				dir = args[0]
			}
			return a.try(cmd.Context(), dir, pack, yes)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	a.PackFlags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "approve every call without asking")
	cmd.Flags().StringVar(&pack, "pack", "", "the `ID` of the pack to visit (default: the first with tools)")
	_ = cmd.RegisterFlagCompletionFunc("pack", a.completeVisits)
	return cmd
}

// completeVisits offers the packs that try would find in its folder.
func (a *app) completeVisits(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		ids, err := examples.Names()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
	a.Flags.Packs = args[:1]
	return a.CompletePacks(cmd, nil, begun)
}

func (a *app) try(ctx context.Context, dir, pack string, yes bool) (err error) {
	if a.Flags.LogLevel == "" {
		a.Flags.LogLevel = "warn" // the tour is what the person reads
	}
	cfg, logger, err := a.Load()
	if err != nil {
		return err
	}
	interactive := cli.IsTerminal(a.Stdin) && cli.IsTerminal(a.Stdout)
	g := &terminal{out: a.Stdout, in: bufio.NewReader(a.Stdin), approve: yes, ask: interactive}
	opts := tour.Options{Version: a.Version, Pack: pack}
	root := packs.Root{Dir: dir, Source: "flag", Trust: packs.TrustUser, AttachAll: true, Named: true}
	if dir == "" {
		var remove func()
		if root, remove, err = bundled(); err != nil {
			return err
		}
		defer remove()
		if !interactive && !yes {
			g.approve = true
			g.Tell("There is no terminal to ask on, so the calls of the bundled examples are approved automatically.")
		}
		if cli.Project(cfg) == "" {
			g.Tell("This folder is in no git repository, so the tools of git-helper will have nothing to look at.")
		}
		if pack == "" {
			opts.Pack, opts.Tools = "git-helper", []string{"status", "changelog"}
		}
	} else if root.Dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("finding %q: %w", dir, err)
	}
	if len(a.Flags.Packs) == 0 {
		cfg.Packs = nil // only what is tried
	}
	who, _ := cli.Credentials(cfg)
	s, err := a.start(ctx, cfg, logger, who, place{here: queue.ChannelElicitation, project: cli.Project(cfg)}, root)
	if err != nil {
		return err
	}
	began, err := lastSeq(cfg)
	if err != nil {
		return errors.Join(err, s.close())
	}
	if opts.Pack, err = a.toVisit(ctx, s, cfg, root, opts.Pack); err != nil {
		return errors.Join(err, s.close())
	}
	tourErr := a.take(ctx, s, g, opts)
	if err := errors.Join(tourErr, s.close()); err != nil {
		if errors.Is(err, tour.ErrNoPacks) {
			return a.noPacks(ctx, s, root.Dir)
		}
		return err
	}
	return a.epilogue(cfg, g, began)
}

// toVisit returns the id of the pack to visit: the named one, or the first below
// root with tools, or else the first below root. The user's own packs may be
// attached too, but are not tried.
func (a *app) toVisit(ctx context.Context, s *service, cfg *config.Config, root packs.Root, named string) (string, error) {
	catalog := s.library.Catalog(ctx)
	var ids []string
	first := ""
	files := cli.ToolFiles(cfg)
	for _, p := range catalog.Attached() {
		if p.Root != root.Dir {
			continue
		}
		ids = append(ids, p.ID)
		if first == "" && files.HasTools(p) {
			first = p.ID
		}
	}
	if len(ids) == 0 {
		return "", a.noPacks(ctx, s, root.Dir)
	}
	if named != "" {
		p, err := catalog.LookupAttached(named)
		if err != nil {
			return "", cli.WithHint(err, "the packs here are: %s", strings.Join(ids, ", "))
		}
		return p.ID, nil
	}
	return cmp.Or(first, ids[0]), nil
}

// bundled writes the example packs into a new folder.
func bundled() (packs.Root, func(), error) {
	folder, err := temp.New("")
	if err != nil {
		return packs.Root{}, nil, fmt.Errorf("making a folder for the example packs: %w", err)
	}
	remove := func() { _ = folder.Remove() }
	if err := examples.Extract(folder.Path); err != nil {
		remove()
		return packs.Root{}, nil, err
	}
	return packs.Root{Dir: folder.Path, Source: "bundled", Trust: packs.TrustBundled, AttachAll: true}, remove, nil
}

// take connects a client to the server and runs the tour.
func (a *app) take(ctx context.Context, s *service, g tour.Guide, o tour.Options) error {
	in, out, ended := s.connect(ctx)
	err := tour.Take(ctx, in, out, g, o)
	return errors.Join(err, ended())
}

// connect returns both ends of a connection to the server: what it writes, and what
// it reads. ended closes the connection and waits for the server's end of it.
func (s *service) connect(ctx context.Context) (in io.Reader, out io.WriteCloser, ended func() error) {
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := wire.ServeStdio(ctx, s.server, toServer, fromServer)
		served <- errors.Join(err, fromServer.Close())
	}()
	return toClient, fromClient, func() error {
		return errors.Join(fromClient.Close(), <-served) // the server ends with its input
	}
}

// noPacks says what is missing in a folder without packs.
func (a *app) noPacks(ctx context.Context, s *service, dir string) error {
	for _, d := range s.library.Catalog(ctx).Problems() {
		cli.PrintProblem(a.Stderr, d)
	}
	for _, p := range s.library.Catalog(ctx).All() {
		for _, d := range p.Problems {
			cli.PrintProblem(a.Stderr, d)
		}
	}
	return cli.WithHint(fmt.Errorf("there are no packs to try in %q", dir),
		"a pack is a folder with a SKILL.md that begins with --- and has name: and description:")
}

// lastSeq returns the number of the last event before the tour.
func lastSeq(cfg *config.Config) (int64, error) {
	var last int64
	for line, err := range audit.Read(cfg.Audit.Path) {
		if _, ok := errors.AsType[*audit.LineError](err); ok {
			continue
		}
		if err != nil {
			return 0, err
		}
		last = line.Entry.Seq
	}
	return last, nil
}

// epilogue shows what the tour left in the audit log.
func (a *app) epilogue(cfg *config.Config, g *terminal, began int64) error {
	g.heading("The audit log of all this")
	for line, err := range audit.Read(cfg.Audit.Path) {
		if _, ok := errors.AsType[*audit.LineError](err); ok {
			continue
		}
		if err != nil {
			return err
		}
		if line.Entry.Seq >= began {
			if err := auditcmd.PrintEntry(a.Screen(a.Stdout), line.Entry); err != nil {
				return err
			}
		}
	}
	report, err := audit.Verify(cfg.Audit.Path)
	if err != nil {
		return err
	}
	verdict := "its chain verifies"
	if !report.OK {
		verdict = "its chain does NOT verify; see: packs-mcp audit verify"
	}
	g.Tell(fmt.Sprintf("It is in %s, and %s.", cfg.Audit.Path, verdict))
	return nil
}

// terminal is the guide of a tour: it prints, and asks on the terminal.
type terminal struct {
	out     io.Writer
	in      *bufio.Reader
	approve bool // every call, without asking
	ask     bool // there is a person
}

func (t *terminal) heading(text string) {
	fmt.Fprintf(t.out, "\n== %s\n\n", text)
}

func (t *terminal) Stage(number int, title string) {
	t.heading(fmt.Sprintf("%d. %s", number, title))
}

func (t *terminal) Tell(text string) { fmt.Fprintf(t.out, "%s\n", safetext.Text(text)) }

// shown is how much of one text of a result is printed.
const shown = 1200

func (t *terminal) Calling(tool string, arguments map[string]any) {
	args, err := json.Marshal(arguments)
	if err != nil {
		args = []byte("?")
	}
	fmt.Fprintf(t.out, "\n-> %s %s\n", tool, safetext.Line(string(args)))
}

func (t *terminal) Result(result map[string]any, failed bool) {
	mark := "<-"
	if failed {
		mark = "<- failed:"
	}
	raw, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		raw = []byte("?")
	}
	text := string(raw)
	if doc := content(result); doc != "" {
		text = doc
	}
	if r := []rune(text); len(r) > shown {
		text = string(r[:shown]) + fmt.Sprintf("\n… (%d characters more)", len(r)-shown)
	}
	fmt.Fprintf(t.out, "%s\n", mark)
	for line := range strings.Lines(safetext.Text(text)) {
		fmt.Fprintf(t.out, "   %s\n", strings.TrimRight(line, "\n"))
	}
}

// content returns the text of a result that a person wants to see: a document, a
// file, or a program's output.
func content(result map[string]any) string {
	if entry, ok := result["entry_doc"].(map[string]any); ok {
		result = entry
	}
	for _, key := range []string{"content", "output", "stdout"} {
		if text, ok := result[key].(string); ok && text != "" {
			return strings.TrimRight(text, "\n")
		}
	}
	return ""
}

func (t *terminal) Ask(ctx context.Context, question string, choices []tour.Choice) string {
	fmt.Fprintln(t.out)
	for line := range strings.Lines(question) {
		fmt.Fprintf(t.out, "   | %s\n", strings.TrimRight(line, "\n"))
	}
	if t.approve {
		fmt.Fprintln(t.out, "   | approved: once")
		return "once"
	}
	if !t.ask {
		fmt.Fprintln(t.out, "   | denied: there is no terminal to ask on; --yes approves every call")
		return ""
	}
	for i, c := range choices {
		fmt.Fprintf(t.out, "   | [%d] %s\n", i+1, c.Title)
	}
	for {
		answer, ok := t.line(ctx, fmt.Sprintf("   | your decision, 1 to %d: ", len(choices)))
		if !ok {
			return ""
		}
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(choices) {
			return choices[n-1].Value
		}
	}
}

func (t *terminal) Value(ctx context.Context, name, about string) (string, bool) {
	if !t.ask {
		return "", false
	}
	if about != "" {
		fmt.Fprintf(t.out, "   %s\n", safetext.Line(about))
	}
	return t.line(ctx, fmt.Sprintf("   value for %s: ", safetext.Line(name)))
}

// line reads what the person types; ok is false once input has ended.
func (t *terminal) line(ctx context.Context, prompt string) (text string, ok bool) {
	fmt.Fprint(t.out, prompt)
	type read struct {
		text string
		err  error
	}
	got := make(chan read, 1)
	go func() { // ends with the next line, or with the program
		text, err := t.in.ReadString('\n')
		got <- read{text, err}
	}()
	select {
	case r := <-got:
		return strings.TrimSpace(r.text), r.err == nil
	case <-ctx.Done():
		return "", false
	}
}

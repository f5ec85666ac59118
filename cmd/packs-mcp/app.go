package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// app is one run of the program: its streams, its environment and its flags.
type app struct {
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
	flags          flags
}

// flags are the ones that several commands have in common.
type flags struct {
	packs     []string
	attach    []string
	config    string
	project   string
	workspace string
	http      string
	publicURL string
	logLevel  string
	logFormat string
}

// command makes the tree of commands. Without one, packs-mcp serves.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "packs-mcp",
		Short: "Capability packs for any MCP client, each call approved by a person",
		Long: `packs-mcp brings capability packs (folders with instructions, files and tools) to any
MCP client. The client's model sees names and descriptions first, opens what it needs, and
a person approves every call. Without a command it serves on standard input and output,
which is how clients start it.`,
		Example: `  packs-mcp try                          # see it work, with example packs
  packs-mcp --packs ~/packs              # serve the packs below ~/packs; clients run this
  packs-mcp list --packs ~/packs         # what a model would see
  packs-mcp audit show                   # what was asked, decided and run`,
		Args:          misuse(cobra.NoArgs),
		Version:       versionName(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context()) },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{err: err, hint: fmt.Sprintf("see: %s --help", cmd.CommandPath())}
	})
	root.PersistentFlags().StringVar(&a.flags.logLevel, "log-level", "", "debug, info, warn or error (default info)")
	root.PersistentFlags().StringVar(&a.flags.logFormat, "log-format", "", "auto, pretty, text or json (default auto)")
	a.packFlags(root)
	a.serveFlags(root)
	root.AddCommand(
		a.serveCommand(), a.tryCommand(), a.listCommand(), a.showCommand(),
		a.attachCommand(), a.detachCommand(), a.approvalsCommand(),
		a.validateCommand(), a.convertCommand(), a.newCommand(),
		a.changesCommand(), a.auditCommand(), a.sandboxCommand(), a.doctorCommand(), a.versionCommand(), a.promptCommand(),
	)
	a.completionCommands(root)
	return root
}

// completionCommands makes the library's own commands like the others: an
// example in their help, and status 2 for misuse.
func (a *app) completionCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Example = "  packs-mcp help try"
		case "completion":
			cmd.Example = `  source <(packs-mcp completion bash)
  packs-mcp completion zsh > "${fpath[1]}/_packs-mcp"
  packs-mcp completion fish > ~/.config/fish/completions/packs-mcp.fish
  packs-mcp completion powershell | Out-String | Invoke-Expression`
			cmd.Args = misuse(cobra.NoArgs)
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range cmd.Commands() {
				shell.Example = "  packs-mcp completion " + shell.Name()
				shell.Args = misuse(cobra.NoArgs)
			}
		}
	}
}

// packFlags are the flags that say which packs there are.
func (a *app) packFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&a.flags.packs, "packs", nil, "a `DIR` that holds packs; their packs are attached (repeatable)")
	f.StringVar(&a.flags.config, "config", "", "the configuration `FILE`")
	f.StringVar(&a.flags.project, "project", "", "the project `DIR` (default: the git root of the working folder; none for several people over HTTP)")
	_ = cmd.MarkFlagDirname("packs")
	_ = cmd.MarkFlagDirname("project")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
}

// misuse marks the errors of an argument check as such.
func misuse(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			hint := fmt.Sprintf("see: %s --help", cmd.CommandPath())
			if cmd.HasSubCommands() && len(args) > 0 {
				cmd.SuggestionsMinimumDistance = 2
				if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
					hint = fmt.Sprintf("did you mean %s? see: %s --help", strings.Join(near, " or "), cmd.CommandPath())
				}
			}
			return &usageError{err: err, hint: hint}
		}
		return nil
	}
}

// A usageError is a command line that makes no sense.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// A hintedError says what to do now.
type hintedError struct {
	err  error
	hint string
}

func (e *hintedError) Error() string { return e.err.Error() }
func (e *hintedError) Unwrap() error { return e.err }

// withHint adds what to do now to an error.
func withHint(err error, format string, args ...any) error {
	return &hintedError{err: err, hint: fmt.Sprintf(format, args...)}
}

// report says what went wrong and returns the exit status.
func (a *app) report(err error) int {
	if err == nil {
		return 0
	}
	if errors.Is(err, errSaid) {
		return 1
	}
	hint := ""
	if e, ok := errors.AsType[*hintedError](err); ok {
		hint = e.hint
	} else if e, ok := errors.AsType[*usageError](err); ok {
		hint = e.hint
	} else if e, ok := errors.AsType[*audit.UnsafeError](err); ok {
		hint = e.Hint
	} else if e, ok := errors.AsType[*packs.NotFoundError](err); ok && len(e.Near) == 0 {
		hint = "packs-mcp list --all shows every pack there is"
	} else if _, ok := errors.AsType[*config.Error](err); ok {
		hint = "correct it and run the command again; nothing was done"
	} else if errors.Is(err, context.Canceled) {
		hint = "it was interrupted"
	}
	for line := range strings.SplitSeq(strings.TrimRight(safetext.Text(err.Error()), "\n"), "\n") {
		fmt.Fprintf(a.stderr, "packs-mcp: error: %s\n", line)
	}
	if hint != "" {
		fmt.Fprintf(a.stderr, "packs-mcp: hint: %s\n", hint)
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return 2
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		return 2
	}
	return 1
}

// errSaid ends a command with status 1 that has said everything already.
var errSaid = errors.New("said")

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

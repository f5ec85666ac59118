// Package cli has what all commands share: the streams, environment and flags of
// one run of the program, its configuration, the packs that it finds, and how it
// reports errors and prints text and JSON.
//
// It has no command of its own and starts no server. A package of commands offers
// Commands, which takes an [Env]; package main puts them together.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// An Env is one run of the program: its streams, its environment and its flags.
type Env struct {
	Environ        []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Version        string // what this program calls itself
	Flags          Flags
}

// Root returns the root command. It has the flags that every command has, and
// its errors are ones that Report knows.
func (env *Env) Root(below ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:           "packs-mcp",
		Args:          Misuse(cobra.NoArgs),
		Version:       env.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &UsageError{Err: err, Hint: fmt.Sprintf("see: %s --help", cmd.CommandPath())}
	})
	root.PersistentFlags().StringVar(&env.Flags.LogLevel, "log-level", "", "debug, info, warn or error (default info)")
	root.PersistentFlags().StringVar(&env.Flags.LogFormat, "log-format", "", "auto, pretty, text or json (default auto)")
	root.AddCommand(below...)
	return root
}

// Run runs the command line args and returns the exit status: 0 done, 1 failed, 2
// misuse.
func (env *Env) Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	return env.Report(root.ExecuteContext(ctx))
}

// Flags are the flags that several commands share.
type Flags struct {
	Packs     []string
	Attach    []string
	Config    string
	Project   string
	Workspace string
	HTTP      string
	PublicURL string
	Policy    string
	Bundled   bool
	LogLevel  string
	LogFormat string
}

// PackFlags adds the flags that select the folders of packs.
func (env *Env) PackFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&env.Flags.Packs, "packs", nil, "a `DIR` that holds packs; their packs are attached (repeatable)")
	f.StringVar(&env.Flags.Config, "config", "", "the configuration `FILE`")
	f.StringVar(&env.Flags.Project, "project", "", "the project `DIR` (default: the git root of the working folder; none for several people over HTTP)")
	_ = cmd.MarkFlagDirname("packs")
	_ = cmd.MarkFlagDirname("project")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
}

// Misuse marks the errors of an argument check as such.
func Misuse(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			hint := fmt.Sprintf("see: %s --help", cmd.CommandPath())
			if cmd.HasSubCommands() && len(args) > 0 {
				cmd.SuggestionsMinimumDistance = 2
				if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
					hint = fmt.Sprintf("did you mean %s? see: %s --help", strings.Join(near, " or "), cmd.CommandPath())
				}
			}
			return &UsageError{Err: err, Hint: hint}
		}
		return nil
	}
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Getenv returns the value of a variable of environ.
func Getenv(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if n, value, ok := strings.Cut(kv, "="); ok && n == name {
			return value
		}
	}
	return ""
}
